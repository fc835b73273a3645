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

	"seatrial/traffic/input"
)

// sharedData is the published test material; see NOTICE there.
const sharedData = "testdata"

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
	Durations int64                            `json:"requests_with_duration"`
	Quantiles *struct{ P50, P95, Max float64 } `json:"duration_s_nearest_rank"`
	Other     int64                            `json:"comment_or_not_access"`
}

// count is the same, counted over a Source.
type count struct {
	requests, order  int64
	first, last, end int64
	routes           map[[2]string]int64
	paths            map[string]bool
	classes, methods map[string]int64
	durations        []time.Duration
}

// logged is the time that the line of the current event holds: formats that log the end of a request
// give it behind the event's time by the duration, as far as the line tells times.
func logged(s *Source) int64 {
	e := s.Event()
	switch s.form {
	case ingress, alb, cloudfront, w3c, caddy, jsonNGINX:
		if e.Duration > 0 {
			return e.UnixNano + int64(e.Duration) - int64(e.Duration)%s.clock.unit
		}
	}
	return e.UnixNano
}

func tally(t *testing.T, s *Source) *count {
	t.Helper()
	c := &count{first: math.MaxInt64, end: math.MinInt64, routes: map[[2]string]int64{}, paths: map[string]bool{},
		classes: map[string]int64{}, methods: map[string]int64{}}
	for s.Scan() {
		e := s.Event()
		if e.Route != nil || e.UnixNano == 0 || e.Query != nil || e.Client != nil {
			t.Fatalf("event with what an access log does not hold, or nobody asked for: %+v", e)
		}
		at := logged(s)
		if c.requests > 0 && at < c.last {
			c.order++
		}
		c.requests++
		c.last = at
		c.first, c.end = min(c.first, at), max(c.end, at)
		if e.Duration >= 0 {
			c.durations = append(c.durations, e.Duration)
		}
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
		checked++
		t.Run(filepath.Base(file), func(t *testing.T) {
			want.correct(filepath.Base(file))
			name := strings.TrimSuffix(file, ".truth.json")
			if _, err := os.Stat(name); err != nil {
				name += ".gz"
			}
			s := openFile(t, name)
			want.check(t, s, tally(t, s))
		})
	}
	if checked < 29 {
		t.Fatalf("only %d files were checked", checked)
	}
}

// correct mends what the independent reader got wrong.
func (want *truth) correct(file string) {
	more := func(class, path, method string, line int64) {
		want.Requests++
		want.LogLines++
		want.Bad--
		want.Distinct++
		want.Classes[class]++
		want.Methods[method]++
		want.BadLines = slices.DeleteFunc(want.BadLines, func(n int64) bool { return n == line })
		want.Top10 = nil
		want.Rate = nil
	}
	switch file {
	case "traefik_clf.log.truth.json": // it does not know a status that is a dash, which case 02 asks for
		more("none", "/mobileadmin/home.cs", "GET", 5)
		want.Durations++
	case "nginx_proxy_manager_mixed.log.truth.json": // it does not know the cache's word BYPASS
		more("3xx", "/redirect", "GET", 10)
	case "w3c_v3.log.truth.json": // it does not know doubled quotes within a value
		more("4xx", "/hello/world/6,681965", "GET", 10)
		want.Durations++
		want.Quantiles.P50, want.Quantiles.P95, want.Quantiles.Max = 0.109, 0.359, 0.359
		want.Window = nil
	case "w3c_v2.log.truth.json": // the log of an FTP server: "[2]USER" is no method, as it says itself
		*want = truth{LogLines: 14, NoRequest: 14, Other: 8}
	}
}

func (want *truth) check(t *testing.T, s *Source, got *count) {
	t.Helper()
	skips := s.Skipped()
	if got.requests != want.Requests || skips.Unparsable != want.Bad || skips.Blank != want.Blank ||
		skips.Parsed-skips.Reasons[notAccessReason] != want.LogLines || skips.Comment+skips.Reasons[notAccessReason] != want.Other ||
		skips.Reasons["no usable request"] != want.NoRequest ||
		skips.Read != want.LogLines+want.Bad+skips.Reasons[notAccessReason] || got.order != want.Order || len(got.paths) != want.Distinct {
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
	want.checkDurations(t, got)
	if want.Window == nil {
		return
	}
	seconds := float64(got.end-got.first) / 1e9
	// the independent reader rounds to microseconds
	if apart(got.first, want.Window.Start) > 1000 || apart(got.end, want.Window.End) > 1000 {
		t.Errorf("window %d..%d, want %v", got.first, got.end, want.Window)
	}
	if want.Rate != nil && math.Abs(float64(got.requests)/seconds-*want.Rate) > 1e-6+1e-5**want.Rate { // of the rounded window
		t.Errorf("rate %v, want %v", float64(got.requests)/seconds, *want.Rate)
	}
}

func apart(nano int64, at time.Time) int64 { return max(nano-at.UnixNano(), at.UnixNano()-nano) }

func (want *truth) checkDurations(t *testing.T, got *count) {
	t.Helper()
	if int64(len(got.durations)) != want.Durations {
		t.Errorf("%d durations, want %d", len(got.durations), want.Durations)
		return
	}
	if want.Quantiles == nil {
		return
	}
	slices.Sort(got.durations)
	rank := func(p int) float64 {
		n := len(got.durations)
		return got.durations[(n*p+99)/100-1].Seconds()
	}
	for p, seconds := range map[int]float64{50: want.Quantiles.P50, 95: want.Quantiles.P95, 100: want.Quantiles.Max} {
		if math.Abs(rank(p)-seconds) > 2e-6 && math.Abs(rank(p)-seconds) > 1e-6*seconds {
			t.Errorf("p%d is %v s, want %v", p, rank(p), seconds)
		}
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
	if want.Top10 != nil && len(want.Top10) < 10 && len(top) != len(want.Top10) {
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
