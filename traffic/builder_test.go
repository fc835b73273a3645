package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/fault"

	"pgregory.net/rapid"
)

func repeat(n int, e Event) []Event {
	out := make([]Event, n)
	for i := range out {
		out[i] = e
	}
	return out
}

// The expectations of case 13: routes of poor quality.
func TestRouteQuality(t *testing.T) {
	with := func(path, route string, status int) Event {
		e := seen("GET", path)
		e.Status = status
		if path == "" {
			e.Path = nil
		}
		if route != "" {
			e.Route = []byte(route)
		}
		return e
	}
	p, o := build(t, BuilderConfig{Kind: "otel"}, []Event{
		with("/", "/", 200), with("/wp-login.php", "/", 404), with("/assets/app.4f3c9a1b.js", "/*", 200),
		with("/42/fhir/Med/9f1c2d3e4f5a6b7c", "", 200), with("/users/7", "", 200), with("", "", 200),
		with("", "/orders/:id", 200), with("/api/orders/7", "/orders/:id", 200),
	})
	want := []string{"GET /", "GET /api/orders/{id}", "GET /orders/{id}", "GET /users/{id}", "GET /{id}",
		"GET /{id}/fhir/Med/{id}", "GET /{rest...}"}
	if got := names(p); !slices.Equal(got, want) {
		t.Fatalf("routes %q\nwant   %q", got, want)
	}
	if p.Routes[0].Requests != 1 || p.Requests != 7 || p.Source.NotSent["no route and no path"] != 1 {
		t.Errorf("%+v", p)
	}
	if got := o.Tuples("GET /{id}/fhir/Med/{id}"); len(got) != 1 || !slices.Equal(got[0].Values, []string{"42", "9f1c2d3e4f5a6b7c"}) {
		t.Errorf("values %v", got)
	}
	for _, none := range []string{"GET /{rest...}", "GET /", "GET /orders/{id}"} {
		if got := o.Tuples(none); len(got) != 0 {
			t.Errorf("%s has values %v", none, got)
		}
	}
}

