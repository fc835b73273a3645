package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/record"
	"seatrial/schedule"
	"seatrial/traffic"
	"seatrial/traffic/recorded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// list is a source of requests that are there already.
type list struct {
	all []recorded.Request
	at  int
	err error
}

func (l *list) Scan() bool                 { l.at++; return l.at <= len(l.all) }
func (l *list) Request() *recorded.Request { return &l.all[l.at-1] }
func (l *list) Skipped() *traffic.Skips    { return &traffic.Skips{} }
func (l *list) Err() error                 { return l.err }

var day = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).UnixNano()

func drain(o *order) (at []int64, urls []string) {
	for e := o.next(); e != nil; e = o.next() {
		at, urls = append(at, e.at), append(urls, e.url)
	}
	return at, urls
}

// TestOrder: records that are no further out of order than what is held back come out in the order of their
// times, each once; equal times keep the order of the source.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "records")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var all []recorded.Request
		at := day + rapid.Int64Range(0, 1000).Draw(t, "start")
		for i := range n {
			at += rng.Int64N(int64(time.Second)) * int64(rng.IntN(2))
			all = append(all, recorded.Request{UnixNano: at, Method: []byte("GET"), URL: fmt.Appendf(nil, "/%d", i)})
		}
		want := slices.Clone(all)
		for i := range all { // each moves by less than what is held back
			j := min(len(all)-1, i+rng.IntN(5))
			if all[j].UnixNano-all[i].UnixNano < holdTime {
				all[i], all[j] = all[j], all[i]
			}
		}
		byPlace := map[string]int{}
		for i := range all {
			byPlace[string(all[i].URL)] = i
		}
		slices.SortStableFunc(want, func(a, b recorded.Request) int {
			if a.UnixNano != b.UnixNano {
				return int(a.UnixNano - b.UnixNano)
			}
			return byPlace[string(a.URL)] - byPlace[string(b.URL)]
		})
		o := newOrder(&list{all: all}, func(*recorded.Request) bool { return true }, false, 1)
		times, urls := drain(o)
		if len(urls) != n || o.late != 0 {
			t.Fatalf("%d of %d, %d late", len(urls), n, o.late)
		}
		for i := range want {
			if times[i] != want[i].UnixNano || urls[i] != string(want[i].URL) {
				t.Fatalf("record %d is %s at %d, want %s at %d", i, urls[i], times[i], want[i].URL, want[i].UnixNano)
			}
		}
	})
}

// TestSpread: requests of one second are spread over it in their order, the same for the same seed; finer
// times stay what they are; a record that comes too late is sent at once and counted.
func TestSpread(t *testing.T) {
	var all []recorded.Request
	for s := range 20 {
		for i := range 50 {
			all = append(all, recorded.Request{UnixNano: day + int64(s)*int64(time.Second), URL: fmt.Appendf(nil, "/%d/%d", s, i)})
		}
	}
	wanted := func(*recorded.Request) bool { return true }
	o := newOrder(&list{all: all}, wanted, true, 7)
	at, urls := drain(o)
	again, _ := drain(newOrder(&list{all: all}, wanted, true, 7))
	other, _ := drain(newOrder(&list{all: all}, wanted, true, 8))
	plain, _ := drain(newOrder(&list{all: all}, wanted, false, 7))
	if !slices.IsSorted(at) || !slices.Equal(at, again) || slices.Equal(at, other) || o.moved != 1000 {
		t.Errorf("sorted %v, the same again %v, with another seed %v, %d moved", slices.IsSorted(at), slices.Equal(at, again), slices.Equal(at, other), o.moved)
	}
	sum := 0.0
	for i := range at {
		offset := at[i] - all[i].UnixNano
		if urls[i] != string(all[i].URL) || offset < 0 || offset >= int64(time.Second) || plain[i] != all[i].UnixNano {
			t.Fatalf("record %d: %s is %d ns behind its second; without spreading %d", i, urls[i], offset, plain[i]-all[i].UnixNano)
		}
		sum += float64(offset)
	}
	if mean := sum / float64(len(at)); mean < 4.5e8 || mean > 5.5e8 { // 0.5 s, with a standard error of 9 ms
		t.Errorf("they are %.0f ns behind their second in the mean", mean)
	}
	fine := []recorded.Request{{UnixNano: day + 1}, {UnixNano: day + 1}, {UnixNano: day + int64(time.Minute)}, {UnixNano: day + 2}}
	o = newOrder(&list{all: fine}, wanted, true, 7)
	if at, _ := drain(o); !slices.Equal(at, []int64{day + 1, day + 1, day + int64(time.Minute), day + int64(time.Minute)}) && o.late != 1 && o.moved != 0 {
		t.Errorf("%v, %d late, %d moved", at, o.late, o.moved)
	}
}

