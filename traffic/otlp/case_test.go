package otlp

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// casePath is a file of a published case.
func casePath(t testing.TB, number, file string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", "cases", number+"-*", file))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s, %s: %v %v", number, file, found, err)
	}
	return found[0]
}

// ofCase reads the files of a published case as one source.
func ofCase(t *testing.T, number string, files ...string) (*Source, *measured) {
	t.Helper()
	for i := range files {
		files[i] = casePath(t, number, files[i])
	}
	s := openFiles(t, files...)
	return s, measure(t, s)
}

func counts(m *measured) map[string]int64 {
	c := map[string]int64{}
	for name, r := range m.routes {
		c[name] = r.Count
	}
	return c
}

func wantCounts(t *testing.T, s *Source, m *measured, want map[string]int64) {
	t.Helper()
	if s.Err() != nil || !reflect.DeepEqual(counts(m), want) {
		t.Errorf("routes %v (%v), want %v", counts(m), s.Err(), want)
	}
}

func TestCase09EndBeforeStart(t *testing.T) {
	s, m := ofCase(t, "09", "traces.json")
	wantCounts(t, s, m, map[string]int64{"GET /r": 6})
	if d := m.durations["GET /r"]; !reflect.DeepEqual(d, []int64{0, 50_000_000}) {
		t.Errorf("durations %v", d)
	}
	if n := s.Skipped().Notes["no duration"]; n != 4 || s.Counts().NoDuration != 4 {
		t.Errorf("%d without a duration", n)
	}
	if m.window() != 0 {
		t.Errorf("the window is %v s", m.window())
	}
}

func TestCase10KindSpellings(t *testing.T) {
	s, m := ofCase(t, "10", "traces.jsonl")
	wantCounts(t, s, m, map[string]int64{"GET /k": 3})
	if k, want := s.Counts().ByKind, (ByKind{Unspecified: 2, Internal: 1, Server: 3, Client: 2, Unknown: 2}); k != want {
		t.Errorf("kinds %+v, want %+v", k, want)
	}
	skips := s.Skipped()
	reasons := map[string]int64{"unspecified kind": 2, "internal span": 1, "client span": 2, "unknown kind": 2}
	if !reflect.DeepEqual(skips.Reasons, reasons) || skips.Read != 10 || skips.Parsed != 10 {
		t.Errorf("%+v", skips)
	}
	if skips.Notes["kind 99"] != 1 || skips.Notes["kind server"] != 1 {
		t.Errorf("unknown kinds are not named: %v", skips.Notes)
	}
}

func TestCase11SnakeCaseAndBatches(t *testing.T) {
	s, m := ofCase(t, "11", "traces.jsonl")
	wantCounts(t, s, m, map[string]int64{"GET /s/5": 1, "GET /s/{id}": 1})
	if m.durations["GET /s/5"][0] != 20_000_000 || m.durations["GET /s/{id}"][0] != 50_000_000 {
		t.Errorf("durations %v", m.durations)
	}
}

func TestCase12Fixed64(t *testing.T) {
	s, m := ofCase(t, "12", "traces.jsonl")
	wantCounts(t, s, m, map[string]int64{"GET /f": 3})
	if d := m.durations["GET /f"]; !reflect.DeepEqual(d, []int64{1, 50_000_000}) {
		t.Errorf("durations %v", d)
	}
}

func TestCase13RouteQuality(t *testing.T) {
	s := openFiles(t, casePath(t, "13", "traces.jsonl"))
	var got []string
	for s.Scan() {
		e := s.Event()
		got = append(got, strings.Join([]string{string(e.Method), string(e.Route), string(e.Path)}, " "))
	}
	want := []string{"GET / /", "GET / /wp-login.php", "GET /* /assets/app.4f3c9a1b.js", "GET  /42/fhir/Med/9f1c2d3e4f5a6b7c"}
	if len(got) < 5 || !reflect.DeepEqual(got[:4], want) || !strings.HasPrefix(got[4], "GET  /users/") {
		t.Errorf("events %q", got)
	}
	if n := s.Skipped().Reasons["no route and no path"]; n != 1 || s.Counts().Routeless != 1 {
		t.Errorf("%d spans without a route", n)
	}
	for _, e := range got {
		if strings.Contains(e, "secret") || strings.ContainsAny(e, "?#") {
			t.Errorf("%q holds more than a path", e)
		}
	}
}

func TestCase14FileEdges(t *testing.T) {
	s, m := ofCase(t, "14", "a.jsonl", "b.jsonl", "c.jsonl")
	wantCounts(t, s, m, map[string]int64{"GET /e": 5})
	skips := s.Skipped()
	if skips.Unparsable != 2 || skips.Parsed != 7 || skips.Notes["document of logs"] != 1 || skips.Notes["document of metrics"] != 1 {
		t.Errorf("%+v", skips)
	}
	where := map[string]int64{}
	for _, f := range skips.First {
		where[f.Input] = f.Line
	}
	if !reflect.DeepEqual(where, map[string]int64{"a.jsonl": 4, "b.jsonl": 1}) {
		t.Errorf("unparsable at %v", where)
	}
}