func TestCardinality(t *testing.T) {
	var events []Event
	add := func(n int, path string) { events = append(events, repeat(n, seen("GET", path))...) }
	for i := range 51 { // 51 of 204: collapses
		add(4, "/shop/"+word(i))
	}
	for i := range 51 { // 51 of 51*20: one in twenty and not more, so it stays
		add(20, "/docs/"+word(i))
	}
	for i := range 50 { // not more than 50
		add(1, "/tags/"+word(i))
	}
	add(4, "/users/me")
	add(9, "/users/self")
	add(3, "/users/77")
	p, _ := build(t, BuilderConfig{}, events)
	got := strings.Join(names(p), "\n")
	for _, want := range []string{"GET /shop/{id}", "GET /docs/" + word(3), "GET /tags/" + word(3), "GET /users/self", "GET /users/{id}"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{"GET /shop/" + word(3), "GET /docs/{id}", "GET /tags/{id}", "GET /users/me"} {
		if strings.Contains(got, not) {
			t.Errorf("%s is there", not)
		}
	}
	if n := route(t, p, "GET /users/{id}").Requests; n != 7 {
		t.Errorf("users: %d requests, want 7", n)
	}
}

// word gives distinct words without digits.
func word(i int) string {
	return "w" + string([]byte{'a' + byte(i/676%26), 'a' + byte(i/26%26), 'a' + byte(i%26)})
}

func TestDeclaredWins(t *testing.T) {
	p, o := build(t, BuilderConfig{Declared: []string{"/shop/{category}/{slug}", "/shop/sale/{slug}", "POST /shop/:a/:b"}}, []Event{
		seen("GET", "/shop/ropes/blue"), seen("GET", "/shop/sale/red"), seen("POST", "/shop/sale/red"), seen("GET", "/shop/ropes/blue/"),
	})
	want := []string{"GET /shop/ropes/blue/", "GET /shop/sale/{slug}", "POST /shop/{a}/{b}", "GET /shop/{category}/{slug}"}
	if got := names(p); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if got := o.Tuples("GET /shop/{category}/{slug}"); len(got) != 1 || !slices.Equal(got[0].Values, []string{"ropes", "blue"}) {
		t.Errorf("%v", got)
	}
	_, err := NewBuilder(BuilderConfig{Declared: []string{"shop", "/ok", "/a/{"}})
	var list fault.List
	if !errors.As(err, &list) || len(list) != 2 || list[0].Code != fault.MAN004 {
		t.Errorf("bad templates: %v", err)
	}
}

func TestQueryNeverReachesTheProfile(t *testing.T) {
	p, o := build(t, BuilderConfig{}, []Event{seen("GET", "/users/7?token=secret#frag"), seen("GET", "/a?b=secret")})
	data, err := p.Encode()
	if err != nil || bytes.Contains(data, []byte("secret")) || bytes.Contains(data, []byte("frag")) {
		t.Errorf("%s %v", data, err)
	}
	if got := o.Tuples("GET /users/{id}"); len(got) != 1 || got[0].Values[0] != "7" {
		t.Errorf("%v", got)
	}
}

func TestApache10k(t *testing.T) {
	events := combined(t, "apache_combined_10k.log")
	p, _ := build(t, BuilderConfig{Kind: "access_log"}, events)
	if p.Requests != 10000 || p.Window.Seconds != 298859 || math.Abs(p.Rate-0.033461) > 5e-7 || p.RateAssumed != "" {
		t.Errorf("%d requests, window %v, rate %v", p.Requests, p.Window.Seconds, p.Rate)
	}
	if p.Source.OutOfOrder != 4915 {
		t.Errorf("%d out of order, want 4915", p.Source.OutOfOrder)
	}
	status := map[string]uint64{}
	var sum, curve uint64
	for i := range p.Routes {
		sum += p.Routes[i].Requests
		for k, n := range p.Routes[i].Status {
			status[k] += n
		}
		if p.Routes[i].Latency != nil {
			t.Errorf("%s has durations", p.Routes[i].Name())
		}
	}
	if want := map[string]uint64{"2xx": 9171, "3xx": 609, "4xx": 217, "5xx": 3}; !reflect.DeepEqual(status, want) || sum != 10000 {
		t.Errorf("status %v, sum %d", status, sum)
	}
	for _, n := range p.PerMinute {
		curve += n
	}
	if curve != 10000 || p.PerMinuteBucket != 240 || len(p.PerMinute) > maxCurve {
		t.Errorf("curve of %d buckets of %v s sums to %d", len(p.PerMinute), p.PerMinuteBucket, curve)
	}
	// From the log itself: the root is asked for 572 times with GET.
	if n := route(t, p, "GET /").Requests; n != 572 {
		t.Errorf("GET / %d times, want 572", n)
	}
	t.Logf("%d routes, dispersion %.2f, gaps %d", len(p.Routes), p.Dispersion, len(p.Gaps))
}

// Order and splitting must not matter (TR-21), at any size and with every safeguard in play.
func TestOrderDoesNotMatter(t *testing.T) {
	events := combined(t, "nginx_shop_fa_1k.log")
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for i := range 3000 {
		e := seen([]string{"GET", "POST"}[i%2], fmt.Sprintf("/%s/%s/%d", word(i%70), word(i*7), i%13))
		e.UnixNano, e.Duration, e.ResponseSize = base+int64(i)*1e6, time.Duration(i%97)*time.Millisecond, int64(i)
		events = append(events, e)
	}
	for i := range 9000 {
		events = append(events, seen("GET", "/big/"+word(i)+"x"+word(i/17)))
	}
	cfg := BuilderConfig{Keep: 32}
	want, wantValues := build(t, cfg, events)
	wantBytes := encode(t, want)
	for seed := range uint64(3) {
		shuffled := slices.Clone(events)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got, gotValues := build(t, cfg, shuffled)
		got.Source.OutOfOrder = want.Source.OutOfOrder
		if !bytes.Equal(encode(t, got), wantBytes) {
			t.Fatal("the profile depends on order")
		}
		if !reflect.DeepEqual(gotValues, wantValues) {
			t.Fatal("the values depend on order")
		}
	}
	if n := len(wantValues.Tuples("GET /big/{id}")); n != 32 {
		t.Errorf("%d values kept, want 32", n)
	}
}

func encode(t testing.TB, p *Profile) []byte {
	t.Helper()
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOrderProperty(t *testing.T) {
	segs := []string{"a", "b", "", "7", "app.3f9a2c1b.js", "x.js", "users", "%2e", "me", "12.jpg"}
	rapid.Check(t, func(rt *rapid.T) {
		paths := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(segs), 1, 4).Draw(rt, "segs"), "/")
		}), 1, 60).Draw(rt, "paths")
		events := make([]Event, len(paths))
		for i, p := range paths {
			events[i] = seen("GET", p)
		}
		a, av := build(t, BuilderConfig{MaxDistinct: 2, Keep: 4}, events)
		slices.Reverse(events)
		b, bv := build(t, BuilderConfig{MaxDistinct: 2, Keep: 4}, events)
		if !bytes.Equal(encode(t, a), encode(t, b)) || !reflect.DeepEqual(av, bv) {
			rt.Fatalf("%q", paths)
		}
		if err := a.check(); err != nil {
			rt.Fatal(err)
		}
	})
}

