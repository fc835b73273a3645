package plan

import (
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/engine/httpload"
	"seatrial/fault"
	"seatrial/traffic"
)

// lru is a server that answers from a cache of the paths asked for last.
type lru struct {
	size       int
	order      *list.List
	at         map[string]*list.Element
	hits, asks int
}

func newLRU(size int) *lru {
	return &lru{size: size, order: list.New(), at: map[string]*list.Element{}}
}

// ServeHTTP is called by one client at a time.
func (c *lru) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Cache", map[bool]string{true: "hit", false: "miss"}[c.ask(r.URL.EscapedPath())])
}

func (c *lru) ask(path string) bool {
	c.asks++
	if e := c.at[path]; e != nil {
		c.hits++
		c.order.MoveToFront(e)
		return true
	}
	c.at[path] = c.order.PushFront(path)
	if c.order.Len() > c.size {
		delete(c.at, c.order.Remove(c.order.Back()).(string))
	}
	return false
}

func (c *lru) rate() float64 { return float64(c.hits) / float64(c.asks) }

// production draws requests for items whose popularity follows Zipf's law: which item is how popular is
// random, as it is in life.
func production(exponent float64, values, requests int) []string {
	random := rand.New(rand.NewPCG(uint64(values), math.Float64bits(exponent)))
	sums := make([]float64, values)
	sum := 0.0
	for r := range sums {
		sum += math.Pow(float64(r+1), -exponent)
		sums[r] = sum
	}
	ids := random.Perm(values)
	out := make([]string, requests)
	for i := range out {
		u, low, high := random.Float64()*sum, 0, values-1
		for low < high {
			if mid := (low + high) / 2; sums[mid] < u {
				low = mid + 1
			} else {
				high = mid
			}
		}
		out[i] = fmt.Sprintf("/items/%d", 100_000+ids[low])
	}
	return out
}

