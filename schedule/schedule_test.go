package schedule

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plans draws open runs of at most some ten thousand arrivals, over rates of all sizes.
func plans() *rapid.Generator[Open] {
	return rapid.Custom(func(t *rapid.T) Open {
		o := Open{Seed: rapid.Uint64().Draw(t, "seed"), Kind: rapid.SampledFrom([]Kind{Poisson, Even, Bursty}).Draw(t, "kind")}
		o.Rate = math.Pow(10, rapid.Float64Range(-2, 6).Draw(t, "log rate"))
		arrivals := math.Pow(10, rapid.Float64Range(-1, 4).Draw(t, "log arrivals"))
		o.Duration = time.Duration(max(1, min(arrivals/o.Rate*1e9, 1e13)))
		if o.Kind == Bursty {
			o.Dispersion = 1 + rapid.Float64Range(0, 50).Draw(t, "dispersion")
		}
		if rapid.IntRange(0, 3).Draw(t, "floor") == 0 {
			o.AtLeast = rapid.Uint64Range(0, 50).Draw(t, "at least")
		}
		return o
	})
}

type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func stream1(t failer, o Open) Schedule {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func collect(s Schedule) []Arrival {
	var out []Arrival
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		out = append(out, a)
	}
	return out
}

func TestArrivalsAreInOrderAndInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := plans().Draw(t, "plan")
		s := stream1(t, o)
		all := collect(s)
		last := time.Duration(0)
		for i, a := range all {
			if a.Index != uint64(i) || a.Due < last || a.Due >= o.Duration {
				t.Fatalf("arrival %d is %+v after %s, of %s", i, a, last, o.Duration)
			}
			last = a.Due
		}
		if _, again := s.Next(); again {
			t.Fatal("the schedule goes on after its end")
		}
		if n, err := Count(o); err != nil || n != uint64(len(all)) || n < o.AtLeast {
			t.Fatalf("Count is %d (%v), the schedule has %d, at least %d", n, err, len(all), o.AtLeast)
		}
		if !slices.Equal(all, collect(stream1(t, o))) {
			t.Fatal("the same plan gives two sequences")
		}
	})
}

func TestRandomAccessEqualsTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := plans().Draw(t, "plan")
		all := collect(stream1(t, o))
		x, err := NewIndex(o)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			i := rapid.IntRange(0, len(all)).Draw(t, "i")
			if !slices.Equal(collect(x.Seek(uint64(i))), all[i:]) {
				t.Fatalf("from arrival %d on it is not the stream", i)
			}
			a, ok := x.At(uint64(i))
			if ok != (i < len(all)) || ok && a != all[i] {
				t.Fatalf("arrival %d is %+v (%v)", i, a, ok)
			}
		}
		if _, ok := x.At(math.MaxUint64); ok {
			t.Fatal("there is an arrival beyond every count")
		}
	})
}

// TestBlocksAreIndependent draws the blocks alone, last first, and puts them together.
func TestBlocksAreIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := plans().Draw(t, "plan")
		if o.AtLeast = 0; o.Kind == Even {
			o.Kind = Poisson
		}
		b := newBlocks(o)
		var dues []time.Duration
		end := uint64(o.Duration)
		for k := b.n; k > 0; k-- {
			start, length, _ := b.span(k - 1)
			if length > 0 && start+length != end {
				t.Fatalf("block %d ends at %d, the next begins at %d", k-1, start+length, end)
			}
			if length > 0 {
				end = start
			}
			x := b.draw(k - 1)
			if x.left != b.count(k-1) {
				t.Fatalf("block %d holds %d, its count is %d", k-1, x.left, b.count(k-1))
			}
			var part []time.Duration
			for x.left > 0 {
				part = append(part, x.next())
			}
			dues = append(part, dues...)
		}
		if end != 0 {
			t.Fatalf("the first block begins at %d", end)
		}
		var want []time.Duration
		for _, a := range collect(stream1(t, o)) {
			want = append(want, a.Due)
		}
		if !slices.Equal(dues, want) {
			t.Fatal("the blocks do not make up the stream")
		}
	})
}

func TestShardsPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := plans().Draw(t, "plan")
		all := collect(stream1(t, o))
		n := rapid.IntRange(1, 9).Draw(t, "n")
		var union []Arrival
		for k := range n {
			part := collect(Shard(stream1(t, o), k, n))
			if !slices.IsSortedFunc(part, func(a, b Arrival) int { return int(a.Index) - int(b.Index) }) {
				t.Fatalf("slice %d of %d is not in order", k, n)
			}
			if least := len(all) / n; len(part) != least && len(part) != least+1 {
				t.Fatalf("slice %d of %d has %d of %d arrivals", k, n, len(part), len(all))
			}
			union = append(union, part...)
		}
		slices.SortFunc(union, func(a, b Arrival) int { return int(a.Index) - int(b.Index) })
		if !slices.Equal(union, all) { // indices are distinct in all, so this is disjointness too
			t.Fatalf("%d slices do not make up the schedule", n)
		}
	})
}

func TestShardsOfShardsPartition(t *testing.T) {
	o := Open{Kind: Poisson, Seed: 3, Rate: 100, Duration: 20 * time.Second}
	all := collect(stream1(t, o))
	var union []Arrival
	for k := range 6 {
		union = append(union, collect(Shard(Shard(stream1(t, o), k%2, 2), k/2, 3))...)
	}
	slices.SortFunc(union, func(a, b Arrival) int { return int(a.Index) - int(b.Index) })
	if !slices.Equal(union, all) {
		t.Error("slices of slices do not make up the schedule")
	}
}

func TestShardRefusesWhatIsNoSlice(t *testing.T) {
	for _, c := range [][2]int{{0, 0}, {-1, 2}, {2, 2}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("slice %d of %d was let through", c[0], c[1])
				}
			}()
			Shard(stream1(t, Open{Kind: Even, Rate: 1, Duration: time.Second}), c[0], c[1])
		}()
	}
}

// TestDifferentSeedsDiffer: and so do neighbouring blocks.
func TestDifferentSeedsDiffer(t *testing.T) {
	for _, kind := range []Kind{Poisson, Bursty} {
		seen := map[time.Duration]uint64{}
		for seed := range uint64(200) {
			a, ok := stream1(t, Open{Kind: kind, Seed: seed, Rate: 1000, Duration: time.Minute, Dispersion: 2}).Next()
			if other, twice := seen[a.Due]; !ok || twice {
				t.Errorf("%s: seeds %d and %d begin at the same %s", kind, seed, other, a.Due)
			}
			seen[a.Due] = seed
		}
	}
}

func TestEvenIsEven(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		duration time.Duration
		n        int
		third    time.Duration
	}{{10, time.Second, 10, 200 * time.Millisecond}, {3, time.Second, 3, 666666666}, {0.5, time.Second, 1, 0}, {0.5, 4001 * time.Millisecond, 3, 4 * time.Second}, {1e9, 5, 5, 2}} {
		all := collect(stream1(t, Open{Kind: Even, Rate: c.rate, Duration: c.duration}))
		if len(all) != c.n || all[0].Due != 0 {
			t.Errorf("%v/s for %s: %d arrivals, want %d", c.rate, c.duration, len(all), c.n)
		}
		if len(all) > 2 && all[2].Due != c.third {
			t.Errorf("%v/s: the third arrival is due at %s, want %s", c.rate, all[2].Due, c.third)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for _, kind := range []Kind{Poisson, Even, Bursty} {
		o := Open{Kind: kind, Seed: 1, Rate: 0.01, Duration: 10 * time.Second, Dispersion: 3, AtLeast: 8}
		all := collect(stream1(t, o))
		if len(all) != 8 {
			t.Fatalf("%s: %d arrivals, want 8", kind, len(all))
		}
		for i, a := range all {
			if a.Due != time.Duration(i)*1250*time.Millisecond {
				t.Errorf("%s: arrival %d is due at %s", kind, i, a.Due)
			}
		}
		o.Rate = 100
		plain := o
		plain.AtLeast = 0
		if !slices.Equal(collect(stream1(t, o)), collect(stream1(t, plain))) {
			t.Errorf("%s: a floor that is met changes the sequence", kind)
		}
	}
}

func TestValidateGivesEveryProblem(t *testing.T) {
	good := Open{Kind: Bursty, Rate: 1, Duration: time.Second, Dispersion: 1}
	if err := good.Validate(); err != nil {
		t.Errorf("a good plan is refused: %v", err)
	}
	bad := Open{Kind: "lumpy", Rate: math.NaN(), Duration: -1, AtLeast: 1 << 60}
	err := bad.Validate()
	if err == nil {
		t.Fatal("a bad plan passes")
	}
	for _, want := range []string{`"lumpy"`, "rate NaN", "duration -1ns", "at least"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %q", want, err)
		}
	}
	for _, change := range []func(*Open){
		func(o *Open) { o.Rate = 0 }, func(o *Open) { o.Rate = math.Inf(1) }, func(o *Open) { o.Rate = 2e9 },
		func(o *Open) { o.Duration = MaxDuration + 1 }, func(o *Open) { o.Dispersion = 0.9 }, func(o *Open) { o.Dispersion = math.NaN() },
		func(o *Open) { o.Dispersion = 2 * MaxDispersion }, func(o *Open) { o.Rate, o.Duration = 1e9, MaxDuration },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%+v passes", o)
		}
		if _, err := NewIndex(o); err == nil {
			t.Errorf("%+v gets an index", o)
		}
		if _, err := Count(o); err == nil {
			t.Errorf("%+v is counted", o)
		}
	}
}