// A hostile log of distinct paths must not grow the tree without end, nor hide what else is served.
func TestHostileInputIsBounded(t *testing.T) {
	b, err := NewBuilder(BuilderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var path []byte
	e, good := seen("GET", ""), seen("GET", "/api/v1/anchors")
	for i := range 100_000 {
		path = path[:0]
		for d, h := 0, mix64(uint64(i)); d < 5; d++ {
			path = append(path, '/', 'q', 'a'+byte(h%26), 'a'+byte(h>>8%26))
			h = mix64(h)
		}
		e.Path = path
		b.Add(&e)
		b.Add(&good)
		if b.paths.nodes > maxNodes {
			t.Fatalf("%d nodes", b.paths.nodes)
		}
	}
	if n := nodes(&b.paths.root) - 1; n != b.paths.nodes {
		t.Errorf("%d nodes, counted %d", n, b.paths.nodes)
	}
	p, _, err := b.Finish(nil, testNow)
	if err != nil || p.Requests != 200_000 {
		t.Errorf("%d requests, %v", p.Requests, err)
	}
	if err := p.check(); err != nil {
		t.Error(err)
	}
}

// Depth is cut when breadth does not help: empty segments beside placeholders.
func TestDepthIsCut(t *testing.T) {
	b, err := NewBuilder(BuilderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		var path []byte
		for bit := range 24 {
			path = append(path, "/7"[:1+mix64(uint64(i))>>bit&1]...)
		}
		e := seen("GET", string(path))
		b.Add(&e)
	}
	if b.paths.nodes > maxNodes || b.paths.depth == maxDepth || nodes(&b.paths.root)-1 != b.paths.nodes {
		t.Errorf("%d nodes, counted %d, depth %d", nodes(&b.paths.root)-1, b.paths.nodes, b.paths.depth)
	}
	p, _, err := b.Finish(nil, testNow)
	if err != nil || p.check() != nil {
		t.Errorf("%v, %v", err, p.check())
	}
}

// Half a million slugs at one position cost one placeholder and leave the rest alone.
func TestManySlugs(t *testing.T) {
	b, err := NewBuilder(BuilderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	e := seen("GET", "")
	for i := range 100_000 {
		e.Path = append(append(e.Path[:0], "/p/"...), word(i)+"-"+word(i/17576)...)
		b.Add(&e)
		e.Path = append(append(e.Path[:0], "/static/"...), word(i%40)...)
		b.Add(&e)
	}
	p, o, err := b.Finish(nil, testNow)
	if err != nil || len(p.Routes) != 41 || len(o.Tuples("GET /p/{id}")) != DefaultKeep {
		t.Errorf("%v: %d routes, %d values", err, len(p.Routes), len(o.Tuples("GET /p/{id}")))
	}
}

func nodes(n *node) int {
	sum := 1
	for _, c := range n.below() {
		sum += nodes(c)
	}
	return sum
}

func TestTimes(t *testing.T) {
	at := func(offsets ...time.Duration) []Event {
		var out []Event
		for _, d := range offsets {
			e := seen("GET", "/")
			e.UnixNano = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(d).UnixNano()
			out = append(out, e)
		}
		return out
	}
	none, _ := build(t, BuilderConfig{}, repeat(3, seen("GET", "/")))
	if none.Window != nil || none.Rate != AssumedRate || none.RateAssumed == "" {
		t.Errorf("no times: %+v", none)
	}
	one, _ := build(t, BuilderConfig{}, at(0, 0))
	if one.Window == nil || one.Rate != AssumedRate || one.RateAssumed == "" || one.Dispersion != 0 {
		t.Errorf("one instant: %+v", one)
	}
	empty, _ := build(t, BuilderConfig{}, nil)
	if empty.Rate != 0 || empty.RateAssumed != "" || len(empty.Routes) != 0 {
		t.Errorf("nothing: %+v", empty)
	}
	var even []time.Duration
	for i := range 100 {
		even = append(even, time.Duration(i)*time.Second)
	}
	for i := range 100 {
		even = append(even, time.Duration(200+i)*time.Second)
	}
	gap, _ := build(t, BuilderConfig{}, at(even...))
	if len(gap.Gaps) != 1 || gap.Gaps[0].Seconds != 101 || gap.Window.Seconds != 299 {
		t.Errorf("gaps %v, window %v", gap.Gaps, gap.Window)
	}
	fine := []time.Duration{}
	for i := range 50 {
		fine = append(fine, time.Duration(i)*time.Millisecond, time.Duration(i)*time.Millisecond+500*time.Millisecond)
	}
	short, _ := build(t, BuilderConfig{}, at(fine...))
	if len(short.Gaps) != 1 || short.Gaps[0].Seconds != 0.451 {
		t.Errorf("gaps %v, want one of 451 ms", short.Gaps)
	}
	busy := []time.Duration{}
	for i := range 400 {
		busy = append(busy, time.Duration(i/8)*time.Second, time.Duration(i/8+100)*time.Second)
	}
	whole, _ := build(t, BuilderConfig{}, at(busy...))
	if len(whole.Gaps) != 1 || whole.Gaps[0].Seconds != 51 {
		t.Errorf("gaps %v, want one of 51 s", whole.Gaps)
	}
	long, _ := build(t, BuilderConfig{}, at(0, time.Hour, 3*365*24*time.Hour))
	if long.Window.Seconds != 3*365*86400 || len(long.PerMinute) > maxCurve || long.PerMinute[0] != 2 {
		t.Errorf("three years: %v s, %d buckets", long.Window.Seconds, len(long.PerMinute))
	}
}

func TestDispersion(t *testing.T) {
	even, clumps := &timeline{}, &timeline{}
	for i := range int64(1000) {
		even.add(i, 3)
		clumps.add(i, (i%2)*6)
	}
	if d := even.dispersion(); d != 0 {
		t.Errorf("even: %v", d)
	}
	if d := clumps.dispersion(); math.Abs(d-3) > 0.01 { // mean 3, variance 9
		t.Errorf("clumps: %v, want 3", d)
	}
}

func TestTimelineKeepsItsSumAndIgnoresOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		units := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(-1<<33, 1<<33)), 1, 12).Draw(rt, "units")
		ceil := rapid.Bool().Draw(rt, "ceil")
		a, b := timeline{ceil: ceil}, timeline{ceil: ceil}
		for i, u := range units {
			a.add(u, 1)
			b.add(units[len(units)-1-i], 1)
		}
		var sum int64
		for _, c := range a.cells() {
			sum += c
		}
		if sum != int64(len(units)) || a.shift != b.shift || a.lo != b.lo || !slices.Equal(a.cells(), b.cells()) {
			rt.Fatalf("%v: sum %d, %d cells and %d", units, sum, len(a.cells()), len(b.cells()))
		}
	})
}

