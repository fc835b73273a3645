package record

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatrial/fault"
)

func testConfig() Config {
	return Config{Routes: 3, Warmup: 2 * time.Second, End: 20 * time.Second,
		Limits: [][]time.Duration{{time.Millisecond, 50 * time.Millisecond}, nil, {time.Second}}}
}

// samples draws ended arrivals as a driver could report them.
func samples() *rapid.Generator[Sample] {
	return rapid.Custom(func(t *rapid.T) Sample {
		ns := func(label string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, label))
		}
		s := Sample{Route: rapid.Uint32Range(0, 2).Draw(t, "route"), Outcome: Outcome(rapid.IntRange(0, int(NumOutcomes)-1).Draw(t, "outcome")),
			Due: ns("due", 10*time.Second), Wait: ns("wait", time.Second)}
		s.Done = s.Due + ns("response", 3*time.Second)
		if s.Outcome.Sent() && s.Outcome.Timed() && s.Outcome != TimedOutConnect || s.Outcome == Abandoned {
			s.Sent = min(s.Due+s.Wait+ns("delay", 5*time.Millisecond)+1, s.Done)
			s.FirstByte = min(s.Sent+ns("first byte", time.Second), s.Done)
			s.BytesIn, s.BytesOut = 100, 50
		}
		if s.Outcome == Answered {
			s.Status = rapid.SampledFrom([]uint16{0, 99, 200, 301, 404, 500, 503, 600}).Draw(t, "status")
		}
		return s
	})
}

func sameTally(t failer, got, want *Tally) {
	t.Helper()
	if got.Warmup != want.Warmup || got.Judged != want.Judged || got.Stray != want.Stray || got.defect != want.defect {
		t.Fatalf("totals differ: %+v %+v, want %+v %+v", got.Warmup, got.Judged, want.Warmup, want.Judged)
	}
	for i := range want.Routes {
		g, w := &got.Routes[i], &want.Routes[i]
		if g.Account != w.Account || g.Outcomes != w.Outcomes || g.Status != w.Status || g.BytesIn != w.BytesIn || g.BytesOut != w.BytesOut ||
			!slices.Equal(g.Under, w.Under) || !slices.Equal(g.NetUnder, w.NetUnder) {
			t.Fatalf("route %d differs", i)
		}
		from := w.histograms()
		for j, h := range g.histograms() {
			sameHistogram(t, *h, *from[j])
		}
	}
	if len(got.Series) != len(want.Series) {
		t.Fatalf("%d seconds, want %d", len(got.Series), len(want.Series))
	}
	for i := range want.Series {
		g, w := got.Series[i], want.Series[i]
		if (g.Response == nil) != (w.Response == nil) {
			t.Fatalf("second %d: one has no histogram", i)
		}
		if g.Response != nil {
			sameHistogram(t, g.Response, w.Response)
		}
		if g.Response, w.Response = nil, nil; g != w {
			t.Fatalf("second %d: %+v, want %+v", i, g, w)
		}
	}
}

// TestMergeOfShardsIsOneShard: however samples are dealt to shards and in whatever order and grouping
// the tallies are merged, the result is the tally of one shard that saw them all.
func TestMergeOfShardsIsOneShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := testConfig()
		one := NewShard(c)
		shards := make([]*Shard, rapid.IntRange(1, 4).Draw(t, "shards"))
		for i := range shards {
			shards[i] = NewShard(c)
		}
		var in Intended
		in.Routes = make([]uint64, c.Routes)
		for _, s := range rapid.SliceOfN(samples(), 0, 60).Draw(t, "samples") {
			one.Add(&s)
			shards[rapid.IntRange(0, len(shards)-1).Draw(t, "shard")].Add(&s)
			if s.Due < c.Warmup {
				in.Warmup++
			} else {
				in.Routes[s.Route]++
			}
		}
		var tallies []*Tally
		for _, s := range shards {
			tallies = append(tallies, s.Tally())
		}
		for len(tallies) > 1 { // any tree of merges
			i := rapid.IntRange(0, len(tallies)-1).Draw(t, "into")
			j := rapid.IntRange(0, len(tallies)-2).Draw(t, "from")
			if j >= i {
				j++
			}
			tallies[i].Merge(tallies[j])
			tallies = slices.Delete(tallies, j, j+1)
		}
		sameTally(t, tallies[0], one.Tally())
		tallies[0].Settle(in)
		if err := tallies[0].Check(); err != nil {
			t.Fatalf("the account does not balance: %v", err)
		}
	})
}