func TestIndexIsSmall(t *testing.T) {
	x, err := NewIndex(Open{Kind: Poisson, Seed: 1, Rate: 20000, Duration: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.before) > maxBefore {
		t.Errorf("72 million arrivals take a table of %d", len(x.before))
	}
	want := 20000.0 * 3600
	if d := math.Abs(float64(x.Count()) - want); d > 4*math.Sqrt(want) {
		t.Errorf("%d arrivals, want about %.0f", x.Count(), want)
	}
	mid := x.Count() / 2
	a, ok := x.At(mid)
	b, ok2 := x.At(mid + 1)
	if !ok || !ok2 || a.Index != mid || b.Index != mid+1 || b.Due < a.Due || math.Abs(a.Due.Seconds()-1800) > 3 {
		t.Errorf("the middle arrivals are %+v and %+v", a, b)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	for _, o := range []Open{
		{Kind: Poisson, Rate: 1e6, Duration: time.Hour}, {Kind: Even, Rate: 1e6, Duration: time.Hour},
		{Kind: Bursty, Rate: 1e4, Duration: time.Hour, Dispersion: 100}, {Kind: Poisson, Rate: 0.001, Duration: time.Second, AtLeast: 1e6},
	} {
		s := Shard(stream1(t, o), 1, 3)
		if n := testing.AllocsPerRun(10000, func() { s.Next() }); n != 0 {
			t.Errorf("%s: Next allocates %v times", o.Kind, n)
		}
	}
}

// TestSequencesStayAsTheyAre pins sequences: a committed seed must mean the same in every version and
// on every architecture. A change here breaks "same seed, same sequence" and belongs in the changelog.
func TestSequencesStayAsTheyAre(t *testing.T) {
	for kind, want := range map[Kind]string{
		Poisson: "8e47c62256828a5210052965370d0dd61040e1ab631b19d328526481ee84d63d",
		Even:    "2ab30a65c80d6ba04162ed55af87490fbccb7401eb035ce42a15cde14fd316a3",
		Bursty:  "03633c37a2023ec0403d436cc08db301039a324fc73160b908def03184b1130d",
	} {
		d := NewDigest()
		s := stream1(t, Open{Kind: kind, Seed: 42, Rate: 5000, Duration: 10 * time.Second, Dispersion: 12.5})
		for a, ok := s.Next(); ok; a, ok = s.Next() {
			d.Add(a, 0, nil)
		}
		if got := d.Sum(); got != want {
			t.Errorf("%s: the sequence of seed 42 is %s, was %s", kind, got, want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, o := range []Open{
		{Kind: Poisson, Seed: 1, Rate: 20000, Duration: MaxDuration / 1000},
		{Kind: Even, Seed: 1, Rate: 20000, Duration: MaxDuration / 1000},
		{Kind: Bursty, Seed: 1, Rate: 20000, Dispersion: 30, Duration: MaxDuration / 1000},
	} {
		b.Run(string(o.Kind), func(b *testing.B) {
			s, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := s.Next(); !ok {
					b.Fatal("the schedule ended")
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M_arrivals/s")
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	o := Open{Kind: Poisson, Seed: 1, Rate: 20000, Duration: time.Hour}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewIndex(o); err != nil {
			b.Fatal(err)
		}
	}
}
