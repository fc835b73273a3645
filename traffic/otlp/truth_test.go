package otlp

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

	"seatrial/traffic/input"
)

// packedAs tells of files that are kept compressed.
var packedAs = map[string]string{
	"java_agent_filexporter.jsonl":      "java_agent.jsonl.gz",
	"java_agent_reexported_v0165.jsonl": "java_agent_v0165_native.jsonl.zst",
	"java_agent_v0165.pb":               "java_agent_v0165_native.pb.zst",
	"node_express_semconv_dup.jsonl":    "node_express_semconv_dup.jsonl.zst",
	"node_express_semconv_new.jsonl":    "node_express_semconv_new.jsonl.zst",
	"node_express_semconv_old.jsonl":    "node_express_semconv_old.jsonl.zst",
}

// published is a published export as its name says: plain if it is kept compressed only.
func published(t testing.TB, name string) []byte {
	t.Helper()
	packed := packedAs[name]
	if packed == "" {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	set, err := input.Open([]string{packed}, nil, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	set.Next()
	text, err := io.ReadAll(set)
	if err != nil || len(text) == 0 || set.Problem() != "" {
		t.Fatalf("%s: %d bytes, %v, %s", packed, len(text), err, set.Problem())
	}
	return text
}

// truth is what an independent reader counted.
type truth struct {
	Framing    string
	Documents  int64
	Unparsable int64 `json:"unparsable_documents"`
	Spanless   int64 `json:"documents_without_spans_field"`
	Spans      int64
	ByKind     map[string]int64 `json:"spans_by_kind"`
	HTTP       int64            `json:"http_server_spans"`
	NotHTTP    int64            `json:"non_http_server_spans"`
	Routeless  int64            `json:"http_without_route_or_path"`
	NoDuration int64            `json:"http_server_without_duration"`
	Window     *float64         `json:"window_s"`
	Rate       *float64         `json:"mean_rate_per_s"`
	Routes     map[string]routeTruth
}

type routeTruth struct {
	Count, Durations int64
	P95              *int64 `json:"p95_ns"`
	P50              *int64 `json:"p50_ns"`
	Baseline         bool   `json:"has_baseline_at_20"`
	Status           map[string]int64
}

func openFiles(t testing.TB, paths ...string) *Source {
	t.Helper()
	set, err := input.Open(paths, nil, ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return NewWith(set, Config{Replay: true})
}

// reading reads standard input.
func reading(t testing.TB, r io.Reader) *Source {
	t.Helper()
	set, err := input.Open([]string{"-"}, r, ".")
	if err != nil {
		t.Fatal(err)
	}
	return New(set)
}

// measured is what a Source gave.
type measured struct {
	routes      map[string]routeTruth
	durations   map[string][]int64
	first, last int64
	timed       int64
}

func (m *measured) window() float64 { return float64(m.last-m.first) / 1e9 }

func measure(t testing.TB, s *Source) *measured {
	t.Helper()
	m := &measured{routes: map[string]routeTruth{}, durations: map[string][]int64{}, first: math.MaxInt64}
	for s.Scan() {
		e := s.Event()
		name := string(e.Route)
		if e.Route == nil {
			name = string(e.Path)
		}
		name = string(e.Method) + " " + name
		r := m.routes[name]
		r.Count++
		if r.Status == nil {
			r.Status = map[string]int64{}
		}
		r.Status[class(e.Status)]++
		if e.Duration >= 0 {
			m.durations[name] = append(m.durations[name], int64(e.Duration))
		}
		if e.UnixNano > 0 {
			m.timed++
			m.first, m.last = min(m.first, e.UnixNano), max(m.last, e.UnixNano)
		}
		m.routes[name] = r
	}
	for name, r := range m.routes {
		d := m.durations[name]
		slices.Sort(d)
		r.Durations, r.Baseline = int64(len(d)), len(d) >= 20
		if len(d) > 0 {
			r.P50, r.P95 = rank(d, 50), rank(d, 95)
		}
		m.routes[name] = r
	}
	return m
}

// rank is the nearest rank of a percentile.
func rank(sorted []int64, percent int) *int64 {
	return &sorted[(len(sorted)*percent+99)/100-1]
}

func class(status int) string {
	if status == 0 {
		return "none"
	}
	return string(rune('0'+status/100)) + "xx"
}

func TestEveryPublishedTraceAgreesWithTruth(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 18 {
		t.Fatalf("%d truths are there", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want truth
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".truth.json")
		t.Run(name, func(t *testing.T) { want.check(t, name, reading(t, bytes.NewReader(published(t, name)))) })
	}
}

// format is what an export is to be recognised as.
func (want *truth) format(name string) string {
	f := "otlp-json"
	if strings.Contains(name, ".pb") {
		f = "otlp-proto"
	}
	switch {
	case strings.Contains(want.Framing, "zstd"):
		return f + " length-prefixed zstd"
	case strings.HasPrefix(want.Framing, "u32be"):
		return f + " length-prefixed"
	}
	return f
}

func (want *truth) check(t *testing.T, name string, s *Source) {
	t.Helper()
	got := measure(t, s)
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	c := s.Counts()
	kinds := map[string]int64{"UNSPECIFIED": c.ByKind.Unspecified, "INTERNAL": c.ByKind.Internal, "SERVER": c.ByKind.Server,
		"CLIENT": c.ByKind.Client, "PRODUCER": c.ByKind.Producer, "CONSUMER": c.ByKind.Consumer}
	for k, n := range kinds {
		if n != want.ByKind[k] {
			t.Errorf("%s spans: %d, want %d", k, n, want.ByKind[k])
		}
	}
	if c.Documents != want.Documents || c.Unparsable != want.Unparsable || c.Spanless != want.Spanless || c.Spans != want.Spans ||
		c.HTTPServer != want.HTTP || c.NotHTTP != want.NotHTTP || c.Routeless != want.Routeless || c.NoDuration != want.NoDuration {
		t.Errorf("counts %+v\nwant %+v", c, want)
	}
	if len(got.routes)+len(want.Routes) > 0 && !reflect.DeepEqual(got.routes, want.Routes) {
		t.Errorf("routes %s\nwant %s", show(got.routes), show(want.Routes))
	}
	if want.Window != nil && math.Abs(got.window()-*want.Window) > 1e-9 {
		t.Errorf("window %v, want %v", got.window(), *want.Window)
	}
	if want.Rate != nil && math.Abs(float64(got.timed)/got.window()-*want.Rate) > 1e-6 {
		t.Errorf("rate %v, want %v", float64(got.timed)/got.window(), *want.Rate)
	}
	var reasons int64
	skips := s.Skipped()
	for _, n := range skips.Reasons {
		reasons += n
	}
	var events int64
	for _, r := range got.routes {
		events += r.Count
	}
	if reasons+events != want.Spans || skips.Read != want.Documents+want.Unparsable || skips.Format != want.format(name) {
		t.Errorf("%d events and %v of %d spans; %+v", events, skips.Reasons, want.Spans, skips)
	}
}

func show(routes map[string]routeTruth) string {
	var names []string
	for name := range routes {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare)
	var b strings.Builder
	for _, name := range names {
		text, _ := json.Marshal(routes[name])
		b.WriteString("\n" + name + " " + string(text))
	}
	return b.String()
}
