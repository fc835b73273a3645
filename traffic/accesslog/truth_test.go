package accesslog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/traffic"
	"seatrial/traffic/input"
)

// sharedData is the published test material, beside the project.
const sharedData = "../../../shared/data"

// truth is what an independent reader counted.
type truth struct {
	Kind      string
	Requests  int64
	NoRequest int64   `json:"no_request"`
	LogLines  int64   `json:"log_lines"`
	Bad       int64   `json:"unparsable"`
	BadLines  []int64 `json:"unparsable_first_lines"`
	Blank     int64
	Window    *struct {
		Start, End time.Time
		Seconds    float64
	}
	Rate     *float64         `json:"mean_rate_per_s"`
	Order    int64            `json:"out_of_order_requests"`
	Distinct int              `json:"distinct_raw_paths"`
	Classes  map[string]int64 `json:"status_classes_of_log_lines"`
	Methods  map[string]int64
	Top10    []struct {
		Method, Path string
		Count        int64
	}
}

// count is the same, counted over a Source.
type count struct {
	requests, order  int64
	first, last, end int64
	routes           map[[2]string]int64
	paths            map[string]bool
	classes, methods map[string]int64
}

func tally(t *testing.T, s traffic.Source) *count {
	t.Helper()
	c := &count{first: math.MaxInt64, end: math.MinInt64, routes: map[[2]string]int64{}, paths: map[string]bool{},
		classes: map[string]int64{}, methods: map[string]int64{}}
	for s.Scan() {
		e := s.Event()
		if e.Duration >= 0 || e.Route != nil || e.UnixNano == 0 {
			t.Fatalf("event with what an access log does not hold: %+v", e)
		}
		if c.requests > 0 && e.UnixNano < c.last {
			c.order++
		}
		c.requests++
		c.last = e.UnixNano
		c.first, c.end = min(c.first, e.UnixNano), max(c.end, e.UnixNano)
		c.routes[[2]string{string(e.Method), string(e.Path)}]++
		c.paths[string(e.Path)] = true
		c.methods[string(e.Method)]++
		c.classes[class(e.Status)]++
	}
	return c
}

func class(status int) string {
	if status == 0 {
		return "none"
	}
	return string(rune('0'+status/100)) + "xx"
}

func openFile(t *testing.T, paths ...string) *Source {
	t.Helper()
	set, err := input.Open(paths, nil, ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(set, Config{})
}

func TestEveryPublishedLogAgreesWithTruth(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedData, "access", "*.truth.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no truth in %s: %v", sharedData, err)
	}
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want truth
		if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(`+00:00"`), []byte(`Z"`)), &want); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch want.Kind {
		case "combined", "vhost", "ingress":
		default:
			continue
		}
		checked++
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := openFile(t, strings.TrimSuffix(file, ".truth.json"))
			want.check(t, s, tally(t, s))
		})
	}
	if checked < 10 {
		t.Fatalf("only %d files were checked", checked)
	}
}

// Traefik's own reader refuses the one line whose status is a dash; as a combined line it is a request
// without a status.
func TestTraefikCommonLog(t *testing.T) {
	s := openFile(t, filepath.Join(sharedData, "access", "traefik_clf.log"))
	got := tally(t, s)
	want := map[string]int64{"2xx": 6, "none": 1}
	if skips := s.Skipped(); s.Err() != nil || !reflect.DeepEqual(got.classes, want) || skips.Unparsable != 0 ||
		skips.Blank != 2 || skips.Format != "combined" {
		t.Errorf("classes %v, %+v, %v", got.classes, skips, s.Err())
	}
}

func (want *truth) check(t *testing.T, s *Source, got *count) {
	t.Helper()
	skips := s.Skipped()
	if got.requests != want.Requests || skips.Unparsable != want.Bad || skips.Blank != want.Blank ||
		skips.Parsed != want.LogLines || skips.Reasons["no usable request"] != want.NoRequest ||
		skips.Read != want.LogLines+want.Bad || got.order != want.Order || len(got.paths) != want.Distinct {
		t.Errorf("requests %d, out of order %d, paths %d, skips %+v\nwant %+v", got.requests, got.order, len(got.paths), skips, want)
	}
	if (s.Err() != nil) != (want.LogLines == 0) {
		t.Errorf("Err = %v with %d lines", s.Err(), want.LogLines)
	}
	var bad []int64
	for _, f := range skips.First {
		bad = append(bad, f.Line)
	}
	if !slices.Equal(bad, want.BadLines) {
		t.Errorf("unparsable lines %v, want %v", bad, want.BadLines)
	}
	want.checkMix(t, got)
	if want.Window == nil {
		return
	}
	seconds := float64(got.end-got.first) / 1e9
	if got.first != want.Window.Start.UnixNano() || got.end != want.Window.End.UnixNano() {
		t.Errorf("window %d..%d, want %v", got.first, got.end, want.Window)
	}
	if want.Rate != nil && math.Abs(float64(got.requests)/seconds-*want.Rate) > 1e-6 {
		t.Errorf("rate %v, want %v", float64(got.requests)/seconds, *want.Rate)
	}
}

func (want *truth) checkMix(t *testing.T, got *count) {
	t.Helper()
	if len(got.methods)+len(want.Methods) > 0 && !reflect.DeepEqual(got.methods, want.Methods) {
		t.Errorf("methods %v, want %v", got.methods, want.Methods)
	}
	if want.NoRequest == 0 && len(got.classes)+len(want.Classes) > 0 && !reflect.DeepEqual(got.classes, want.Classes) {
		t.Errorf("status classes %v, want %v", got.classes, want.Classes)
	}
	var top [][2]string
	for k := range got.routes {
		top = append(top, k)
	}
	slices.SortFunc(top, func(a, b [2]string) int {
		return cmp.Or(-cmp.Compare(got.routes[a], got.routes[b]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for i, w := range want.Top10 {
		if i >= len(top) || top[i] != [2]string{w.Method, w.Path} || got.routes[top[i]] != w.Count {
			t.Errorf("top %d: got %v, want %+v", i, top[min(i, len(top)-1)], w)
		}
	}
	if len(want.Top10) < 10 && len(top) != len(want.Top10) {
		t.Errorf("%d routes, want %d", len(top), len(want.Top10))
	}
}

func fromText(t testing.TB, texts ...string) *Source {
	t.Helper()
	var paths []string
	dir := t.TempDir()
	for i, text := range texts {
		path := filepath.Join(dir, string(rune('a'+i))+".log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	set, err := input.Open(paths, nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return New(set, Config{})
}

// reading reads text as standard input.
func reading(t testing.TB, r io.Reader) *Source {
	t.Helper()
	set, err := input.Open([]string{"-"}, r, ".")
	if err != nil {
		t.Fatal(err)
	}
	return New(set, Config{})
}