// got is what a server saw.
type got struct {
	mu   sync.Mutex
	seen map[string]string // by path: method, header and body
}

func server(t *testing.T) (engine.Target, *got) {
	g := &got{seen: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen[r.URL.RequestURI()] = r.Method + " " + r.Header.Get("X-Kept") + " " + string(body)
	}))
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	target, err := engine.Admit(u, []netip.AddrPort{netip.MustParseAddrPort(u.Host)}, 0, engine.Proof{Kind: "environment", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return target, g
}

// send runs a feed over the slices of an engine, and gives the tally and how far each slice came.
func send(ctx context.Context, t *testing.T, name string, f *Feed, target engine.Target) (*record.Tally, []uint64) {
	t.Helper()
	e, err := httpload.Choose(name)
	if err != nil {
		t.Fatal(err)
	}
	f.Start(ctx)
	epoch := time.Now().Add(20 * time.Millisecond)
	f.Begin(epoch)
	rc := record.Config{Routes: f.cfg.Routes, End: time.Minute}
	tally := record.NewTally(rc)
	released := make([]uint64, len(f.slices))
	shards := make([]*record.Shard, len(f.slices))
	var wg sync.WaitGroup
	for k := range f.slices {
		shards[k] = record.NewShard(rc)
		wg.Go(func() {
			r, err := e.Run(ctx, httpload.Config{Target: target, Requests: f.Requests(k), Schedule: f.Schedule(k), Recorder: f.Recorder(k, shards[k]), Epoch: epoch})
			if err != nil {
				t.Error(err)
				return
			}
			released[k] = r.Released
		})
	}
	wg.Wait()
	for _, s := range shards {
		s.MergeInto(tally)
	}
	return tally, released
}

func prepare(_, target string, fields []recorded.Field, _ []byte) (Prepared, string) {
	p := Prepared{Target: []byte(Target(target))}
	if string(p.Target) == "/forbidden" {
		return p, "not named in safe_routes"
	}
	for _, f := range fields {
		p.Fields = append(p.Fields, httpload.Field{Name: f.Name, Value: []byte(f.Value)})
	}
	return p, ""
}

// TestReplay sends everything once, as it was recorded and when, through both engines and any number of
// slices.
func TestReplay(t *testing.T) {
	var all []recorded.Request
	at := day
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 1500 {
		all = append(all, recorded.Request{UnixNano: at, Method: []byte("POST"), URL: fmt.Appendf(nil, "https://shop.example/r/%d?q=1#x", i),
			Header: []recorded.Field{{Name: "X-Kept", Value: "yes"}}, Body: fmt.Appendf(nil, "body %d", i)})
		at += int64(rng.ExpFloat64() * float64(500*time.Microsecond))
	}
	all = append(all, recorded.Request{UnixNano: at, Method: []byte("GET"), URL: []byte("/forbidden")}, recorded.Request{Method: []byte("GET"), URL: []byte("/untimed")})
	for _, name := range []string{httpload.Auto, httpload.PortableOne} {
		for _, n := range []int{1, 3} {
			target, g := server(t)
			f := New(Config{Open: func() (recorded.Source, error) { return &list{all: all}, nil }, Slices: n, Routes: 1, Prepare: prepare, Spread: true})
			tally, released := send(t.Context(), t, name, f, target)
			counts, err := f.Wait()
			if err != nil {
				t.Fatal(err)
			}
			due := f.Due()
			tally.Settle(record.Intended{Routes: due})
			if err := tally.Check(); err != nil || tally.Judged.Answered != 1500 || due[0] != 1500 {
				t.Errorf("%s, %d slices: %v, %+v", name, n, err, tally.Judged)
			}
			if counts.Records != 1501 || counts.Sent != 1500 || counts.Untimed != 1 || counts.Withheld["not named in safe_routes"] != 1 || counts.Late != 0 {
				t.Errorf("%s, %d slices: %+v", name, n, counts)
			}
			g.mu.Lock()
			for i := range 1500 {
				if got := g.seen[fmt.Sprintf("/r/%d?q=1", i)]; got != fmt.Sprintf("POST yes body %d", i) {
					t.Fatalf("%s, %d slices: request %d arrived as %q", name, n, i, got)
				}
			}
			g.mu.Unlock()
			if x := f.Fidelity(); x.Gaps != uint64(1500-n) || x.Distance > 0.5 {
				t.Errorf("%s, %d slices: %+v", name, n, x)
			}
			if u := f.Unreleased(released); u[0] != 0 {
				t.Errorf("%s, %d slices: %v unreleased", name, n, u)
			}
		}
	}
}

// TestReplayStops: the rest of the recording is not read, and what was read and not sent is accounted for.
func TestReplayStops(t *testing.T) {
	endless := &generator{gap: int64(10 * time.Millisecond)}
	target, _ := server(t)
	f := New(Config{Open: func() (recorded.Source, error) { return endless, nil }, Slices: 2, Routes: 1, Prepare: prepare})
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(300*time.Millisecond, cancel)
	defer timer.Stop()
	tally, released := send(ctx, t, httpload.Auto, f, target)
	counts, err := f.Wait()
	if err != nil {
		t.Fatal(err)
	}
	tally.AddUnsent(0, f.Unreleased(released))
	tally.Settle(record.Intended{Routes: f.Due()})
	if err := tally.Check(); err != nil || tally.Judged.Answered == 0 || tally.Judged.Unsent == 0 || tally.Judged.Lost != 0 || tally.Judged.Due != counts.Sent || counts.Sent > aheadRequests+1000 {
		t.Errorf("%v: %+v of %+v", err, tally.Judged, counts)
	}
}

// generator is a recording without end.
type generator struct {
	gap int64
	n   int64
	r   recorded.Request
}

func (g *generator) Scan() bool {
	g.n++
	g.r = recorded.Request{UnixNano: day + g.n*g.gap, Method: []byte("GET"), URL: []byte("/")}
	return true
}
func (g *generator) Request() *recorded.Request { return &g.r }
func (g *generator) Skipped() *traffic.Skips    { return &traffic.Skips{} }
func (g *generator) Err() error                 { return nil }

// TestPhasesLoopsAndLimits: where a replay ends.
func TestPhasesLoopsAndLimits(t *testing.T) {
	var all []recorded.Request
	for i := range 100 {
		all = append(all, recorded.Request{UnixNano: day + int64(i)*int64(10*time.Millisecond), Method: []byte("GET"), URL: []byte("/")})
	}
	pace := func(s string) schedule.Pace {
		p, err := schedule.ParsePace(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	broken := errors.New("it broke")
	for name, c := range map[string]struct {
		cfg  Config
		want uint64
		last time.Duration
		err  error
	}{
		"twice as fast": {Config{Pace: pace("2")}, 100, 495 * time.Millisecond, nil},
		"phases":        {Config{Pace: pace("100ms@1 100ms@4")}, 50, 197500 * time.Microsecond, nil},
		"loops":         {Config{Loops: 3, Pace: pace("10")}, 300, 299 * time.Millisecond, nil},
		"limit":         {Config{Loops: 3, Limit: 150, Pace: pace("10")}, 150, 149 * time.Millisecond, nil},
		"window":        {Config{Wanted: func(at int64) bool { return at >= day+int64(500*time.Millisecond) }}, 50, 490 * time.Millisecond, nil},
		"broken":        {Config{Open: func() (recorded.Source, error) { return &list{all: all, err: broken}, nil }, Pace: pace("10"), Loops: 2}, 100, 99 * time.Millisecond, broken},
		"not there":     {Config{Open: func() (recorded.Source, error) { return nil, broken }}, 0, 0, broken},
	} {
		cfg := c.cfg
		if cfg.Open == nil {
			cfg.Open = func() (recorded.Source, error) { return &list{all: all}, nil }
		}
		cfg.Routes, cfg.Prepare = 1, prepare
		f := New(cfg)
		f.Start(t.Context())
		var last time.Duration
		n := uint64(0)
		for a, ok := f.Schedule(0).Next(); ok; a, ok = f.Schedule(0).Next() {
			if a.Index == schedule.Later {
				continue
			}
			n, last = n+1, a.Due
		}
		counts, err := f.Wait()
		if n != c.want || counts.Sent != n || last != c.last || !errors.Is(err, c.err) {
			t.Errorf("%s: %d requests, the last one at %s, %v, %+v; want %d, %s", name, n, last, err, counts, c.want, c.last)
		}
	}
}

func TestTarget(t *testing.T) {
	for in, want := range map[string]string{"": "/", "/": "/", "/a?b#c": "/a?b", "http://x": "/", "https://x:1/a/?q": "/a/?q", "?q": "/?q", "http://x?y": "/?y", "/a://b": "/a://b", "x": "x"} {
		if got := Target(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