// TestAccountBalancesWithLosses: what the schedule intended and nobody recorded is lost, and the
// account balances; what was recorded and never intended is a mismatch.
func TestAccountBalancesWithLosses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := testConfig()
		shard := NewShard(c)
		in := Intended{Routes: make([]uint64, c.Routes), Series: make([]uint64, 11)}
		lost := make([]uint64, c.Routes)
		for _, s := range rapid.SliceOfN(samples(), 0, 60).Draw(t, "samples") {
			dropped := rapid.Bool().Draw(t, "dropped")
			in.Series[bin(s.Due, c.Step())]++
			switch {
			case s.Due < c.Warmup:
				in.Warmup++
			default:
				in.Routes[s.Route]++
				if dropped || s.Outcome == Lost || s.Outcome == Unwatched {
					lost[s.Route]++
				}
			}
			if !dropped {
				shard.Add(&s)
			}
		}
		tally := shard.Tally()
		tally.Settle(in)
		if err := tally.Check(); err != nil {
			t.Fatalf("the account does not balance: %v", err)
		}
		for i := range lost {
			if got := tally.Routes[i].Account; got.Lost != lost[i] || got.Due != in.Routes[i] {
				t.Fatalf("route %d: %+v, want %d lost of %d", i, got, lost[i], in.Routes[i])
			}
		}
		for i, x := range tally.Series {
			var sum uint64
			for _, n := range x.ByOutcome {
				sum += n
			}
			if x.Due != in.Series[i] || sum != x.Due {
				t.Fatalf("second %d: due %d, outcomes %d, want %d", i, x.Due, sum, in.Series[i])
			}
		}
		in.Routes[1] = tally.Routes[1].Account.Ended() - min(1, tally.Routes[1].Account.Ended())
		if tally.Routes[1].Account.Ended() > 0 {
			tally.Settle(in)
			wantGEN002(t, tally.Check(), "route 1")
		}
	})
}

func wantGEN002(t failer, err error, says string) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != fault.GEN002 || !strings.Contains(f.Message, says) {
		t.Fatalf("error %v, want GEN-002 that says %q", err, says)
	}
}

func TestCheckFindsEveryMismatch(t *testing.T) {
	sample := Sample{Route: 1, Outcome: Answered, Status: 200, Due: 3 * time.Second, Sent: 3*time.Second + 5, Done: 4 * time.Second}
	for says, spoil := range map[string]func(*Tally){
		"different configurations": func(t *Tally) { t.Merge(NewTally(Config{Routes: 3})) },
		"counted for 1 routes":     func(t *Tally) { t.Settle(Intended{Routes: []uint64{1}}) },
		"does not exist":           func(t *Tally) { t.Stray++ },
		"warm-up":                  func(t *Tally) { t.Warmup.Due++ },
		"all routes":               func(t *Tally) { t.Judged.Answered++; t.Judged.Due++ },
		"route 1":                  func(t *Tally) { t.Routes[1].Account.Failed++ },
		"the outcomes make":        func(t *Tally) { t.Routes[1].Outcomes[Reset]++ },
		"have a status":            func(t *Tally) { t.Routes[1].Status[3]++ },
		"the histogram holds":      func(t *Tally) { t.Routes[1].Response.Record(1) },
	} {
		shard := NewShard(testConfig())
		shard.Add(&sample)
		tally := shard.Tally()
		if err := tally.Check(); err != nil {
			t.Fatalf("before it was spoiled: %v", err)
		}
		spoil(tally)
		wantGEN002(t, tally.Check(), says)
	}
}

