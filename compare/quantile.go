// Package compare holds the statistics that decide: pure functions over counts and ranks. What one
// run can see of itself is here; the comparison of two builds joins it.
package compare

import (
	"math/bits"

	"gonum.org/v1/gonum/mathext"
)

// Fraction is an exact proportion, Num/Den, so that ranks are computed in integers (CO-4).
type Fraction struct{ Num, Den uint64 }

// The quantiles that reports and limits name.
var (
	P50  = Fraction{1, 2}
	P95  = Fraction{19, 20}
	P99  = Fraction{99, 100}
	P999 = Fraction{999, 1000}
)

// Float is the fraction as a float64.
func (f Fraction) Float() float64 { return float64(f.Num) / float64(f.Den) }

// Rank is the nearest rank of the quantile in n ordered values: ceil(n*p), from 1; 0 when n is 0.
// The product is taken in 128 bits, so no count can overflow it.
func Rank(n uint64, p Fraction) uint64 {
	if n == 0 {
		return 0
	}
	hi, lo := bits.Mul64(n, p.Num)
	q, rem := bits.Div64(hi, lo, p.Den)
	if rem > 0 {
		q++
	}
	return max(1, min(q, n))
}

// Confidence of a band: the chance left in each tail. 1% in each gives the 98% of CO-15.
const tail = 0.01

// Band is the order-statistic interval of a quantile: with 98% confidence the true quantile lies
// between the values of rank Lo and rank Hi of the sample. It is distribution-free and covers the
// sampling error of independent requests only. Lo is 0 when the sample has no lower bound, Hi is 0
// when it has no upper bound.
type Band struct{ Lo, Hi uint64 }

// OrderBand gives the band of quantile p in n values (David and Nagaraja, Order Statistics, 7.1):
// with B ~ Binomial(n, p), Lo is the largest l with P(B <= l-1) <= 1%, Hi the smallest u with
// P(B >= u) <= 1%. An upper bound needs p^n <= 1%: n >= 90 for p95, 459 for p99, 7 for p50.
func OrderBand(n uint64, p Fraction) Band {
	if n == 0 {
		return Band{}
	}
	q := p.Float()
	return Band{
		Lo: firstFalse(0, n, func(l uint64) bool { return binomialAtMost(n, q, l) <= tail }),
		Hi: upperRank(n, q),
	}
}

// upperRank is the smallest u in 1..n with P(B >= u) <= tail; 0 when there is none.
func upperRank(n uint64, q float64) uint64 {
	u := firstFalse(1, n+1, func(u uint64) bool { return 1-binomialAtMost(n, q, u-1) > tail })
	if u > n {
		return 0
	}
	return u
}

// firstFalse is the least x in [lo, hi] for which holds is false, where holds is true up to some
// point and false after it; hi when it holds for all below hi.
func firstFalse(lo, hi uint64, holds func(uint64) bool) uint64 {
	for lo < hi {
		mid := lo + (hi-lo)/2
		if holds(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// binomialAtMost is P(B <= k) for B ~ Binomial(n, p), by the regularized incomplete beta function
// I_{1-p}(n-k, k+1) (NIST DLMF 8.17.5).
func binomialAtMost(n uint64, p float64, k uint64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k)+1, 1-p)
}

// Needed is the least number of requests for which a quantile has an upper bound.
func Needed(p Fraction) uint64 {
	return firstFalse(1, 1<<40, func(n uint64) bool { return upperRank(n, p.Float()) == 0 })
}

// ClopperPearsonUpper is the exact 99% upper bound of a proportion with k hits in n, valid only if
// requests were independent (CO-16); 1 when n is 0.
func ClopperPearsonUpper(k, n uint64) float64 {
	if k >= n {
		return 1
	}
	return mathext.InvRegIncBeta(float64(k)+1, float64(n-k), 1-tail)
}
