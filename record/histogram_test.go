package record

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

// durations draws values over the whole range, log-uniformly, as latencies are spread.
func durations() *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		b := rapid.IntRange(0, valueBits).Draw(t, "bits")
		return time.Duration(rapid.Uint64Range(0, 1<<b-1).Draw(t, "value"))
	})
}

func TestHistogramMatchesTheReferenceImplementation(t *testing.T) {
	for _, kind := range []struct {
		digits int
		make   func() *Histogram
	}{{3, NewHistogram}, {2, NewCoarse}} {
		rapid.Check(t, func(t *rapid.T) {
			h := kind.make()
			ref := hdrhistogram.New(1, int64(MaxValue), kind.digits)
			values := rapid.SliceOfN(durations(), 1, 300).Draw(t, "values")
			for _, v := range values {
				h.Record(v)
				if err := ref.RecordValue(int64(v)); err != nil {
					t.Fatal(err)
				}
			}
			if h.Count() != uint64(ref.TotalCount()) {
				t.Fatalf("count %d, reference %d", h.Count(), ref.TotalCount())
			}
			for n := range uint64(len(values)) {
				rank := n + 1
				got := h.ValueAtRank(rank)
				// The reference takes a percentile and rounds n*p to the nearest rank; this one rounds to it.
				want := ref.ValueAtQuantile(100 * (float64(rank) - 0.25) / float64(len(values)))
				if want = min(want, int64(h.Max())); int64(got) != want {
					t.Fatalf("rank %d of %d: %d, reference %d", rank, len(values), got, want)
				}
			}
			bars := map[int64]int64{}
			for _, b := range ref.Distribution() {
				if b.Count > 0 {
					bars[b.From] = b.Count
				}
			}
			for b := range h.Buckets() {
				if bars[int64(b.Lo)] != int64(b.Count) {
					t.Fatalf("bucket %v..%v holds %d, reference %d", b.Lo, b.Hi, b.Count, bars[int64(b.Lo)])
				}
				delete(bars, int64(b.Lo))
			}
			if len(bars) > 0 {
				t.Fatalf("buckets of the reference are missing: %v", bars)
			}
		})
	}
}

func TestHistogramIsWithinItsDigits(t *testing.T) {
	for _, kind := range []struct {
		h     *Histogram
		error float64
	}{{NewHistogram(), 1e-3}, {NewCoarse(), 1e-2}} {
		rapid.Check(t, func(t *rapid.T) {
			v := durations().Draw(t, "value")
			lo, hi := kind.h.bounds(kind.h.slot(uint64(v)))
			if v < lo || v > hi {
				t.Fatalf("%d is not in its bucket %d..%d", v, lo, hi)
			}
			if float64(hi-lo) > kind.error*float64(max(v, 1)) {
				t.Fatalf("%d: the bucket %d..%d is wider than the precision", v, lo, hi)
			}
			if slot := kind.h.slot(uint64(v)); slot < 0 || slot >= kind.h.slots() {
				t.Fatalf("slot %d of %d", slot, kind.h.slots())
			}
		})
		if got := kind.h.slot(uint64(MaxValue)); got != kind.h.slots()-1 {
			t.Errorf("the last value stands in slot %d of %d", got, kind.h.slots())
		}
	}
}

func TestBucketsTile(t *testing.T) {
	for _, h := range []*Histogram{NewHistogram(), NewCoarse()} {
		next := time.Duration(0)
		for slot := range h.slots() {
			lo, hi := h.bounds(slot)
			if lo != next || hi < lo {
				t.Fatalf("slot %d is %d..%d, want it to begin at %d", slot, lo, hi, next)
			}
			next = hi + 1
		}
		if next != MaxValue+1 {
			t.Errorf("the buckets end before %d", next)
		}
	}
}

func TestQuantileIsNearestRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Values under 2,048 ns have a bucket each, so that quantiles are exact.
		values := rapid.SliceOfN(rapid.IntRange(0, 2047), 1, 400).Draw(t, "values")
		den := rapid.Uint64Range(1, 100000).Draw(t, "den")
		num := rapid.Uint64Range(1, den).Draw(t, "num")
		h := NewHistogram()
		for _, v := range values {
			h.Record(time.Duration(v))
		}
		slices.Sort(values)
		n := uint64(len(values))
		k := (n*num + den - 1) / den
		if got, want := h.Quantile(num, den), time.Duration(values[k-1]); got != want {
			t.Fatalf("quantile %d/%d of %d values is %d, want %d", num, den, n, got, want)
		}
	})
}

func TestRankNeverOverflows(t *testing.T) {
	for _, c := range []struct{ n, num, den, want uint64 }{
		{0, 1, 2, 0}, {5, 1, 0, 0}, {1, 0, 2, 1}, {20, 19, 20, 19}, {21, 19, 20, 20}, {100, 95, 100, 95}, {7, 2, 1, 7},
		{1000, 999, 1000, 999}, {math.MaxUint64, 1, 2, 1 << 63}, {math.MaxUint64, 99999, 100000, 18446559606268814520},
	} {
		if got := rank(c.n, c.num, c.den); got != c.want {
			t.Errorf("rank(%d, %d/%d) = %d, want %d", c.n, c.num, c.den, got, c.want)
		}
	}
}

func TestHistogramExactFigures(t *testing.T) {
	h := NewHistogram()
	if h.Quantile(1, 2) != 0 || h.Mean() != 0 || h.Max() != 0 || h.Min() != 0 || h.ValueAtRank(1) != 0 {
		t.Error("an empty histogram gives something other than 0")
	}
	for _, d := range []time.Duration{3 * time.Millisecond, 1234567 * time.Nanosecond, 99*time.Second + 1} {
		h.Record(d)
	}
	if h.Max() != 99*time.Second+1 || h.Min() != 1234567 || h.Mean() != (3000000+1234567+99000000001)/3 {
		t.Errorf("max %d min %d mean %d", h.Max(), h.Min(), h.Mean())
	}
	if h.ValueAtRank(3) != h.Max() || h.ValueAtRank(99) != h.Max() || h.ValueAtRank(0) != 0 {
		t.Errorf("rank 3 gives %d", h.ValueAtRank(3))
	}
}

func TestHistogramClampsAndCounts(t *testing.T) {
	h := NewHistogram()
	h.Record(-5)
	h.Record(time.Second)
	h.Record(100 * time.Hour)
	h.Record(math.MaxInt64)
	if h.Count() != 4 || h.Clamped() != 3 {
		t.Errorf("count %d, clamped %d", h.Count(), h.Clamped())
	}
	if h.Min() != 0 || h.Max() != math.MaxInt64 {
		t.Errorf("min %d, max %d", h.Min(), h.Max())
	}
	if got := h.ValueAtRank(3); got < 100*time.Hour {
		t.Errorf("a clamped value reads as %s, which is less than it was", got)
	}
	if got, want := h.Mean(), time.Duration((uint64(time.Second)+uint64(100*time.Hour)+math.MaxInt64)/4); got != want {
		t.Errorf("mean %d, want %d", got, want)
	}
}

func TestMeanBeyond64Bits(t *testing.T) {
	h := NewHistogram()
	for range 10 {
		h.Record(math.MaxInt64 - 3)
	}
	if h.Mean() != math.MaxInt64-3 {
		t.Errorf("mean %d", h.Mean())
	}
}

func TestHistogramMergeEqualsRecordingEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coarse := rapid.Bool().Draw(t, "coarse")
		all, a, b := &Histogram{coarse: coarse}, &Histogram{coarse: coarse}, NewHistogram()
		if coarse && rapid.Bool().Draw(t, "coarse into coarse") {
			b = NewCoarse()
		}
		for _, v := range rapid.SliceOfN(durations(), 0, 100).Draw(t, "a") {
			all.Record(v)
			a.Record(v)
		}
		for _, v := range rapid.SliceOfN(durations(), 0, 100).Draw(t, "b") {
			all.Record(v)
			b.Record(v)
		}
		before := b.Clone()
		a.Merge(b)
		sameHistogram(t, a, all)
		sameHistogram(t, b, before)
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func sameHistogram(t failer, got, want *Histogram) {
	t.Helper()
	if got.count != want.count || got.clamped != want.clamped || got.min != want.min || got.max != want.max ||
		got.sumHi != want.sumHi || got.sumLo != want.sumLo || got.coarse != want.coarse {
		t.Fatalf("histograms differ: %+v, want %+v", *got, *want)
	}
	if !slices.Equal(slices.Collect(got.Buckets()), slices.Collect(want.Buckets())) {
		t.Fatalf("buckets differ")
	}
}

func TestCoarseIntoFinePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("merging a coarse histogram into a fine one was let through")
		}
	}()
	c := NewCoarse()
	c.Record(1)
	NewHistogram().Merge(c)
}

func TestResetEmpties(t *testing.T) {
	h := NewCoarse()
	for i := range 5000 {
		h.Record(time.Duration(i%700) * time.Microsecond)
	}
	h.Reset()
	sameHistogram(t, h, NewCoarse())
	h.Record(time.Second)
	want := NewCoarse()
	want.Record(time.Second)
	sameHistogram(t, h, want)
}

// TestCountersWiden drives the pages through all widths against plain numbers.
func TestCountersWiden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 300
		var c counters
		plain := make([]uint64, n)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			k := rapid.SampledFrom([]uint64{1, 1, 1, 2, 254, 255, 65534, 65535, math.MaxUint32 - 1, math.MaxUint32, 1 << 40}).Draw(t, "k")
			if k == 1 {
				c.inc(i, n)
			} else {
				c.add(i, k, n)
			}
			plain[i] += k
		}
		got := make([]uint64, n)
		for i, v := range c.all() {
			got[i] = v
		}
		if !slices.Equal(got, plain) {
			t.Fatalf("counters %v, want %v", got, plain)
		}
	})
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := NewHistogram()
	rng := rand.New(rand.NewPCG(1, 2))
	value := func() time.Duration { return time.Duration(1e6 * (1 + rng.ExpFloat64())) }
	for range 200000 {
		h.Record(value())
	}
	if n := testing.AllocsPerRun(1000, func() { h.Record(3 * time.Millisecond) }); n != 0 {
		t.Errorf("Record allocates %v times", n)
	}
	if h.Bytes() > 32<<10 {
		t.Errorf("a histogram of 200,000 exponential values takes %d bytes", h.Bytes())
	}
}

func TestHistogramMemoryIsBounded(t *testing.T) {
	h := NewHistogram()
	for slot := range h.slots() {
		lo, _ := h.bounds(slot)
		h.Record(lo)
	}
	if h.Bytes() > 64<<10 {
		t.Errorf("with every bucket in use it takes %d bytes", h.Bytes())
	}
}

// TestAtMostEqualsNearestRank is the eleventh acceptance of spec 04: the count gate says the same as
// the nearest-rank quantile.
func TestAtMostEqualsNearestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 11))
	for range 60000 {
		n := 1 + rng.IntN(60)
		den := 1 + rng.Uint64N(1000)
		num := 1 + rng.Uint64N(den)
		values := make([]int, n)
		limit, good := rng.IntN(20), uint64(0)
		for i := range values {
			if values[i] = rng.IntN(20); values[i] <= limit {
				good++
			}
		}
		slices.Sort(values)
		quantile := values[rank(uint64(n), num, den)-1]
		if got, want := AtMost(good, uint64(n), num, den), quantile <= limit; got != want {
			t.Fatalf("%d of %d at or under %d, share %d/%d: gate %v, nearest rank %d says %v", good, n, limit, num, den, got, quantile, want)
		}
	}
}

func TestAtMostBounds(t *testing.T) {
	if AtMost(0, 0, 0, 100) || AtMost(5, 5, 95, 0) {
		t.Error("absent data passes")
	}
	const top = math.MaxUint64
	if hi, _ := bits.Mul64(top, 100); hi == 0 || AtMost(top/100*94, top, 95, 100) || !AtMost(top/100*96, top, 95, 100) {
		t.Error("large counts overflow")
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	h := NewHistogram()
	b.ReportAllocs()
	d := time.Duration(0)
	for b.Loop() {
		d = (d*1103515245 + 12345) & (1<<24 - 1)
		h.Record(d)
	}
}
