package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatrial/engine/httpload"
	"seatrial/fault"
	"seatrial/schedule"
	"seatrial/traffic"
)

// targets gives the distinct targets of a plan's whole sequence, sorted.
func targets(p *Plan) []string {
	set := map[string]bool{}
	var r httpload.Request
	s := p.Schedule()
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		p.At(a.Index, &r)
		set[string(r.Target)] = true
	}
	return sortedKeys(set)
}

// sequence writes down (index, due, route, target) of slice k of n.
func sequence(p *Plan, k, n int) []string {
	var out []string
	var r httpload.Request
	s := schedule.Shard(p.Schedule(), k, n)
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		p.At(a.Index, &r)
		out = append(out, fmt.Sprintf("%d %d %d %s %s", a.Index, a.Due, r.Route, r.Method, r.Target))
	}
	return out
}

// TestSlicesSendTheSame is LD-3: any number of workers send exactly the sequence of one.
func TestSlicesSendTheSame(t *testing.T) {
	source, observed := shop(t)
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		kind := rapid.SampledFrom([]string{"poisson", "even"}).Draw(rt, "kind")
		text := otelManifest + fmt.Sprintf("  seed: %d\n  arrivals: %s\n  rate: 40/s\n  warmup: 0s\n", seed, kind)
		if rapid.Bool().Draw(rt, "params") {
			text += "  params: {'GET /orders/{id}': {id: {int: {min: 1, max: 100000}}}}\n"
		}
		p := compile(t, Input{Manifest: parse(t, text), Source: source, Observed: observed})
		whole := sequence(p, 0, 1)
		var parts []string
		for k := range 7 {
			parts = append(parts, sequence(p, k, 7)...)
		}
		slices.Sort(whole)
		slices.Sort(parts)
		if !slices.Equal(whole, parts) || uint64(len(whole)) != p.Arrivals() {
			rt.Fatalf("%d requests of one worker are not the %d of seven", len(whole), len(parts))
		}
		again := compile(t, Input{Manifest: parse(t, text), Source: source, Observed: observed})
		other := compile(t, Input{Manifest: parse(t, text, flag("load.seed", fmt.Sprint(seed^1))), Source: source, Observed: observed})
		if d := p.ScheduleDigest(); d != again.ScheduleDigest() || d == other.ScheduleDigest() {
			rt.Fatal("the digest of the sequence does not follow the seed")
		}
	})
}

// TestUnreleasedIsTheRest: what slices released until a stop and what they did not is the whole.
func TestUnreleasedIsTheRest(t *testing.T) {
	source, observed := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest+"  rate: 200/s\n"), Source: source, Observed: observed})
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(rt, "slices")
		released := make([]uint64, n)
		warmup, judged := uint64(0), make([]uint64, len(p.Routes))
		for k := range released {
			s := schedule.Shard(p.Schedule(), k, n)
			stop := rapid.Uint64Range(0, p.Arrivals()/uint64(n)+1).Draw(rt, "released")
			for a, ok := s.Next(); ok && released[k] < stop; a, ok = s.Next() {
				released[k]++
				if a.Due < p.Warmup {
					warmup++
				} else {
					judged[p.Route(a.Index)]++
				}
			}
		}
		restWarmup, rest := p.Unreleased(released)
		allWarmup, all := p.Due()
		if warmup+restWarmup != allWarmup {
			rt.Fatalf("%d + %d in the warm-up are not %d", warmup, restWarmup, allWarmup)
		}
		for i := range all {
			if judged[i]+rest[i] != all[i] {
				rt.Fatalf("route %d: %d + %d are not %d", i, judged[i], rest[i], all[i])
			}
		}
	})
}

// TestRouteIsThatOfTheRequest: what counts requests without making them counts the same ones.
func TestRouteIsThatOfTheRequest(t *testing.T) {
	source, observed := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest), Source: source, Observed: observed})
	var r httpload.Request
	for i := range uint64(5000) {
		if p.At(i, &r); r.Route != p.Route(i) {
			t.Fatalf("request %d has route %d, and is counted for %d", i, r.Route, p.Route(i))
		}
	}
}

// TestDueIsTheSchedule checks the intended account.
func TestDueIsTheSchedule(t *testing.T) {
	source, observed := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest+"  rate: 200/s\n"), Source: source, Observed: observed})
	warmup, judged := p.Due()
	sum := warmup
	for i, n := range judged {
		sum += n
		if share := float64(n) / (200 * 20); p.Routes[i].Weight > 0.1 && (share < 0.7*p.Routes[i].Weight || share > 1.3*p.Routes[i].Weight) {
			t.Errorf("%s has %d of the requests for weight %v", p.Routes[i].Name, n, p.Routes[i].Weight)
		}
	}
	if sum != p.Arrivals() || warmup < 700 || warmup > 1300 {
		t.Errorf("%d in the warm-up and %v judged are not %d arrivals", warmup, judged, p.Arrivals())
	}
	if p.End() != p.Open.Duration+p.Limits.Timeout {
		t.Errorf("End: %v", p.End())
	}
}

