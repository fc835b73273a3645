package record

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSnapshotOfShardsIsOneSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(samples(), 0, 60).Draw(t, "samples")
		one, a, b := NewShard(testConfig()), NewShard(testConfig()), NewShard(testConfig())
		var last time.Duration
		for i := range all {
			all[i].Done = max(all[i].Done, last) // a worker sees ends in order
			last = all[i].Done
			one.Add(&all[i])
			if rapid.Bool().Draw(t, "a") {
				a.Add(&all[i])
			} else {
				b.Add(&all[i])
			}
		}
		var merged Snapshot
		merged.Merge(a.Snapshot())
		merged.Merge(b.Snapshot())
		want := one.Snapshot()
		if merged.Totals != want.Totals || merged.Ended != uint64(len(all)) {
			t.Fatalf("totals %+v, want %+v", merged.Totals, want.Totals)
		}
		now := last + time.Duration(rapid.Int64Range(0, int64(8*time.Second)).Draw(t, "later"))
		g, w := merged.Recent(now, 2), want.Recent(now, 2)
		if g.Totals != w.Totals || g.P50 != w.P50 || g.P99 != w.P99 || g.Max != w.Max || g.SendDelayP99 != w.SendDelayP99 || g.Span != w.Span || len(g.Slowest) != len(w.Slowest) {
			t.Fatalf("recent %+v, want %+v", g, w)
		}
		for i := range w.Slowest {
			if g.Slowest[i] != w.Slowest[i] {
				t.Fatalf("slowest %+v, want %+v", g.Slowest, w.Slowest)
			}
		}
	})
}

func TestRecentLooksBackFiveSeconds(t *testing.T) {
	shard := NewShard(testConfig())
	for sec := range 20 {
		for route := range uint32(3) {
			done := time.Duration(sec)*time.Second + time.Millisecond
			took := time.Duration(route+1) * 100 * time.Microsecond
			shard.Add(&Sample{Route: route, Outcome: Answered, Status: 200, Due: done - took, Sent: done - took + 1, Done: done})
		}
	}
	s := shard.Snapshot()
	r := s.Recent(19*time.Second+500*time.Millisecond, 2)
	if r.Span != 5*time.Second || r.Totals.Answered != 15 { // seconds 14 to 18; second 19 is not over
		t.Errorf("span %s, %d answers, want 5s and 15", r.Span, r.Totals.Answered)
	}
	if len(r.Slowest) != 2 || r.Slowest[0] != (RouteRecent{Route: 2, Timed: 5, Mean: 300 * time.Microsecond, Max: 300 * time.Microsecond}) {
		t.Errorf("slowest %+v", r.Slowest)
	}
	if stalled := s.Recent(26*time.Second, 2); stalled.Totals.Ended != 0 || stalled.P99 != 0 || len(stalled.Slowest) != 0 {
		t.Errorf("a stalled target reads as %+v", stalled)
	}
	if s.Ended != 60 {
		t.Errorf("%d ended, want 60", s.Ended)
	}
}

func TestRecentBeforeTheFirstSecondIsOver(t *testing.T) {
	shard := NewShard(testConfig())
	shard.Add(&Sample{Outcome: Answered, Status: 200, Due: 0, Sent: 1, Done: 1000})
	s := shard.Snapshot()
	if r := s.Recent(300*time.Millisecond, 1); r.Totals.Answered != 1 || r.Span != 300*time.Millisecond {
		t.Errorf("recent %+v", r)
	}
	var zero Snapshot
	if r := zero.Recent(time.Minute, 3); r.Totals.Ended != 0 || len(r.Slowest) != 0 {
		t.Errorf("the zero snapshot reads as %+v", r)
	}
}