func TestStraySamplesAreNotSwallowed(t *testing.T) {
	for _, s := range []Sample{{Route: 3, Outcome: Answered}, {Route: 0, Outcome: NumOutcomes}, {Route: 1 << 31, Outcome: 255}} {
		shard := NewShard(testConfig())
		shard.Add(&s)
		wantGEN002(t, shard.Tally().Check(), "1 samples")
	}
}

func TestDefectsSurviveMerging(t *testing.T) {
	bad := NewTally(testConfig())
	bad.Merge(NewTally(Config{Routes: 9}))
	good := NewTally(testConfig())
	good.Merge(bad)
	good.Merge(nil)
	wantGEN002(t, good.Check(), "different configurations")
}

// TestWhatEntersTheTimes pins, outcome by outcome, what counts where.
func TestWhatEntersTheTimes(t *testing.T) {
	const (
		timed = 1 << iota
		response
		isError
		sent
	)
	want := map[Outcome]int{
		Lost: 0, Unwatched: 0, UnsentLate: 0, Answered: timed | response | sent,
		ConnectRefused: response | isError | sent, ConnectFailed: response | isError | sent, TLSFailed: response | isError | sent,
		Reset: timed | response | isError | sent, EarlyClose: timed | response | isError | sent, InvalidResponse: timed | response | isError | sent,
		StreamReset: timed | response | isError | sent, StreamRefused: timed | response | isError | sent, WentAway: timed | response | isError | sent,
		CheckFailed:     timed | response | isError | sent,
		TimedOutConnect: timed | response | isError | sent, TimedOutFirst: timed | response | isError | sent, TimedOut: timed | response | isError | sent,
		Abandoned: sent, UnsentLimit: timed | response | isError, UnsentRate: 0, UnsentStop: 0, UnsentPolicy: 0,
	}
	words := map[string]bool{}
	for o := range NumOutcomes {
		got := 0
		for bit, is := range map[int]bool{timed: o.Timed(), response: o.Response(), isError: o.Error(), sent: o.Sent()} {
			if is {
				got |= bit
			}
		}
		if got != want[o] {
			t.Errorf("%v: %04b, want %04b", o, got, want[o])
		}
		groups := 0
		for _, in := range []bool{o == Lost || o == Unwatched, o == Answered, o.Failed(), o.TimedOut(), o == Abandoned, o.Unsent()} {
			if in {
				groups++
			}
		}
		if groups != 1 {
			t.Errorf("%v stands in %d groups of the account", o, groups)
		}
		if o.String() == "unknown" || o.Words() == "unknown" || words[o.String()] || words[o.Words()+" "] {
			t.Errorf("outcome %d has no name of its own: %q, %q", o, o, o.Words())
		}
		words[o.String()], words[o.Words()+" "] = true, true
	}
	if NumOutcomes.String() != "unknown" || NumOutcomes.Words() != "unknown" {
		t.Error("what is no outcome has a name")
	}
}