func TestAtDoesNotAllocate(t *testing.T) {
	source, observed := shop(t)
	for _, params := range []string{"", "  params: {'GET /orders/{id}': {id: {int: {min: 1, max: 100000}}}}\n", "  params: {'GET /orders/{id}': {id: {values: [a, b, c], pick: zipf}}}\n"} {
		p := compile(t, Input{Manifest: parse(t, otelManifest+params), Source: source, Observed: observed})
		r := httpload.Request{Target: make([]byte, 0, 256)}
		i := uint64(0)
		if n := testing.AllocsPerRun(1000, func() { p.At(i, &r); i++ }); n != 0 {
			t.Errorf("%v allocations per request with %q", n, params)
		}
	}
}

// readings gives a path as a careless server could read it: decoded several times, with backslashes
// for slashes, parameters cut, slashes merged and dot segments removed. It shares no code with the
// policy.
func readings(path string) []string {
	var out []string
	for range 4 {
		for _, p := range []string{path, strings.ReplaceAll(path, `\`, "/")} {
			var segs []string
			for s := range strings.SplitSeq(p, "/") {
				s, _, _ = strings.Cut(s, ";")
				switch s {
				case "", ".":
				case "..":
					segs = segs[:max(0, len(segs)-1)]
				default:
					segs = append(segs, s)
				}
			}
			out = append(out, "/"+strings.ToLower(strings.Join(segs, "/")))
		}
		decoded, err := url.PathUnescape(path)
		if err != nil {
			break
		}
		path = decoded
	}
	return out
}

// TestNoUnsafeRequest is TR-40 at its end: whatever production's clients once sent, no request that
// unsafe_routes forbids comes out of a plan.
func TestNoUnsafeRequest(t *testing.T) {
	pieces := []string{"..", "%2e%2e", "%252e%252e", ".", "/", "%2f", "%2F", "%252f", `\`, "%5c", "admin", "%61dmin", "ADMIN", "adm%69n", ";x=1", "%3b", "//", "users", "7", "é", " ", "%", "%zz", "?", "#", "{", "x"}
	m := parse(t, "load:\n  source: access_log\n  source_config: {path: x}\n  rate: 50/s\n  duration: 5s\n  warmup: 0s\n  safe_routes: ['GET /**']\n  unsafe_routes: ['GET /admin/**', '* /x/admin/**']\n")
	rapid.Check(t, func(rt *rapid.T) {
		b, err := traffic.NewBuilder(traffic.BuilderConfig{Kind: "access_log", Declared: []string{"/x/{a}", "/x/{a}/{b}", "/x/pre-{a}.html"}})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 20).Draw(rt, "requests") {
			path := rapid.SampledFrom([]string{"/x/", "/", "/x/pre-", "/x/1/"}).Draw(rt, "head") +
				strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(rt, "pieces"), "")
			b.Add(&traffic.Event{UnixNano: recorded.UnixNano(), Method: []byte("GET"), Path: []byte(path), Duration: -1})
		}
		source, observed, err := b.Finish(&traffic.Skips{}, recorded.Add(time.Hour))
		if err != nil {
			return // a log of which nothing is left is refused by name
		}
		p, err := Compile(Input{Manifest: m, Source: source, Observed: observed})
		if e, ok := fault.As(err); ok && e.Code == fault.LOD013 {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		for _, target := range targets(p) {
			for _, r := range readings(target) {
				if r == "/admin" || strings.HasPrefix(r, "/admin/") || strings.HasPrefix(r, "/x/admin/") {
					rt.Fatalf("%q is sent and can be read as %q", target, r)
				}
			}
			if strings.ContainsAny(target, " ?#\\{}\r\n") || !strings.HasPrefix(target, "/") {
				rt.Fatalf("%q is not a request-target", target)
			}
		}
	})
}

func BenchmarkAt(b *testing.B) {
	source, observed := shop(b)
	p := compile(b, Input{Manifest: parse(b, otelManifest), Source: source, Observed: observed})
	var r httpload.Request
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p.At(uint64(i), &r)
	}
}

func BenchmarkScheduleDigest(b *testing.B) {
	source, observed := shop(b)
	p := compile(b, Input{Manifest: parse(b, otelManifest+"  rate: 100000/s\n"), Source: source, Observed: observed})
	for b.Loop() {
		if p.ScheduleDigest() == "" {
			b.Fatal("no digest")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(p.Arrivals()), "ns/arrival")
}
