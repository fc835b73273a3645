package traffic

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
)

func sample(t testing.TB) *Profile {
	t.Helper()
	var events []Event
	for i := range 40 {
		e := seen("GET", "/users/7")
		e.UnixNano = testNow.Add(-time.Hour + time.Duration(i*i)*time.Second).UnixNano()
		e.Duration, e.ResponseSize = time.Duration(i)*time.Millisecond, int64(i)
		events = append(events, e)
	}
	p, _ := build(t, BuilderConfig{Kind: "otel"}, append(events, seen("BREW", "/pot")))
	return p
}

func TestProfileRoundTrip(t *testing.T) {
	p := sample(t)
	path := filepath.Join(t.TempDir(), "sub", "traffic.json")
	for range 2 { // the second write replaces
		if err := p.WriteFile(path); err != nil {
			t.Fatal(err)
		}
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadProfileFile(path, testNow.Add(time.Hour), 0)
	if err != nil {
		t.Fatal(err)
	}
	if again := encode(t, back); !bytes.Equal(first, again) {
		t.Errorf("not byte-stable:\n%s\n%s", first, again)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v left behind, %v", entries, err)
	}
	if base, ok := route(t, back, "GET /users/{id}").Baseline(); !ok || base != 37*time.Millisecond {
		t.Errorf("baseline %v %v, want x(38) = 37 ms", base, ok)
	}
}

func TestProfileRefusals(t *testing.T) {
	good := string(encode(t, sample(t)))
	change := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, c := range map[string]struct {
		text string
		now  time.Time
		code fault.Code
		says string
	}{
		"good":         {good, testNow, "", ""},
		"just fresh":   {good, testNow.Add(DefaultMaxAge), "", ""},
		"stale":        {good, testNow.Add(DefaultMaxAge + time.Second), fault.LOD025, "336h0m1s ago"},
		"future":       {good, testNow.Add(-time.Minute), fault.TRF003, "1m0s from now"},
		"version":      {change(`"version": 2`, `"version": 3`), testNow, fault.TRF003, "version 3; this build reads versions 1 to 2"},
		"old version":  {change(`"version": 2`, `"version": 1`), testNow, "", ""},
		"no version":   {change(`"version": 2,`, ``), testNow, fault.TRF003, "no version"},
		"cut":          {good[:len(good)/2], testNow, fault.TRF003, "not JSON"},
		"empty":        {"", testNow, fault.TRF003, "damaged"},
		"unknown key":  {change(`"version": 2`, `"version": 2, "users": ["ann"]`), testNow, fault.TRF003, "users"},
		"trailing":     {good + "{}", testNow, fault.TRF003, "damaged"},
		"wrong sum":    {change(`"requests": 41`, `"requests": 42`), testNow, fault.TRF003, "damaged"},
		"wrong weight": {change(`"weight": 0.9`, `"weight": 0.8`), testNow, fault.TRF003, "weight"},
		"wrong path":   {change(`/users/{id}`, `users`), testNow, fault.TRF003, "starts with /"},
		"no date":      {change(`"recorded": "2026-12-01T06:00:00Z"`, `"recorded": "0001-01-01T00:00:00Z"`), testNow, fault.TRF003, "recorded"},
		"type":         {change(`"requests": 41`, `"requests": "x"`), testNow, fault.TRF003, "requests"},
	} {
		p, err := ReadProfile(strings.NewReader(c.text), "t.json", c.now, 0)
		if c.code == "" {
			if err != nil || p == nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		e, ok := fault.As(err)
		if p != nil || !ok || e.Code != c.code || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadProfileFile(filepath.Join(t.TempDir(), "none.json"), testNow, 0); err == nil {
		t.Error("a file that is not there was read")
	} else if e, ok := fault.As(err); !ok || e.Code != fault.TRF003 {
		t.Error(err)
	}
}

func FuzzReadProfile(f *testing.F) {
	f.Add(encode(f, sample(f)))
	f.Add([]byte(`{"version":1,"recorded":"2026-12-01T00:00:00Z","routes":[]}`))
	f.Add([]byte(`{"version":1e9}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadProfile(bytes.NewReader(data), "f", testNow, 0)
		if (p == nil) != (err != nil) {
			t.Fatalf("%v with %v", p, err)
		}
		if err != nil {
			if _, ok := fault.As(err); !ok {
				t.Fatalf("no code: %v", err)
			}
			return
		}
		once := encode(t, p)
		again, err := ReadProfile(bytes.NewReader(once), "f", testNow, 0)
		if err != nil || !bytes.Equal(encode(t, again), once) {
			t.Fatalf("does not round-trip: %v", err)
		}
		Cover(p, &Policy{})
	})
}
