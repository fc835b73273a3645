package traffic

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"seatrial/fault"

	"pgregory.net/rapid"
)

var testSalt = []byte("sixteen bytes or more of a secret")

// motley makes n events in order of time that meet every rule of templating: identifiers, positions that
// only the whole collapses, rare literals beside collapsed ones, declared routes, routes that the source
// names, unmatched requests, durations and sizes.
func motley(n int) []Event {
	random := rand.New(rand.NewPCG(uint64(n), 5))
	items := newZipf(900, 1)
	at := testNow.Add(-time.Hour).UnixNano()
	out := make([]Event, n)
	for i := range out {
		at += random.Int64N(int64(50 * time.Millisecond))
		if i == n/2 {
			at += int64(time.Hour / 6)
		}
		e := seen([]string{"GET", "GET", "GET", "POST", "BREW"}[random.IntN(5)], "")
		switch k := random.IntN(100); {
		case k < 40:
			e.Path = fmt.Appendf(nil, "/items/%d", 1000+items.at(1, uint64(i)))
		case k < 55:
			e.Path = []byte("/shop/" + word(random.IntN(60)) + "/view") // of about n/7 requests: collapses only where they are few
		case k < 65:
			e.Path = []byte("/people/" + word(random.IntN(2+n/500)))
		case k < 68:
			e.Path = fmt.Appendf(nil, "/people/%d", random.IntN(1000)+5000)
		case k < 75:
			e.Path = []byte("/tags/" + word(random.IntN(9)) + "/x")
		case k < 85:
			e.Path, e.Route = fmt.Appendf(nil, "/u/%d/p/%d", random.IntN(50), random.IntN(5000)), []byte("/u/:user/p/:post")
		case k < 90:
			e.Path, e.Route = []byte("/lost/"+word(random.IntN(100))), []byte("/")
		case k < 95:
			e.Path = fmt.Appendf(nil, "/static/app.%08xab.js", 1<<28+random.IntN(30))
		default:
			e.Path = []byte("/" + word(random.IntN(20)))
		}
		e.UnixNano, e.Status = at, []int{200, 200, 200, 304, 404, 500, 0}[random.IntN(7)]
		if random.IntN(4) > 0 {
			e.Duration, e.ResponseSize = time.Duration(random.Int64N(int64(time.Second))), random.Int64N(100_000)
		}
		if random.IntN(9) == 0 {
			e.UnixNano = 0
		}
		out[i] = e
	}
	return out
}

var mixedConfig = BuilderConfig{Kind: "access_log", Declared: []string{"/tags/{tag}/x"}, Salt: testSalt, Keep: -1}