func TestRouteTimes(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	shard := NewShard(testConfig())
	for _, s := range []Sample{
		{Outcome: Answered, Status: 200, Due: ms(3000), Wait: ms(4), Sent: ms(3005), FirstByte: ms(3040), Done: ms(3051), BytesIn: 7, BytesOut: 3},
		{Outcome: Answered, Status: 503, Due: ms(3000), Sent: ms(3000), FirstByte: ms(3001), Done: ms(3001)},
		{Outcome: TimedOut, Due: ms(4000), Sent: ms(4000), Done: ms(14000)},
		{Outcome: UnsentLimit, Due: ms(4000), Wait: ms(10000), Done: ms(14000)},
		{Outcome: ConnectRefused, Due: ms(4000), Done: ms(4000)},
		{Outcome: Abandoned, Due: ms(5000), Sent: ms(5002), Done: ms(5003)},
		{Outcome: Answered, Status: 404, Due: ms(100), Sent: ms(100), Done: ms(101)}, // warm-up
	} {
		shard.Add(&s)
	}
	tally := shard.Tally()
	r := &tally.Routes[0]
	for _, c := range []struct {
		name     string
		h        *Histogram
		n        uint64
		min, max time.Duration
	}{
		{"response", r.Response, 4, ms(1), ms(10000)}, {"service", r.Service, 3, ms(1), ms(10000)},
		{"send delay", r.SendDelay, 4, 0, ms(2)}, {"net", r.Net, 4, ms(1), ms(10000)},
		{"first byte", r.FirstByte, 2, ms(1), ms(35)}, {"wait", r.Wait, 4, 0, ms(10000)},
	} {
		if c.h.Count() != c.n || c.h.Min() != c.min || c.h.Max() != c.max {
			t.Errorf("%s: %d from %s to %s, want %d from %s to %s", c.name, c.h.Count(), c.h.Min(), c.h.Max(), c.n, c.min, c.max)
		}
	}
	// The limits of route 0 are 1 ms and 50 ms; the first answer took 51 ms, of which 1 ms was send delay.
	// The 503 came in 1 ms and is no valid answer.
	if !slices.Equal(r.Under, []uint64{0, 0}) || !slices.Equal(r.NetUnder, []uint64{0, 1}) {
		t.Errorf("under %v, net %v", r.Under, r.NetUnder)
	}
	if r.Responses() != 5 || r.Errors() != 4 || r.ClientErrors() != 0 || r.Status != [StatusClasses]uint64{2: 1, 5: 1} || r.BytesIn != 7 || r.BytesOut != 3 {
		t.Errorf("responses %d, errors %d, status %v", r.Responses(), r.Errors(), r.Status)
	}
	if tally.Warmup != (Account{Due: 1, Answered: 1}) || tally.Judged.Due != 6 || tally.Judged.Sent() != 5 {
		t.Errorf("warm-up %+v, judged %+v", tally.Warmup, tally.Judged)
	}
	if x := tally.Series[3]; x.Due != 2 || x.Answered != 2 || x.Valid != 1 || x.Errors != 1 || x.DelayMax != ms(1) || x.Response.Count() != 2 {
		t.Errorf("second 3: %+v", x)
	}
	if x := tally.Series[0]; x.Due != 1 || x.Valid != 1 || x.Status[4] != 1 {
		t.Errorf("second 0: %+v", x)
	}
}

func TestSeriesIsBounded(t *testing.T) {
	for end, want := range map[time.Duration]time.Duration{0: time.Second, time.Hour: time.Second, 4096 * time.Second: 2 * time.Second,
		24 * time.Hour: 32 * time.Second} {
		c := Config{Routes: 1, End: end}
		if c.Step() != want {
			t.Errorf("a run of %s has steps of %s, want %s", end, c.Step(), want)
		}
		tally := NewTally(c)
		for _, due := range []time.Duration{-time.Second, 0, end, end + 1000*time.Hour} {
			tally.add(&Sample{Outcome: Answered, Due: due, Done: due + 1})
		}
		if len(tally.Series) > MaxSeries || tally.Series[len(tally.Series)-1].Due == 0 {
			t.Errorf("a run of %s has a series of %d", end, len(tally.Series))
		}
	}
	if got := (Config{End: time.Hour, SeriesStep: time.Minute}).Step(); got != time.Minute {
		t.Errorf("a declared step reads as %s", got)
	}
}

