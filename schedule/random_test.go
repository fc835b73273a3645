package schedule

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func TestLogarithmAndFriends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-700, 700).Draw(t, "log x"))
		if want, got := math.Log(x), ln(x); math.Abs(got-want) > 4e-16*math.Abs(want) && math.Abs(got-want) > 2e-16 {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		y := -rapid.Float64Range(0, 707).Draw(t, "y")
		if want, got := math.Exp(y), exp(y); math.Abs(got-want) > 4e-13*want {
			t.Fatalf("exp(%v) = %v, want %v", y, got, want)
		}
		k := float64(rapid.IntRange(0, 100000).Draw(t, "k"))
		if want, _ := math.Lgamma(k + 1); math.Abs(lnFactorial(k)-want) > 1e-14*max(1, want)*8 {
			t.Fatalf("ln %v! = %v, want %v", k, lnFactorial(k), want)
		}
	})
	for _, x := range []float64{1 - 1.0/(1<<53), 1, 1 + 1.0/(1<<52), 1.0 / (1 << 53), math.Sqrt2, math.Sqrt2 / 2} {
		if want, got := math.Log(x), ln(x); math.Abs(got-want) > 3e-16*math.Abs(want) {
			t.Errorf("ln(%v) = %v, want %v", x, got, want)
		}
	}
	if exp(-1e6) != 0 || exp(0) != 1 {
		t.Errorf("exp(-1e6) = %v, exp(0) = %v", exp(-1e6), exp(0))
	}
}

// chiSquared compares counts with a distribution's mass, pooling cells until each expects 5 or more,
// and gives the probability of a statistic as large.
func chiSquared(counts map[uint64]int, n int, mass func(uint64) float64, most uint64) float64 {
	var stat, expect, seen, expected, total float64
	cells := 0
	for k := range most + 1 {
		expect += mass(k) * float64(n)
		seen += float64(counts[k])
		if expect >= 5 {
			stat += (seen - expect) * (seen - expect) / expect
			expected += expect
			total += seen
			expect, seen = 0, 0
			cells++
		}
	}
	if rest := float64(n) - expected; rest > 0.5 {
		d := float64(n) - total - rest
		stat += d * d / rest
		cells++
	}
	return distuv.ChiSquared{K: float64(cells - 1)}.Survival(stat)
}

func TestPoissonCounts(t *testing.T) {
	const n = 40000
	for _, mean := range []float64{0.1, 1, 4.5, 9.99, 10, 13.7, 60, 2048} {
		counts := map[uint64]int{}
		for i := range uint64(n) {
			s := newSource(17, 3, i)
			counts[s.poisson(mean)]++
		}
		p := distuv.Poisson{Lambda: mean}
		if got := chiSquared(counts, n, func(k uint64) float64 { return p.Prob(float64(k)) }, uint64(mean+12*math.Sqrt(mean)+20)); got < 0.001 {
			t.Errorf("mean %v: counts differ from Poisson, p = %g", mean, got)
		}
	}
	s := newSource(1, 1, 1)
	if s.poisson(0) != 0 || s.poisson(-1) != 0 {
		t.Error("a mean of 0 gives arrivals")
	}
}

// kolmogorov gives sqrt(n) times the largest distance of the sample from cdf; over 1.63 has a chance
// of 1%, over 1.95 of 0.1%.
func kolmogorov(sample []float64, cdf func(float64) float64) float64 {
	slices.Sort(sample)
	n := float64(len(sample))
	d := 0.0
	for i, x := range sample {
		f := cdf(x)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d * math.Sqrt(n)
}

func TestGammaDraws(t *testing.T) {
	for _, shape := range []float64{0.05, 0.4, 1, 2.5, 80} {
		sample := make([]float64, 20000)
		for i := range sample {
			s := newSource(5, forGamma, uint64(i))
			sample[i] = s.gamma(shape)
		}
		if k := kolmogorov(sample, distuv.Gamma{Alpha: shape, Beta: shape}.CDF); k > 1.95 {
			t.Errorf("shape %v: not gamma with mean 1, K = %.2f", shape, k)
		}
	}
}

// dues gives the due times of a run in seconds.
func dues(t *testing.T, o Open) []float64 {
	t.Helper()
	var out []float64
	s := stream1(t, o)
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		out = append(out, a.Due.Seconds())
	}
	return out
}

// perWindow counts arrivals in windows of the given width, in seconds.
func perWindow(at []float64, width, total float64) []float64 {
	out := make([]float64, int(total/width))
	for _, x := range at {
		if i := int(x / width); i < len(out) {
			out[i]++
		}
	}
	return out
}

func meanVar(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x)-1)
}

