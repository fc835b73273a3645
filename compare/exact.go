package compare

import (
	"cmp"
	"math"
	"slices"
)

// FisherGreater is the one-sided p-value of Fisher's exact test: the chance, if both samples had the
// same underlying share, of at least k hits among n when hits k0 of n0 were seen on the other side
// (the hypergeometric upper tail). It is 1 when either sample is empty.
func FisherGreater(k, n, k0, n0 uint64) float64 {
	if n == 0 || n0 == 0 || k == 0 {
		return 1
	}
	total, hits := n+n0, k+k0
	most := min(n, hits)
	scale := logChoose(total, n)
	p := 0.0
	for x := k; x <= most; x++ {
		if n-x > total-hits {
			continue
		}
		term := math.Exp(logChoose(hits, x) + logChoose(total-hits, n-x) - scale)
		p += term
		if x > k && term < p*1e-17 {
			break
		}
	}
	return min(1, p)
}

func logChoose(n, k uint64) float64 {
	a, _ := math.Lgamma(float64(n) + 1)
	b, _ := math.Lgamma(float64(k) + 1)
	c, _ := math.Lgamma(float64(n-k) + 1)
	return a - b - c
}

// Holm tells which of the p-values are rejected at level alpha over the whole family (Holm 1979):
// the i-th smallest, from 0, is compared with alpha/(m-i) until the first that is not below it.
func Holm(p []float64, alpha float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	rejected := make([]bool, len(p))
	for i, at := range order {
		if !(p[at] <= alpha/float64(len(p)-i)) {
			break
		}
		rejected[at] = true
	}
	return rejected
}