func TestPeakConcurrency(t *testing.T) {
	var o overlap
	for _, x := range [][2]int64{{0, 10}, {5, 15}, {9, 11}, {10, 20}, {30, 30}} {
		o.add(x[0], x[1])
	}
	if got := o.peak(); got != 3 {
		t.Errorf("peak %d, want 3", got)
	}
	grid := overlap{}
	for i := range int64(exactIntervals + 1000) { // 10 in flight at any time
		grid.add(i*gridUnit, (i+10)*gridUnit)
	}
	if got := grid.peak(); got != 10 {
		t.Errorf("peak on the grid %d, want 10", got)
	}
	if got := (&overlap{}).peak(); got != 0 {
		t.Errorf("nothing: %d", got)
	}
}

func TestQuantiles(t *testing.T) {
	var small, large dist
	for i := int64(1); i <= 100; i++ {
		small.add(101-i, exactSamples)
	}
	if q := small.quantiles(1); *q != (Quantiles{100, 50, 95, 99, 100}) {
		t.Errorf("%+v", q)
	}
	for i := int64(1); i <= 100_000; i++ {
		large.add(i*1000, exactSamples)
	}
	q := large.quantiles(1)
	for _, c := range []struct{ got, want float64 }{{q.P50, 50e6}, {q.P95, 95e6}, {q.P99, 99e6}, {q.Max, 100e6}} {
		if math.Abs(c.got-c.want)/c.want > 0.001 {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.Int64Range(0, math.MaxInt64).Draw(rt, "v")
		if got := binValue(bin(v)); math.Abs(float64(got)-float64(v)) > float64(v)/1024 {
			rt.Fatalf("%d became %d", v, got)
		}
	})
}