func recordedStream(t testing.TB, paths []string) (*traffic.Profile, *traffic.Observed) {
	t.Helper()
	b, err := traffic.NewBuilder(traffic.BuilderConfig{Kind: "access_log"})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range paths {
		b.Add(&traffic.Event{UnixNano: recorded.Add(time.Duration(i) * time.Millisecond).UnixNano(), Method: []byte("GET"), Path: []byte(p),
			Status: 200, Duration: -1, RequestSize: -1, ResponseSize: -1})
	}
	p, o, err := b.Finish(&traffic.Skips{}, recorded.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

const cacheManifest = "load:\n  source: access_log\n  source_config: {path: access.log}\n  duration: 10s\n  safe_routes: [\"GET /**\"]\n"

// poolManifest writes values of another database than production's and gives the manifest that draws from them.
func poolManifest(t testing.TB, values int) (text, file string) {
	t.Helper()
	var b strings.Builder
	for i := range values {
		fmt.Fprintf(&b, "sku-%x\n", uint32(i)*2654435761)
	}
	file = filepath.Join(t.TempDir(), "skus.txt")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return cacheManifest + fmt.Sprintf("  params: {\"GET /items/{id}\": {id: {file: %s, pick: observed}}}\n", file), file
}

// TR-24, TR-50, TR-51: a cache in front of what is generated reaches the hit rate that production's own
// stream has, within three points, for the values that the source held and for those of another pool.
func TestCachesHitAsInProduction(t *testing.T) {
	const requests = 150_000
	for _, exponent := range []float64{0.8, 1, 1.2} {
		for _, values := range []int{3000, 20_000} {
			stream := production(exponent, values, requests)
			source, observed := recordedStream(t, stream)
			text, _ := poolManifest(t, 30_000)
			plans := map[string]*Plan{
				"the source's values": compile(t, Input{Manifest: parse(t, cacheManifest), Source: source, Observed: observed}),
				"a pool":              compile(t, Input{Manifest: parse(t, text), Source: source, Observed: observed}),
			}
			for _, size := range []int{30, 300, 2000, 100_000} {
				want := newLRU(size)
				for _, p := range stream {
					want.ask(p)
				}
				for from, p := range plans {
					got := newLRU(size)
					var r httpload.Request
					for i := range uint64(requests) {
						p.At(i, &r)
						got.ask(string(r.Target))
					}
					if d := math.Abs(got.rate() - want.rate()); d > 0.03 {
						t.Errorf("exponent %g over %d values, cache of %d, %s: hit rate %.3f, production's %.3f", exponent, values, size, from, got.rate(), want.rate())
					}
				}
			}
		}
	}
}

// The same over sockets.
func TestACacheServerHitsAsInProduction(t *testing.T) {
	const requests, size = 15_000, 200
	stream := production(1, 2000, requests)
	source, observed := recordedStream(t, stream)
	p := compile(t, Input{Manifest: parse(t, cacheManifest), Source: source, Observed: observed})
	hits := func(target func(i int) string) float64 {
		cache := newLRU(size)
		server := httptest.NewServer(cache)
		defer server.Close()
		n := 0
		for i := range requests {
			answer, err := server.Client().Get(server.URL + target(i))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.Body.Close() != nil {
				t.Fatal(err)
			}
			if answer.Header.Get("X-Cache") == "hit" {
				n++
			}
		}
		return float64(n) / requests
	}
	want := hits(func(i int) string { return stream[i] })
	var r httpload.Request
	got := hits(func(i int) string { p.At(uint64(i), &r); return string(r.Target) })
	if math.Abs(got-want) > 0.03 || want < 0.3 {
		t.Errorf("hit rate %.3f, production's %.3f", got, want)
	}
}

// The values are a pure function of (seed, index), cost no allocation, and another seed ranks them anew.
func TestObservedPickIsPure(t *testing.T) {
	source, _ := recordedStream(t, production(1, 500, 20_000))
	text, file := poolManifest(t, 800)
	one := compile(t, Input{Manifest: parse(t, text), Source: source})
	two := compile(t, Input{Manifest: parse(t, text), Source: source})
	var a, b httpload.Request
	for i := range uint64(2000) {
		one.At(i, &a)
		two.At(1999-i, &b)
		two.At(i, &b)
		if !bytes.Equal(a.Target, b.Target) {
			t.Fatalf("request %d is %s and %s", i, a.Target, b.Target)
		}
	}
	if one.Routes[0].Values != 500 || one.Digest != two.Digest {
		t.Errorf("%d values of 500 ranks", one.Routes[0].Values)
	}
	if n := testing.AllocsPerRun(200, func() { one.At(7, &a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	first := func(p *Plan) string {
		counts := map[string]int{}
		best := ""
		for i := range uint64(3000) {
			p.At(i, &a)
			if counts[string(a.Target)]++; counts[string(a.Target)] > counts[best] {
				best = string(a.Target)
			}
		}
		return best
	}
	other := compile(t, Input{Manifest: parse(t, text+"  seed: 77\n"), Source: source})
	if first(one) == first(other) || one.Routes[0].Pool == other.Routes[0].Pool {
		t.Errorf("the seed does not choose the ranks: %s", first(one))
	}
	ints := strings.Replace(text, "file: "+file, "int: {min: 1, max: 1000000000}", 1)
	if got := compile(t, Input{Manifest: parse(t, ints), Source: source}).Routes[0].Values; got != 500 {
		t.Errorf("%d values of a range, want the law's 500", got)
	}
}

// The committed profile's popularity stands before the source's own.
func TestObservedPickPrefersTheProfile(t *testing.T) {
	source, _ := recordedStream(t, production(1, 500, 20_000))
	profile, _ := recordedStream(t, production(1, 50, 20_000))
	text, _ := poolManifest(t, 800)
	p := compile(t, Input{Manifest: parse(t, text), Source: source, Profile: profile, Now: recorded.Add(2 * time.Hour)})
	if p.Routes[0].Values != 50 {
		t.Errorf("%d values, want the profile's 50", p.Routes[0].Values)
	}
}

// Where nothing tells how popular values were, observed is refused in words; where the pool is smaller
// than the law, it is said.
func TestObservedPickRefusals(t *testing.T) {
	const routed = "GET /items/{id}"
	full, _ := recordedStream(t, production(1, 500, 20_000))
	bare, _ := recordedStream(t, production(1, 500, 20_000))
	for i := range bare.Routes {
		bare.Routes[i].Popularity = nil
	}
	var once []string
	for i := range 3000 {
		once = append(once, fmt.Sprintf("/items/%d", 100_000+i))
	}
	rare, _ := recordedStream(t, once)
	text, _ := poolManifest(t, 100)
	for name, c := range map[string]struct {
		source *traffic.Profile
		says   []string
	}{
		"no popularity": {bare, []string{"neither the profile nor the source", "{id}", routed}},
		"no repetition": {rare, []string{"too few", "3,000 requests on 3,000 values"}},
	} {
		_, err := Compile(Input{Manifest: parse(t, text), Source: c.source, Getenv: func(string) string { return "" }})
		var list fault.List
		if !errors.As(err, &list) || len(list) != 1 || list[0].Code != fault.MAN004 || !strings.Contains(list[0].Next, "uniform") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.says {
			if !strings.Contains(list[0].Message, w) {
				t.Errorf("%s: no %q in %s", name, w, list[0].Message)
			}
		}
	}
	p := compile(t, Input{Manifest: parse(t, text), Source: full})
	if len(p.Warnings) == 0 || !strings.Contains(strings.Join(p.Warnings, "\n"), "drawn from 100 values, and production's law runs over some 500") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

// Where each path must be checked by itself, values keep the law's weights, and those beyond its ranks are
// not sent.
func TestObservedPickOfCheckedPaths(t *testing.T) {
	source, _ := recordedStream(t, production(1, 3, 20_000))
	text := strings.Replace(cacheManifest, "safe_routes", "unsafe_routes: [\"GET /items/secret\"]\n  safe_routes", 1) +
		"  params: {\"GET /items/{id}\": {id: {values: [a, b, c, d, e, f, secret], pick: observed}}}\n"
	p := compile(t, Input{Manifest: parse(t, text), Source: source})
	if n := p.Routes[0].Values; n < 2 || n > 3 {
		t.Fatalf("%d values, want the law's three, less the forbidden one", n)
	}
	counts := map[string]float64{}
	var r httpload.Request
	const draws = 30_000
	for i := range uint64(draws) {
		p.At(i, &r)
		counts[string(r.Target)]++
	}
	if len(counts) != p.Routes[0].Values || counts["/items/secret"] > 0 {
		t.Fatalf("sent %v", counts)
	}
	var all []float64
	for _, n := range counts {
		all = append(all, n)
	}
	slices.Sort(all)
	slices.Reverse(all)
	if r := all[0] / all[len(all)-1]; r < 1.3 {
		t.Errorf("%v is even", counts)
	}
}

// A short log shows only some of the values there are. A pool under pick: observed hits as production
// all the same; of the source's own values it is said that they cannot.
func TestShortLogs(t *testing.T) {
	const requests = 20_000
	for _, exponent := range []float64{0.8, 1, 1.2} {
		stream := production(exponent, 10_000, requests)
		source, observed := recordedStream(t, stream)
		text, _ := poolManifest(t, 30_000)
		pool := compile(t, Input{Manifest: parse(t, text), Source: source})
		own := compile(t, Input{Manifest: parse(t, cacheManifest), Source: source, Observed: observed})
		want, got, ownHits := newLRU(requests), newLRU(requests), newLRU(requests)
		var r httpload.Request
		for i, p := range stream {
			want.ask(p)
			pool.At(uint64(i), &r)
			got.ask(string(r.Target))
			own.At(uint64(i), &r)
			ownHits.ask(string(r.Target))
		}
		if math.Abs(got.rate()-want.rate()) > 0.03 {
			t.Errorf("exponent %g: hit rate %.3f, production's %.3f", exponent, got.rate(), want.rate())
		}
		said := strings.Contains(strings.Join(own.Warnings, "\n"), "asked for once or twice")
		if off := ownHits.rate() - want.rate(); (off > 0.035 && !said) || (off < 0.02 && said) {
			t.Errorf("exponent %g: the source's own values hit %.3f more, and it is said: %v", exponent, off, said)
		}
		t.Logf("exponent %g: production %.3f, pool %.3f, own values %.3f", exponent, want.rate(), got.rate(), ownHits.rate())
	}
}
