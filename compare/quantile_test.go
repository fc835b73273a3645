package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNeededMatchesTheSpecification(t *testing.T) {
	for _, c := range []struct {
		p    Fraction
		want uint64
	}{{P50, 7}, {P95, 90}, {P99, 459}} {
		if got := Needed(c.p); got != c.want {
			t.Errorf("Needed(%v) = %d, want %d", c.p, got, c.want)
		}
	}
}

func TestRankIsExactInIntegers(t *testing.T) {
	for _, c := range []struct {
		n    uint64
		p    Fraction
		want uint64
	}{{0, P95, 0}, {1, P95, 1}, {20, P95, 19}, {100, P95, 95}, {101, P95, 96}, {1000, P999, 999},
		{math.MaxUint64, P99, 18262276632972456099}} {
		if got := Rank(c.n, c.p); got != c.want {
			t.Errorf("Rank(%d, %v) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

// The band's tails are summed term by term here, without the beta function.
func TestOrderBandAgainstDirectSums(t *testing.T) {
	for _, n := range []uint64{1, 2, 6, 7, 20, 89, 90, 91, 200, 459, 1000} {
		for _, p := range []Fraction{P50, P95, P99} {
			b := OrderBand(n, p)
			atMost := func(k uint64) float64 { return directAtMost(n, p.Float(), k) }
			if b.Lo > 0 && atMost(b.Lo-1) > tail {
				t.Errorf("n=%d p=%v: Lo=%d has too much below it", n, p, b.Lo)
			}
			if b.Lo < n && atMost(b.Lo) <= tail {
				t.Errorf("n=%d p=%v: Lo=%d is not the largest", n, p, b.Lo)
			}
			if b.Hi > 0 && 1-atMost(b.Hi-1) > tail {
				t.Errorf("n=%d p=%v: Hi=%d has too much above it", n, p, b.Hi)
			}
			if b.Hi > 1 && 1-atMost(b.Hi-2) <= tail {
				t.Errorf("n=%d p=%v: Hi=%d is not the smallest", n, p, b.Hi)
			}
			if b.Hi == 0 && math.Pow(p.Float(), float64(n)) <= tail {
				t.Errorf("n=%d p=%v: an upper bound exists and was not found", n, p)
			}
		}
	}
}

func directAtMost(n uint64, p float64, k uint64) float64 {
	sum := 0.0
	for x := uint64(0); x <= k; x++ {
		sum += math.Exp(logChoose(n, x) + float64(x)*math.Log(p) + float64(n-x)*math.Log1p(-p))
	}
	return min(1, sum)
}

func TestOrderBandCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds, n = 4000, 300
	truth := math.Log(20) // p95 of a unit exponential
	b := OrderBand(n, P95)
	below, above := 0, 0
	xs := make([]float64, n)
	for range rounds {
		for i := range xs {
			xs[i] = rng.ExpFloat64()
		}
		slices.Sort(xs)
		if xs[b.Lo-1] > truth {
			below++
		}
		if xs[b.Hi-1] < truth {
			above++
		}
	}
	// 1% a side, with four standard errors of slack.
	if most := int(rounds*tail + 4*math.Sqrt(rounds*tail)); below > most || above > most {
		t.Errorf("the truth lay outside %d and %d times of %d; at most %d a side", below, above, rounds, most)
	}
}

func TestFisherKnownValues(t *testing.T) {
	// Fisher's tea: 3 of 4 against 1 of 4 is 17/70.
	if got, want := FisherGreater(3, 4, 1, 4), 17.0/70; math.Abs(got-want) > 1e-12 {
		t.Errorf("tea: %v, want %v", got, want)
	}
	if got, want := FisherGreater(4, 4, 0, 4), 1.0/70; math.Abs(got-want) > 1e-12 {
		t.Errorf("all right: %v, want %v", got, want)
	}
	for _, c := range [][4]uint64{{0, 10, 0, 10}, {0, 0, 1, 2}, {3, 3, 0, 0}} {
		if got := FisherGreater(c[0], c[1], c[2], c[3]); got != 1 {
			t.Errorf("FisherGreater%v = %v, want 1", c, got)
		}
	}
}

func TestFisherTailsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 400).Draw(t, "n")
		n0 := rapid.Uint64Range(1, 400).Draw(t, "n0")
		k := rapid.Uint64Range(1, n).Draw(t, "k")
		k0 := rapid.Uint64Range(0, n0).Draw(t, "k0")
		up := FisherGreater(k, n, k0, n0)
		if !(up >= 0 && up <= 1) {
			t.Fatalf("p = %v", up)
		}
		if k < n && k0 > 0 {
			if more := FisherGreater(k+1, n, k0-1, n0); more > up+1e-9 {
				t.Fatalf("a larger excess of the same total is likelier: %v > %v", more, up)
			}
		}
		// Symmetry: at least k hits here is at least n0-k0 misses there.
		if miss := FisherGreater(n0-k0, n0, n-k, n); n0 > k0 && math.Abs(miss-up) > 1e-9 {
			t.Fatalf("hits %v, misses %v", up, miss)
		}
	})
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.004, 0.02, 0.0001, 0.006}, 0.01)
	want := []bool{false, false, true, false} // 0.0001 <= .0025; 0.004 > .01/3
	if !slices.Equal(got, want) {
		t.Errorf("Holm = %v, want %v", got, want)
	}
	if got := Holm([]float64{0.003, 0.001, 0.009}, 0.01); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("step-down: %v", got)
	}
	if got := Holm([]float64{math.NaN()}, 0.01); got[0] {
		t.Error("a p-value that is not a number was rejected")
	}
}

func TestClopperPearsonUpper(t *testing.T) {
	if got, want := ClopperPearsonUpper(0, 100), 1-math.Pow(tail, 1.0/100); math.Abs(got-want) > 1e-9 {
		t.Errorf("0 of 100: %v, want %v", got, want)
	}
	if got := ClopperPearsonUpper(0, 0); got != 1 {
		t.Errorf("nothing measured: %v, want 1", got)
	}
}
