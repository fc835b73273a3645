package schedule

import (
	"math"
	"math/bits"
)

// source is a stream of random bits whose start is a hash of (seed, purpose, counter): SplitMix64
// (Steele, Lea, Flood 2014). Any block of the schedule has its own, so that no block needs another. It
// is a value; copying it remembers the place in the stream.
type source struct{ state uint64 }

// Purposes keep the streams of different draws apart.
const (
	forArrivals = 1
	forGamma    = 2
)

const golden = 0x9e3779b97f4a7c15

func newSource(seed, purpose, counter uint64) source {
	return source{mix(mix(mix(seed+golden)+purpose*golden) + counter*golden)}
}

// next gives 64 random bits.
func (s *source) next() uint64 {
	s.state += golden
	return mix(s.state)
}

// mix is SplitMix64's output function: a bijection in which every bit of x moves every bit of the
// result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform is in (0, 1): the middle of one of 2^52 equal cells, so that it is never 0 or 1 and exact.
func (s *source) uniform() float64 {
	return float64((float64(s.next()>>12) + 0.5) * (1.0 / (1 << 52)))
}

// exponential has mean 1.
func (s *source) exponential() float64 { return -ln(s.uniform()) }

// normal has mean 0 and variance 1 (Marsaglia's polar method; the second value is dropped).
func (s *source) normal() float64 {
	for {
		u, v := float64(2*s.uniform())-1, float64(2*s.uniform())-1
		q := float64(u*u) + float64(v*v)
		if q > 0 && q < 1 {
			return float64(u * math.Sqrt(float64(-2*ln(q))/q))
		}
	}
}

// gamma has the given shape and mean 1 (Marsaglia and Tsang 2000; for a shape under 1 their boost by
// a power of a uniform).
func (s *source) gamma(shape float64) float64 {
	if shape < 1 {
		boost := exp(ln(s.uniform()) / shape)
		return float64(s.gammaFrom1(shape+1)*boost) / shape
	}
	return s.gammaFrom1(shape) / shape
}

func (s *source) gammaFrom1(shape float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(float64(9*d))
	for {
		x := s.normal()
		t := 1 + float64(c*x)
		if t <= 0 {
			continue
		}
		v := float64(float64(t*t) * t)
		accept := float64(0.5*float64(x*x)) + float64(d*(1-v+ln(v)))
		if ln(s.uniform()) < accept {
			return float64(d * v)
		}
	}
}

// poisson draws a Poisson count of the given mean.
func (s *source) poisson(mean float64) uint64 {
	switch {
	case mean <= 0:
		return 0
	case mean < 10:
		return s.poissonByGaps(mean)
	default:
		return s.poissonByRejection(mean)
	}
}

// poissonByGaps counts exponential gaps that fit into the mean.
func (s *source) poissonByGaps(mean float64) uint64 {
	n := uint64(0)
	for at := s.exponential(); at < mean; at += s.exponential() {
		n++
	}
	return n
}

// poissonByRejection is Hörmann's transformed rejection PTRD without the squeeze (PTRS, "The
// transformed rejection method for generating Poisson random variables", 1993): exact, and of constant
// cost in the mean.
func (s *source) poissonByRejection(mean float64) uint64 {
	lnMean := ln(mean)
	b := 0.931 + float64(2.53*math.Sqrt(mean))
	a := -0.059 + float64(0.02483*b)
	invAlpha := 1.1239 + 1.1328/(b-3.4)
	vr := 0.9277 - 3.6224/(b-2)
	for {
		u := s.uniform() - 0.5
		v := s.uniform()
		us := 0.5 - math.Abs(u)
		k := math.Floor(float64((float64(2*a)/us+b)*u) + mean + 0.43)
		if us >= 0.07 && v <= vr {
			return uint64(k)
		}
		if k < 0 || (us < 0.013 && v > us) {
			continue
		}
		if ln(float64(v*invAlpha)/(a/float64(us*us)+b)) <= float64(k*lnMean)-mean-lnFactorial(k) {
			return uint64(k)
		}
	}
}

// ln is the natural logarithm of a positive normal number, to about one unit in the last place: with
// x = 2^e m, m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m-1)/(m+1)) by its series. math.Log is not
// used because it may differ in the last bit from one architecture to another.
func ln(x float64) float64 {
	const one, root = 0x3ff0000000000000, 0x3fe6a09e667f3bcd // the bits of 1 and of sqrt(1/2)
	b := math.Float64bits(x) + (one - root)                  // so that the exponent turns over at sqrt(1/2)
	e := int64(b>>52) - 1023
	m := math.Float64frombits(b&(1<<52-1) + root)
	s := (m - 1) / (m + 1)
	z := float64(s * s) // at most 0.0295: eleven terms leave less than 1e-18
	z2 := float64(z * z)
	z4 := float64(z2 * z2)
	p0 := float64(z*(1.0/3)) + float64(z2*(1.0/5))
	p1 := 1.0/7 + float64(z*(1.0/9))
	p2 := 1.0/11 + float64(z*(1.0/13))
	p3 := 1.0/15 + float64(z*(1.0/17))
	p4 := 1.0/19 + float64(z*(1.0/21))
	q1 := p1 + float64(z2*p2)
	q2 := p3 + float64(z2*p4)
	p := p0 + float64(float64(z2*z)*(q1+float64(z4*q2)))
	r := 2 * s
	return float64(float64(e)*math.Ln2) + (r + float64(r*p))
}

// exp is e^x for x <= 0; 0 where the result would be under the normal numbers.
func exp(x float64) float64 {
	if x < -708 {
		return 0
	}
	k := math.Round(x * (1 / math.Ln2))
	r := x - float64(k*math.Ln2)
	sum, term := 1.0, 1.0
	for i := 1.0; i <= 16; i++ { // |r| <= 0.35: the seventeenth term is under 1e-22
		term = float64(term*r) / i
		sum += term
	}
	return math.Float64frombits(uint64(int64(math.Float64bits(sum)) + int64(k)<<52))
}

// lnFactorial is ln(k!) for a whole k >= 0: by product under 16, else Stirling's series, whose first
// omitted term is under 1e-14 there.
func lnFactorial(k float64) float64 {
	if k < 16 {
		f := 1.0
		for i := 2.0; i <= k; i++ {
			f *= i
		}
		return ln(f)
	}
	const halfLnTwoPi = 0.918938533204672741780329736405617639861
	i2 := 1 / float64(k*k)
	series := (1.0/12 - float64(i2*(1.0/360-float64(i2*(1.0/1260-float64(i2*(1.0/1680))))))) / k
	return float64((k+0.5)*ln(k)) - k + halfLnTwoPi + series
}

// mulDiv is floor(a*b/c) in 128 bits; the result must fit.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}