// partial counts events and takes them through a file.
func partial(t testing.TB, cfg BuilderConfig, name string, events []Event) *Partial {
	t.Helper()
	b, err := NewBuilder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		b.Add(&events[i])
	}
	data, err := b.encodePartial(&Skips{Format: "test", Read: int64(len(events)), Parsed: int64(len(events)), Reasons: map[string]int64{"own": 1}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPartial(bytes.NewReader(data), name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func merged(t testing.TB, parts []*Partial) *Profile {
	t.Helper()
	m := NewMerger()
	for _, p := range parts {
		if err := m.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	p, _, err := m.Finish(testNow)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func whole(t testing.TB, cfg BuilderConfig, parts int, events []Event) *Profile {
	t.Helper()
	b, err := NewBuilder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		b.Add(&events[i])
	}
	n := int64(len(events))
	p, _, err := b.Finish(&Skips{Format: "test", Read: n, Parsed: n, Reasons: map[string]int64{"own": int64(parts)}}, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TR-31: the partials of 100 shards make, byte for byte, the profile that recording the whole makes,
// however the events were dealt out and in whatever order the partials come.
func TestMergedPartialsAreTheWhole(t *testing.T) {
	for _, n := range []int{50, 3000, 30_000} {
		events := motley(n)
		want := encode(t, whole(t, mixedConfig, 100, events))
		for name, shard := range map[string]func(i int) int{
			"in turns":     func(i int) int { return i % 100 },
			"at random":    func(i int) int { return int(mix64(uint64(i)) % 100) },
			"in stretches": func(i int) int { return i * 100 / n },
			"unequal":      func(i int) int { return int(100 * math.Pow(float64(mix64(uint64(i))%1000)/1000, 4)) },
		} {
			dealt := make([][]Event, 100)
			for i, e := range events {
				dealt[shard(i)] = append(dealt[shard(i)], e)
			}
			for order := range uint64(2) {
				var parts []*Partial
				for _, k := range rand.New(rand.NewPCG(order, 1)).Perm(100) {
					parts = append(parts, partial(t, mixedConfig, fmt.Sprint(k), dealt[k]))
				}
				if got := encode(t, merged(t, parts)); !bytes.Equal(got, want) {
					t.Errorf("%d events dealt %s: %s", n, name, firstDifference(got, want))
				}
			}
		}
	}
}

func firstDifference(got, want []byte) string {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q (after %q)", i+1, a[i], b[i], a[max(0, i-6):i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}

// The same on small inputs of any kind.
func TestMergeProperty(t *testing.T) {
	segs := []string{"a", "b", "", "7", "app.3f9a2c1b.js", "x.js", "users", "%2e", "me", "12.jpg"}
	cfg := BuilderConfig{Kind: "k", MaxDistinct: 2, Salt: testSalt, Keep: -1}
	rapid.Check(t, func(rt *rapid.T) {
		paths := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return "/" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(segs), 1, 4).Draw(rt, "segs"), "/")
		}), 1, 60).Draw(rt, "paths")
		n := rapid.IntRange(1, 5).Draw(rt, "shards")
		events, dealt := make([]Event, len(paths)), make([][]Event, n)
		for i, p := range paths {
			events[i] = seen("GET", p)
			k := rapid.IntRange(0, n-1).Draw(rt, "shard")
			dealt[k] = append(dealt[k], events[i])
		}
		var parts []*Partial
		for k := range dealt {
			parts = append(parts, partial(t, cfg, fmt.Sprint(k), dealt[k]))
		}
		if got, want := encode(t, merged(t, parts)), encode(t, whole(t, cfg, n, events)); !bytes.Equal(got, want) {
			rt.Fatalf("%q: %s", paths, firstDifference(got, want))
		}
	})
}

// Beyond what is counted exactly, histograms and the grid of what is in flight are still the same, and
// sketches lie within what they state.
func TestMergeBeyondExactCounting(t *testing.T) {
	const n = 300_000
	items, events := newZipf(80_000, 0.9), make([]Event, n)
	for i := range events {
		e := seen("GET", fmt.Sprintf("/items/%d", 100_000+items.at(3, uint64(i))))
		e.UnixNano = testNow.Add(time.Duration(i) * 700 * time.Microsecond).UnixNano()
		e.Duration = time.Duration(mix64(uint64(i)) % uint64(time.Second))
		events[i] = e
	}
	a, dealt := whole(t, mixedConfig, 8, events), make([][]Event, 8)
	for i, e := range events {
		dealt[mix64(uint64(i))%8] = append(dealt[mix64(uint64(i))%8], e)
	}
	var parts []*Partial
	for k := range dealt {
		parts = append(parts, partial(t, mixedConfig, fmt.Sprint(k), dealt[k]))
	}
	b := merged(t, parts)
	x, y := a.Routes[0].Popularity["id"], b.Routes[0].Popularity["id"]
	if x.Distinct != y.Distinct || x.DistinctError != sketchError {
		t.Errorf("%d distinct values, the whole has %d", y.Distinct, x.Distinct)
	}
	if math.Abs(*x.Exponent-*y.Exponent) > 0.02 || math.Abs(*y.Exponent-0.9) > 0.05 {
		t.Errorf("exponent %g, the whole has %g", *y.Exponent, *x.Exponent)
	}
	a.Routes[0].Popularity, b.Routes[0].Popularity = nil, nil
	if got, want := encode(t, b), encode(t, a); !bytes.Equal(got, want) {
		t.Error(firstDifference(got, want))
	}
}

func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	e, ok := fault.As(err)
	if !ok || e.Code != fault.TRF003 {
		t.Errorf("not refused: %v", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Message+" "+e.Next, w) {
			t.Errorf("no %q in: %s Next: %s", w, e.Message, e.Next)
		}
	}
}

func TestMergeRefusals(t *testing.T) {
	events := motley(40)
	base := func() *Partial { return partial(t, mixedConfig, "a.json", events) }
	with := func(change func(*BuilderConfig)) *Partial {
		cfg := mixedConfig
		change(&cfg)
		return partial(t, cfg, "b.json", events)
	}
	for _, c := range []struct {
		other *Partial
		says  string
	}{
		{with(func(c *BuilderConfig) { c.Salt = []byte("another secret of enough bytes") }), "different salts"},
		{with(func(c *BuilderConfig) { c.Kind = "otel" }), "one is of access_log and the other of otel"},
		{with(func(c *BuilderConfig) { c.Declared = nil }), "different route templates"},
	} {
		m := NewMerger()
		if err := m.Add(base()); err != nil {
			t.Fatal(err)
		}
		refused(t, m.Add(c.other), "a.json", "b.json", c.says)
	}
	m, p := NewMerger(), base()
	if err := m.Add(p); err != nil {
		t.Fatal(err)
	}
	refused(t, m.Add(p), "twice")
	_, _, err := NewMerger().Finish(testNow)
	refused(t, err, "no partial")
	read := func(text string) error { _, err := ReadPartial(strings.NewReader(text), "x.json"); return err }
	refused(t, read(string(encode(t, sample(t)))), "x.json is a finished profile", "--partial --salt-file")
	refused(t, read(`{"seatrial_partial": 7}`), "version 7; this build reads version 1", "same version")
	refused(t, read(`{"a": 1}`), "damaged")
	refused(t, read(`{"seatrial_partial": 1}`), "damaged")
	refused(t, read(`{"seatrial_`), "not JSON")
	_, err = ReadPartialFile(filepath.Join(t.TempDir(), "none"), "none")
	refused(t, err, "no partial recording at none")
	b, err := NewBuilder(BuilderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.encodePartial(nil); err == nil {
		t.Error("a partial without a shared salt was written")
	}
}

// TR-23: what has the shape of a value, or stands where there are more names than a place may have, is in
// no partial, and its file is for its owner only.
func TestPartialHoldsNoValues(t *testing.T) {
	b, err := NewBuilder(mixedConfig)
	if err != nil {
		t.Fatal(err)
	}
	events := []Event{seen("GET", "/orders/AB-47110815?token=sesame"), seen("GET", "/mail/ann@example.org"), seen("GET", "/static/app.deadbeef42.js"),
		seen("GET", "/tags/secretive/x"), seen("GET", "/health")}
	for i := range firstFanout + 10 {
		events = append(events, seen("GET", "/names/"+word(i)+word(i)))
	}
	for i := range events {
		b.Add(&events[i])
	}
	path := filepath.Join(t.TempDir(), "part.json")
	if err := b.WritePartialFile(path, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"47110815", "sesame", "ann@", "deadbeef", "secretive", word(7) + word(7), string(testSalt)} {
		if bytes.Contains(data, []byte(not)) {
			t.Errorf("the partial holds %q", not)
		}
	}
	if !bytes.Contains(data, []byte(`"health"`)) {
		t.Error("the partial lost a literal")
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func FuzzReadPartial(f *testing.F) {
	for _, n := range []int{0, 2, 20} {
		b, err := NewBuilder(mixedConfig)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range motley(n) {
			b.Add(&e)
		}
		data, err := b.encodePartial(&Skips{Format: "test", Read: int64(n)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"seatrial_partial":1,"id":"a","salt_mark":"b","exact_samples":16384,"values_held":1,"paths":{"fanout":1,"depth":2,"root":{"n":1}},"routes":{"fanout":0,"depth":2,"root":{"n":0}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadPartial(bytes.NewReader(data), "f")
		if err != nil {
			if _, ok := fault.As(err); !ok || p != nil {
				t.Fatalf("%v with %v", p, err)
			}
			return
		}
		m := NewMerger()
		if err := m.Add(partial(t, mixedConfig, "good", motley(20))); err != nil {
			t.Fatal(err)
		}
		if err := m.Add(p); err != nil {
			refused(t, err)
			m = NewMerger()
			if err := m.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		if profile, _, err := m.Finish(testNow); err != nil {
			refused(t, err)
		} else if profile.Requests > 0 && profile.check() != nil {
			t.Fatal(profile.check())
		}
	})
}
