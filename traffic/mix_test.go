package traffic

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestMixShares(t *testing.T) {
	weights := []float64{900, 0, 60, 39, 1}
	m := NewMix(weights, 7, false)
	const n = 400_000
	got := make([]float64, len(weights))
	for i := range uint64(n) {
		got[m.Route(i)]++
	}
	for i, w := range weights {
		p := w / 1000
		if math.Abs(got[i]-n*p) > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("route %d: %v of %v", i, got[i], n*p)
		}
	}
}

func TestMixIsPure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 20).Draw(rt, "weights")
		weights[0] += 0.001
		seed := rapid.Uint64().Draw(rt, "seed")
		a, b := NewMix(weights, seed, true), NewMix(slices.Clone(weights), seed, true)
		for i := range uint64(len(weights)) {
			if a.Route(i) != uint32(i) {
				rt.Fatalf("request %d of a smoke takes route %d", i, a.Route(i))
			}
		}
		for i := uint64(200); i > uint64(len(weights)); i-- { // the other way round
			r := b.Route(i)
			if r != a.Route(i) || weights[r] == 0 {
				rt.Fatalf("request %d: %d and %d", i, r, a.Route(i))
			}
		}
	})
	if a, b := NewMix([]float64{1, 1}, 1, false), NewMix([]float64{1, 1}, 2, false); func() bool {
		for i := range uint64(64) {
			if a.Route(i) != b.Route(i) {
				return false
			}
		}
		return true
	}() {
		t.Error("two seeds give one sequence")
	}
}

func TestDrawingDoesNotAllocate(t *testing.T) {
	m := NewMix([]float64{1, 2, 3}, 1, false)
	words, err := NewPool([]string{"a", "b", "c"}, []uint64{1, 2, 3}, PickObserved)
	if err != nil {
		t.Fatal(err)
	}
	ints, err := NewIntPool(1, 1<<40, PickZipf)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 64)
	i, sum := uint64(0), 0
	if n := testing.AllocsPerRun(100, func() {
		i++
		sum += int(m.Route(i)) + len(words.At(1, i, 2, 0))
		buf = ints.AppendAt(words.AppendAt(buf[:0], 1, i, 2, 0), 1, i, 2, 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPools(t *testing.T) {
	a, err := NewPool([]string{"c", "a", "b"}, []uint64{3, 1, 2}, PickObserved)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewPool([]string{"b", "c", "a"}, []uint64{2, 3, 1}, PickObserved)
	if err != nil || a.Digest() != b.Digest() || a.Value(0) != "a" || a.Len() != 3 {
		t.Errorf("the order of the values matters: %v", err)
	}
	counts := map[string]float64{}
	for i := range uint64(60_000) {
		if a.At(5, i, 1, 0) != b.At(5, i, 1, 0) {
			t.Fatal("two pools of the same values differ")
		}
		counts[a.At(5, i, 1, 0)]++
	}
	for v, want := range map[string]float64{"a": 10_000, "b": 20_000, "c": 30_000} {
		if math.Abs(counts[v]-want) > 700 {
			t.Errorf("%s: %v, want about %v", v, counts[v], want)
		}
	}
	c, err := NewPool([]string{"a", "b", "c"}, nil, PickUniform)
	if err != nil || c.Digest() == a.Digest() {
		t.Errorf("weights are not in the digest, %v", err)
	}
}

func TestZipf(t *testing.T) {
	small, err := NewIntPool(1, 1000, PickZipf)
	if err != nil {
		t.Fatal(err)
	}
	large, err := NewIntPool(1, 1<<40, PickZipf)
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	harmonic := func(k float64) float64 { return math.Log(k) + 0.5772156649 + 1/(2*k) }
	for _, c := range []struct {
		p *Pool
		h float64
	}{{small, harmonic(1000)}, {large, harmonic(1 << 40)}} {
		first := make([]float64, 3)
		for i := range uint64(n) {
			k := c.p.Pick(1, i, 0, 0)
			if k >= c.p.Len() {
				t.Fatal("out of range")
			}
			if k < 3 {
				first[k]++
			}
		}
		for r := range first {
			p := 1 / (float64(r+1) * c.h)
			if math.Abs(first[r]-n*p) > 5*math.Sqrt(n*p) {
				t.Errorf("rank %d: %v, want %v", r+1, first[r], n*p)
			}
		}
	}
	ranked, err := NewPool([]string{"rare", "often"}, []uint64{1, 9}, PickZipf)
	if err != nil {
		t.Fatal(err)
	}
	often := 0
	for i := range uint64(3000) {
		if ranked.At(1, i, 0, 0) == "often" {
			often++
		}
	}
	if often < 1850 || often > 2150 {
		t.Errorf("the heaviest value was drawn %d times of 3000, want about 2000", often)
	}
}

func TestIntPoolBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		low := rapid.Int64().Draw(rt, "low")
		high := rapid.Int64Range(low, math.MaxInt64).Draw(rt, "high")
		p, err := NewIntPool(low, high, rapid.SampledFrom([]string{"", PickUniform}).Draw(rt, "pick"))
		if err != nil {
			if low == math.MinInt64 && high == math.MaxInt64 {
				return
			}
			rt.Fatal(err)
		}
		for i := range uint64(20) {
			v, err := strconv.ParseInt(string(p.AppendAt(nil, 3, i, 1, 0)), 10, 64)
			if err != nil || v < low || v > high || p.At(3, i, 1, 0) != strconv.FormatInt(v, 10) {
				rt.Fatalf("%d is not in %d..%d (%v)", v, low, high, err)
			}
		}
	})
}

func TestPoolErrors(t *testing.T) {
	for name, make := range map[string]func() (*Pool, error){
		"empty":        func() (*Pool, error) { return NewPool(nil, nil, PickUniform) },
		"empty value":  func() (*Pool, error) { return NewPool([]string{"a", ""}, nil, PickUniform) },
		"weights":      func() (*Pool, error) { return NewPool([]string{"a"}, []uint64{1, 2}, PickObserved) },
		"not observed": func() (*Pool, error) { return NewPool([]string{"a"}, nil, PickObserved) },
		"no weight":    func() (*Pool, error) { return NewPool([]string{"a"}, []uint64{0}, PickObserved) },
		"unknown pick": func() (*Pool, error) { return NewPool([]string{"a"}, nil, "latest") },
		"range":        func() (*Pool, error) { return NewIntPool(2, 1, PickUniform) },
		"int observed": func() (*Pool, error) { return NewIntPool(1, 2, PickObserved) },
	} {
		if p, err := make(); err == nil || p != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkMix(b *testing.B) {
	m := NewMix([]float64{5, 1, 1, 1, 1, 1, 7, 3}, 1, false)
	b.ReportAllocs()
	var sum uint32
	i := uint64(0)
	for b.Loop() {
		sum += m.Route(i)
		i++
	}
	_ = sum
}