func TestAddDoesNotAllocate(t *testing.T) {
	b, err := NewBuilder(BuilderConfig{Declared: []string{"/shop/{a}/{b}"}})
	if err != nil {
		t.Fatal(err)
	}
	events := []Event{seen("GET", "/api/users/123/orders"), seen("GET", "/shop/x/y"), seen("GET", "/%d8%a2/x"), seen("GET", "/a/app.3f9a2c1b.js")}
	routed := seen("GET", "/u/7")
	routed.Route = []byte("/u/:id")
	events = append(events, routed)
	if n := testing.AllocsPerRun(200, func() {
		for i := range events {
			b.Add(&events[i])
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTemplate(b *testing.B) {
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf, _ = appendShape(buf[:0], []byte("0af76519-16cd-43dd-8448-eb211c80319c"))
	}
}

func BenchmarkAdd(b *testing.B) {
	events := combined(b, "apache_combined_10k.log")
	builder, err := NewBuilder(BuilderConfig{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		builder.Add(&events[i%len(events)])
		i++
	}
}

// A duration stands in the profile as the decimal figure that it is, and comes back as the same
// number of nanoseconds.
func TestDurationsKeepTheirNanoseconds(t *testing.T) {
	b, err := NewBuilder(BuilderConfig{Kind: "otel"})
	if err != nil {
		t.Fatal(err)
	}
	const odd = 22_124_797 * time.Nanosecond
	for i := range int64(MinBaseline) {
		b.Add(&Event{UnixNano: 1 + i, Method: []byte("GET"), Path: []byte("/a"), Duration: odd})
	}
	p, _, err := b.Finish(nil, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := p.Routes[0].Baseline(); !ok || got != odd || p.Routes[0].Latency.P95 != 22.124797 {
		t.Errorf("baseline %v, p95 %v ms", got, p.Routes[0].Latency.P95)
	}
}
