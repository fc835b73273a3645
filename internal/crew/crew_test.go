package crew

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/record"
	"seatrial/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered sends request i to /i%3, so that routes and targets can be told apart.
type numbered struct{}

func (numbered) At(i uint64, r *httpload.Request) {
	r.Route, r.Method, r.Target = uint32(i%3), "GET", append(r.Target[:0], '/', byte('a'+i%3))
}

// shop counts what arrives by path.
func shop(t *testing.T) (engine.Target, func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	seen := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path]++
		mu.Unlock()
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	target, err := engine.Admit(u, []netip.AddrPort{netip.MustParseAddrPort(u.Host)}, 0, engine.Proof{Kind: "environment", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return target, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

func job(target engine.Target, slices int) Job {
	open := schedule.Open{Kind: schedule.Even, Rate: 500, Duration: 600 * time.Millisecond, Seed: 7}
	sender, _ := httpload.Choose(httpload.Auto)
	return Job{
		Engine:   sender,
		Config:   httpload.Config{Target: target, Requests: numbered{}, Limits: engine.Limits{MaxConnections: 8, Timeout: 5 * time.Second}, StopDrain: time.Second},
		Schedule: func() schedule.Schedule { s, _ := schedule.New(open); return s },
		Record:   record.Config{Routes: 3, End: 6 * time.Second},
		Slices:   slices,
	}
}

// TestSlicesSendTheWhole: however many workers, the service sees the sequence of one, and the merged
// account holds every request once.
func TestSlicesSendTheWhole(t *testing.T) {
	for _, n := range []int{0, 1, 7} {
		target, seen := shop(t)
		c := New(job(target, n))
		tally, results, err := c.Run(t.Context())
		if err != nil || len(results) != max(1, n) {
			t.Fatalf("%d slices: %d results, %v", n, len(results), err)
		}
		routes := []uint64{100, 100, 100}
		tally.Settle(record.Intended{Routes: routes})
		if err := tally.Check(); err != nil {
			t.Errorf("%d slices: %v", n, err)
		}
		if got := seen(); got["/a"] != 100 || got["/b"] != 100 || got["/c"] != 100 || tally.Judged.Answered != 300 {
			t.Errorf("%d slices: the service saw %v, answered %d", n, got, tally.Judged.Answered)
		}
		var live uint64
		for _, s := range c.Snapshots() {
			live += s.Responses
		}
		if live != 300 {
			t.Errorf("%d slices: the live totals say %d", n, live)
		}
	}
}

// TestStopIsNoError: what was not released any more is for the caller to count as unsent.
func TestStopIsNoError(t *testing.T) {
	target, _ := shop(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tally, results, err := New(job(target, 2)).Run(ctx)
	if err != nil || len(results) != 2 || results[0].Released != 0 || results[1].Released != 0 {
		t.Fatalf("%+v, %v", results, err)
	}
	tally.AddUnsent(0, []uint64{100, 100, 100})
	tally.Settle(record.Intended{Routes: []uint64{100, 100, 100}})
	if err := tally.Check(); err != nil {
		t.Error(err)
	}
	if a := tally.Judged; a.Due != 300 || a.Unsent != 300 || a.Answered != 0 {
		t.Errorf("account %+v, want 300 unsent", a)
	}
}

// TestWorkersErrors: one that cannot start is told, and does not pass for a run.
func TestWorkersErrors(t *testing.T) {
	target, _ := shop(t)
	j := job(target, 2)
	j.Config.Host = "two\r\nlines"
	if _, _, err := New(j).Run(t.Context()); err == nil {
		t.Error("a host with a line break was sent")
	}
}

func TestShareAddsUp(t *testing.T) {
	for _, c := range []struct {
		total, n int
		want     []int
	}{{8, 3, []int{3, 3, 2}}, {64, 1, []int{64}}} {
		var got []int
		for k := range c.n {
			got = append(got, share(c.total, k, c.n))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d over %d workers: %v, want %v", c.total, c.n, got, c.want)
		}
	}
}