// autocorrelation at a lag; its standard error without correlation is 1/sqrt(n).
func autocorrelation(x []float64, lag int) float64 {
	mean, variance := meanVar(x)
	sum := 0.0
	for i := range len(x) - lag {
		sum += (x[i] - mean) * (x[i+lag] - mean)
	}
	return sum / float64(len(x)) / variance
}

// TestPoissonProcess looks at runs of several blocks, at rates with many blocks a second and with many
// seconds a block.
func TestPoissonProcess(t *testing.T) {
	for _, o := range []Open{
		{Kind: Poisson, Seed: 1, Rate: 200, Duration: 1000 * time.Second},
		{Kind: Poisson, Seed: 2, Rate: 50000, Duration: 4 * time.Second},
		{Kind: Bursty, Dispersion: 1, Seed: 3, Rate: 7, Duration: 30000 * time.Second},
	} {
		at := dues(t, o)
		want := o.Rate * o.Duration.Seconds()
		if z := (float64(len(at)) - want) / math.Sqrt(want); math.Abs(z) > 3.3 {
			t.Errorf("%v/s: %d arrivals, %.1f standard errors from %v", o.Rate, len(at), z, want)
		}
		gaps := make([]float64, len(at)-1)
		for i := range gaps {
			gaps[i] = at[i+1] - at[i]
		}
		for _, lag := range []int{1, 2, 5, 64} {
			if z := autocorrelation(gaps, lag) * math.Sqrt(float64(len(gaps))); math.Abs(z) > 3.5 {
				t.Errorf("%v/s: gaps at lag %d are correlated, z = %.2f", o.Rate, lag, z)
			}
		}
		if k := kolmogorov(gaps, distuv.Exponential{Rate: o.Rate}.CDF); k > 1.95 {
			t.Errorf("%v/s: gaps are not exponential, K = %.2f", o.Rate, k)
		}
		// Windows that are no multiple of a block straddle its edges.
		counts := perWindow(at, 37.7/o.Rate, o.Duration.Seconds())
		mean, variance := meanVar(counts)
		n := float64(len(counts))
		if z := (variance/mean - 1) / math.Sqrt(2/n); math.Abs(z) > 3.5 {
			t.Errorf("%v/s: variance over mean is %.3f, z = %.2f", o.Rate, variance/mean, z)
		}
		if z := autocorrelation(counts, 1) * math.Sqrt(n); math.Abs(z) > 3.5 {
			t.Errorf("%v/s: counts are correlated, z = %.2f", o.Rate, z)
		}
	}
}

// TestBlockCountsAndPlacesAreUniform: inside blocks, places are uniform.
func TestPlacesInBlocksAreUniform(t *testing.T) {
	o := Open{Kind: Poisson, Seed: 9, Rate: 1000, Duration: 100 * time.Second}
	b := newBlocks(o)
	var places []float64
	for k := range b.n - 1 {
		start, length, _ := b.span(k)
		x := b.draw(k)
		for x.left > 0 {
			places = append(places, float64(uint64(x.next())-start)/float64(length))
		}
	}
	if k := kolmogorov(places, func(x float64) float64 { return x }); k > 1.95 {
		t.Errorf("places in a block are not uniform, K = %.2f", k)
	}
}

func TestBurstyReproducesItsDispersion(t *testing.T) {
	for _, c := range []struct{ rate, dispersion float64 }{{20, 3}, {50, 20}, {5, 25}, {5000, 400}} {
		const seconds = 4000
		o := Open{Kind: Bursty, Seed: 11, Rate: c.rate, Dispersion: c.dispersion, Duration: seconds * time.Second}
		counts := make([]float64, seconds)
		b := newBlocks(o)
		for k := range b.n {
			counts[k/b.perSecond] += float64(b.count(k))
		}
		mean, variance := meanVar(counts)
		if z := (mean - c.rate) / math.Sqrt(c.rate*c.dispersion/seconds); math.Abs(z) > 3.3 {
			t.Errorf("%v/s, D = %v: mean %.2f, z = %.2f", c.rate, c.dispersion, mean, z)
		}
		if got := variance / mean; math.Abs(got/c.dispersion-1) > 0.25 {
			t.Errorf("%v/s: index of dispersion %.2f, want %v", c.rate, got, c.dispersion)
		}
		if z := autocorrelation(counts, 1) * math.Sqrt(seconds); math.Abs(z) > 3.5 {
			t.Errorf("%v/s: seconds are correlated, z = %.2f", c.rate, z)
		}
		if c.rate < 100 {
			fromStream := perWindow(dues(t, o), 1, seconds)
			if !slices.Equal(fromStream, counts) {
				t.Errorf("%v/s: the stream's seconds are not the blocks'", c.rate)
			}
		}
	}
}