// load drives a shard as a run of 100 routes does: latencies log-normal about 5 ms, some failures.
func load(shard *Shard, routes, n int, rate float64) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		due := time.Duration(float64(i) / rate * 1e9)
		took := time.Duration(5e6 * (1 + rng.ExpFloat64()*rng.ExpFloat64()))
		delay := time.Duration(1e5 * rng.ExpFloat64())
		s := Sample{Route: uint32(rng.IntN(routes)), Outcome: Answered, Status: 200, Due: due, Sent: due + delay + 1,
			FirstByte: due + delay + took - took/8, Done: due + delay + took}
		if i%1000 == 0 {
			s.Outcome, s.Done = TimedOut, due+10*time.Second
		}
		shard.Add(&s)
	}
}

func TestMemoryOfAHundredRoutes(t *testing.T) {
	const n, rate = 400_000, 400.0
	shard := NewShard(Config{Routes: 100, End: time.Duration(n / rate * 1e9)})
	load(shard, 100, n, rate)
	if got := shard.tally.Bytes(); got > 10<<20 {
		t.Errorf("100 routes over %d seconds take %d KiB", int(n/rate), got>>10)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	shard := NewShard(testConfig())
	load(shard, 3, 20000, 2000)
	s := Sample{Route: 2, Outcome: Answered, Status: 200, Due: 9 * time.Second, Sent: 9*time.Second + 1000, FirstByte: 9*time.Second + 5e6, Done: 9*time.Second + 6e6}
	if n := testing.AllocsPerRun(1000, func() { shard.Add(&s) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

// TestShardIsSafeForConcurrentUse is for the race detector, and counts.
func TestShardIsSafeForConcurrentUse(t *testing.T) {
	shard := NewShard(testConfig())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 500 {
				due := time.Duration(i) * 10 * time.Millisecond
				shard.Add(&Sample{Route: uint32(w % 3), Outcome: Answered, Status: 200, Due: due, Sent: due + 1, Done: due + 2})
				if i%100 == 0 {
					_ = shard.Snapshot()
					_ = shard.Tally()
				}
			}
		})
	}
	wg.Wait()
	tally := shard.Tally()
	if tally.Warmup.Answered+tally.Judged.Answered != 2000 || shard.Snapshot().Answered != 2000 {
		t.Errorf("%+v %+v, want 2,000 answers", tally.Warmup, tally.Judged)
	}
}

func BenchmarkShardAdd(b *testing.B) {
	shard := NewShard(Config{Routes: 100, End: time.Minute})
	load(shard, 100, 50000, 1000)
	b.ReportAllocs()
	s := Sample{Outcome: Answered, Status: 200}
	x := uint32(1)
	for b.Loop() {
		x = x*1664525 + 1013904223
		s.Route, s.Due = x>>16%100, time.Duration(x)*10
		s.Sent, s.FirstByte, s.Done = s.Due+time.Duration(x>>20), s.Due+time.Duration(x>>8), s.Due+time.Duration(x>>7)
		shard.Add(&s)
	}
}

// TestExpectedStatusIsNoError: an answer of a status that the request names as right is valid, whatever its
// class, and stands apart from the errors of that class.
func TestExpectedStatusIsNoError(t *testing.T) {
	shard := NewShard(Config{Routes: 1, End: time.Second})
	for _, s := range []Sample{{Outcome: Answered, Status: 503, Expected: true}, {Outcome: Answered, Status: 404, Expected: true}, {Outcome: Answered, Status: 200, Expected: true},
		{Outcome: Answered, Status: 503}, {Outcome: Answered, Status: 404}} {
		shard.Add(&s)
	}
	r := &shard.Tally().Routes[0]
	if r.Errors() != 1 || r.ClientErrors() != 1 || r.Account.Answered != 5 || r.Status != [StatusClasses]uint64{2: 1, 4: 1, 5: 1, 6: 2} {
		t.Errorf("%d errors, %d client errors, %v", r.Errors(), r.ClientErrors(), r.Status)
	}
	if err := shard.Tally().Check(); err != nil {
		t.Error(err)
	}
	if x := shard.Tally().Series[0]; x.Valid != 4 || x.Errors != 1 {
		t.Errorf("%+v", x)
	}
}
