package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
)

// sharedFolder is the published test material, beside the project. Tests that need it fail without it.
const sharedFolder = "../../../shared/data"

// answer is what one `traffic record -o json` gave.
type answer struct {
	exit    int
	out     recordedTraffic
	errors  []printedError
	profile []byte // the file that was written; nil when none was
	text    string // all that was printed
}

type printedError struct{ Code, Message, Detail, Next string }

// recordTraffic runs the program in a new folder; stdin may be nil.
func recordTraffic(t *testing.T, stdin []byte, env []string, args ...string) *answer {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("seatrial", append([]string{"-C", dir, "traffic", "record", "-o", "json"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	a := &answer{}
	if err := cmd.Run(); err != nil {
		a.exit = exitNumber(err)
	}
	a.text = out.String() + errs.String()
	var err error
	if a.profile, err = os.ReadFile(filepath.Join(dir, profilePath)); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if a.exit != 0 {
		var said struct{ Errors []printedError }
		if err := json.Unmarshal(out.Bytes(), &said); err != nil {
			t.Fatalf("exit %d without JSON: %v\n%s", a.exit, err, a.text)
		}
		a.errors = said.Errors
		return a
	}
	if err := json.Unmarshal(out.Bytes(), &a.out); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, a.text)
	}
	if a.out.Profile.Requests == 0 { // a profile of nothing is not written
		if a.profile != nil || a.out.Path != "" {
			t.Errorf("without a request %q was written", a.out.Path)
		}
		return a
	}
	committed := &traffic.Profile{}
	if err := json.Unmarshal(a.profile, committed); err != nil || !reflect.DeepEqual(committed, a.out.Profile) {
		t.Errorf("the file and the answer differ: %v", err)
	}
	return a
}

// refused asserts that nothing was taken: TRF-002, its exit, and no profile.
func (a *answer) refused(t *testing.T, word string) {
	t.Helper()
	if a.exit != 5 || len(a.errors) != 1 || a.errors[0].Code != string(fault.TRF002) || a.errors[0].Next == "" || a.profile != nil ||
		!strings.Contains(a.errors[0].Message+a.errors[0].Detail, word) {
		t.Errorf("exit %d, profile of %d bytes, want a refusal that says %q:\n%s", a.exit, len(a.profile), word, a.text)
	}
}

func (a *answer) route(name string) *traffic.Route {
	if a.out.Profile == nil {
		return nil
	}
	for i := range a.out.Profile.Routes {
		if r := &a.out.Profile.Routes[i]; r.Name() == name {
			return r
		}
	}
	return nil
}

// counts are the requests of each route.
func (a *answer) counts() map[string]uint64 {
	c := map[string]uint64{}
	for _, r := range a.out.Profile.Routes {
		c[r.Name()] = r.Requests
	}
	return c
}

// published lists the data files of a folder of the shared material that have a truth beside them.
func published(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(sharedFolder, folder, "*.truth.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no truth in %s: the shared folder must stand beside the project (%v)", filepath.Join(sharedFolder, folder), err)
	}
	for i := range found {
		found[i] = strings.TrimSuffix(found[i], ".truth.json")
	}
	all, err := os.ReadDir(filepath.Join(sharedFolder, folder))
	if err != nil || len(all) != 2*len(found) {
		t.Fatalf("%d files and %d truths in %s: a file without its truth (%v)", len(all), len(found), folder, err)
	}
	return found
}

func readTruth(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file + ".truth.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// logTruth is what an independent reader counted in an access log.
type logTruth struct {
	Kind      string
	Requests  uint64
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
	Methods  map[string]uint64
	Top10    []struct {
		Method, Path string
		Count        uint64
	}
}

// Acceptance 1, access logs: every published log agrees with its truth, and one that holds no access line
// is refused by code. The reader's own tests compare times and durations of the formats that carry them.
func TestPublishedAccessLogs(t *testing.T) {
	read, refused := 0, 0
	for _, file := range published(t, "access") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var want logTruth
			readTruth(t, file, &want)
			switch want.Kind {
			case "combined", "vhost", "ingress", "traefik_clf":
				// ingress and traefik_clf are combined with further fields
				if want.Kind == "traefik_clf" {
					want.countDashStatus(t)
				}
				if want.LogLines == 0 {
					refused++
					recordTraffic(t, nil, nil, "--from", absolute(t, file)).refused(t, "not one of 5 lines")
					return
				}
				read++
				want.check(t, file)
			case "npm", "alb", "cloudfront", "caddy", "cloudflare", "envoy", "haproxy", "traefik", "uwsgi", "w3c", "zoraxy":
				read++
				want.counted(t, recordTraffic(t, nil, nil, "--from", absolute(t, file)), filepath.Base(file))
			default:
				t.Errorf("a log of kind %q, of which this test does not know whether it is read", want.Kind)
			}
		})
	}
	if read < 28 || refused != 1 {
		t.Errorf("%d logs were read and %d refused", read, refused)
	}
}

// counted compares the counts of a log with its truth, where that is right: its reader does not know the
// word BYPASS of nginx proxy manager and doubled quotes in a W3C log, and takes "[2]USER" for a method,
// which it says itself is none.
func (want *logTruth) counted(t *testing.T, a *answer, file string) {
	t.Helper()
	switch file {
	case "nginx_proxy_manager_mixed.log", "w3c_v3.log":
		want.Requests++
		want.Bad--
	case "w3c_v2.log":
		want.Requests, want.NoRequest = 0, 14
	}
	if s := a.out.Skips; a.exit != 0 || a.out.Profile.Requests != want.Requests || s.Unparsable != want.Bad || s.Reasons["no usable request"] != want.NoRequest {
		t.Errorf("exit %d, want %+v: %s", a.exit, want, a.text)
	}
}

// countDashStatus is the one exception to a truth: the reader behind it refuses a line of traefik_clf
// whose status is "-", while case 02 of the same material counts such a line as a request of status
// class "none". Seatrial counts it, wherever it stands: 7 requests, not 6.
func (want *logTruth) countDashStatus(t *testing.T) {
	t.Helper()
	if want.Requests != 6 || want.Bad != 1 || !slices.Equal(want.BadLines, []int64{5}) {
		t.Fatalf("the exception was made for one refused line, of which the truth no longer tells: %+v", want)
	}
	want.Requests, want.LogLines, want.Bad, want.BadLines, want.Distinct = 7, 7, 0, nil, 7
	want.Methods["GET"]++
	want.Classes["none"] = 1
	want.Top10 = nil // the seventh path stands between the others; all seven are counted once, below
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

func (want *logTruth) check(t *testing.T, file string) {
	t.Helper()
	plain := recordTraffic(t, nil, nil, "--from", absolute(t, file))
	want.agrees(t, plain)
	raw := rawRequests(t, file)
	want.agreesRaw(t, raw)
	args := []string{"--from", absolute(t, file)}
	expected := map[string]uint64{}
	var rest uint64
	for name, n := range raw {
		if declared := literalTemplate(name); declared != "" {
			if expected[declared] == 0 {
				args = append(args, "--route", declared)
			}
			expected[declared] += n
			continue
		}
		rest += n
	}
	// with each raw path declared as a template of its own nothing collapses: the counts before templating
	a := recordTraffic(t, nil, nil, args...)
	want.agrees(t, a)
	got := a.counts()
	for name, n := range expected {
		if got[name] != n {
			t.Errorf("%s: %d requests, want %d", name, got[name], n)
		}
		delete(got, name)
	}
	for _, n := range got {
		rest -= n
	}
	if rest != 0 {
		t.Errorf("routes that could not be declared differ by %d: %v", int64(rest), got)
	}
	for _, w := range want.Top10 {
		if d := literalTemplate(w.Method + " " + w.Path); d == "" || expected[d] < w.Count {
			t.Errorf("%s %s of the ten busiest was not compared", w.Method, w.Path)
		}
	}
}

// literalTemplate is the declaration of a raw path as a template of its own; empty for one that a
// template cannot spell: one with a character of the template syntax, or one that does not start with
// a slash.
func literalTemplate(name string) string {
	method, path, _ := strings.Cut(name, " ")
	u, err := traffic.UnifyRoute(path)
	if err != nil || !u.Literal() || path[0] != '/' {
		return ""
	}
	return method + " " + u.String()
}

// agrees compares a profile with the truth.
func (want *logTruth) agrees(t *testing.T, a *answer) {
	t.Helper()
	if a.exit != 0 {
		t.Fatalf("exit %d: %s", a.exit, a.text)
	}
	p, s := a.out.Profile, a.out.Skips
	if p.Requests != want.Requests || s.Unparsable != want.Bad || p.Source.Unparsable != want.Bad || s.Blank != want.Blank ||
		s.Parsed != want.LogLines || s.Read != want.LogLines+want.Bad || p.Source.Read != s.Read ||
		p.Source.NotSent["no usable request"] != want.NoRequest || p.Source.OutOfOrder != want.Order {
		t.Errorf("%d requests, %+v, %+v\nwant %+v", p.Requests, s, p.Source, want)
	}
	var bad []int64
	for _, f := range s.First {
		bad = append(bad, f.Line)
	}
	if !slices.Equal(bad, want.BadLines) {
		t.Errorf("unparsable lines %v, want %v", bad, want.BadLines)
	}
	if (p.Window == nil) != (want.Window == nil) {
		t.Fatalf("window %v, want %v", p.Window, want.Window)
	}
	if w := want.Window; w != nil && (!p.Window.Start.Equal(w.Start) || !p.Window.End.Equal(w.End) || p.Window.Seconds != w.Seconds) {
		t.Errorf("window %v, want %v", *p.Window, *w)
	}
	agreesRate(t, p, want.Rate)
	if !slices.IsSortedFunc(p.Routes, func(x, y traffic.Route) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Method, y.Method))
	}) {
		t.Error("the routes are not sorted by path and method")
	}
	methods, classes, sum := map[string]uint64{}, map[string]int64{}, uint64(0)
	for _, r := range p.Routes {
		sum += r.Requests
		if share := float64(r.Requests) / float64(want.Requests); r.Weight != share {
			t.Errorf("%s weighs %v, want %v", r.Name(), r.Weight, share)
		}
		methods[r.Method] += r.Requests
		for class, n := range r.Status {
			classes[class] += int64(n)
		}
		if r.Latency != nil && (want.Kind == "combined" || want.Kind == "vhost") {
			t.Errorf("%s has durations, which its format does not carry", r.Name())
		}
	}
	if sum != want.Requests || len(methods)+len(want.Methods) > 0 && !reflect.DeepEqual(methods, want.Methods) {
		t.Errorf("methods %v, want %v", methods, want.Methods)
	}
	// the truth counts the classes of all lines, with those that hold no request
	if want.NoRequest == 0 && !reflect.DeepEqual(classes, want.Classes) {
		t.Errorf("status classes %v, want %v", classes, want.Classes)
	}
}

// agreesRate compares with a rate that was rounded to six decimals; where there is none to count, it
// must be said that it was assumed.
func agreesRate(t *testing.T, p *traffic.Profile, want *float64) {
	t.Helper()
	switch {
	case want != nil && (math.Abs(p.Rate-*want) > 5.1e-7 || p.RateAssumed != ""):
		t.Errorf("rate %v (assumed: %q), want %v", p.Rate, p.RateAssumed, *want)
	case want == nil && p.Requests > 0 && p.RateAssumed == "":
		t.Errorf("rate %v of no window is not called assumed", p.Rate)
	}
}

// The published reader's own grammar, written again: these counts are tied to its truth by agreesRaw,
// and give the test each raw path.
var (
	rawLine    = regexp.MustCompile(`^\S+ \S+ .*? ?\[[^\]]+\] "((?:[^"\\]|\\.)*)" (?:\d{3}|-) \S+`)
	rawRequest = regexp.MustCompile(`^([A-Z][A-Z_-]*) (\S.*?)( +HTTP/\S+)?$`)
	rawOrigin  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#]*`)
)

func rawRequests(t *testing.T, file string) map[string]uint64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		l := rawLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if l == nil {
			continue
		}
		r := rawRequest.FindStringSubmatch(l[1])
		if r == nil || r[3] == "" && strings.Contains(r[2], " ") {
			continue
		}
		path := rawOrigin.ReplaceAllString(r[2], "")
		if i := strings.IndexAny(path, "?#"); i >= 0 {
			path = path[:i]
		}
		if path == "" {
			path = "/"
		}
		raw[r[1]+" "+path]++
	}
	return raw
}

func (want *logTruth) agreesRaw(t *testing.T, raw map[string]uint64) {
	t.Helper()
	var sum uint64
	paths := map[string]bool{}
	for name, n := range raw {
		sum += n
		_, path, _ := strings.Cut(name, " ")
		paths[path] = true
	}
	if sum != want.Requests || len(paths) != want.Distinct {
		t.Fatalf("the test's own reader counts %d requests of %d paths, want %d of %d", sum, len(paths), want.Requests, want.Distinct)
	}
	for _, w := range want.Top10 {
		if raw[w.Method+" "+w.Path] != w.Count {
			t.Errorf("the test's own reader counts %d of %s %s, want %d", raw[w.Method+" "+w.Path], w.Method, w.Path, w.Count)
		}
	}
}

// traceTruth is what an independent reader counted in an export of traces.
type traceTruth struct {
	Framing    string
	Documents  int64
	Unparsable int64            `json:"unparsable_documents"`
	ByKind     map[string]int64 `json:"spans_by_kind"`
	HTTP       uint64           `json:"http_server_spans"`
	NotHTTP    int64            `json:"non_http_server_spans"`
	Routeless  int64            `json:"http_without_route_or_path"`
	NoDuration int64            `json:"http_server_without_duration"`
	Window     *float64         `json:"window_s"`
	Rate       *float64         `json:"mean_rate_per_s"`
	Routes     map[string]routeTruth
}

type routeTruth struct {
	Count, Durations uint64
	P95              int64 `json:"p95_ns"`
	P50              int64 `json:"p50_ns"`
	Baseline         bool  `json:"has_baseline_at_20"`
	Status           map[string]uint64
}

// Acceptance 1, traces: every published export, in JSON and in protobuf, with and without a length before
// each message, plain or compressed, agrees with its truth.
func TestPublishedTraces(t *testing.T) {
	read := 0
	for _, file := range published(t, "otlp") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var want traceTruth
			readTruth(t, file, &want)
			read++
			want.check(t, file)
		})
	}
	if read < 18 {
		t.Errorf("%d exports were read", read)
	}
}

func (want *traceTruth) check(t *testing.T, file string) {
	t.Helper()
	args := []string{"--from", absolute(t, file)}
	for name := range want.Routes {
		if d := literalTemplate(name); d != "" {
			args = append(args, "--route", d) // so that raw paths stay as they are
		}
	}
	a := recordTraffic(t, nil, nil, args...)
	if a.exit != 0 {
		t.Fatalf("exit %d: %s", a.exit, a.text)
	}
	p, s := a.out.Profile, a.out.Skips
	notHTTP := int64(0)
	for reason, n := range s.Reasons {
		if strings.HasPrefix(reason, "not HTTP") {
			notHTTP += n
		}
	}
	if p.Requests+uint64(want.Routeless) != want.HTTP || notHTTP != want.NotHTTP || s.Parsed != want.Documents ||
		s.Unparsable != want.Unparsable || s.Reasons["no route and no path"] != want.Routeless || s.Notes["no duration"] != want.NoDuration {
		t.Errorf("%d requests, %+v\nwant %+v", p.Requests, s, want)
	}
	for kind, reason := range map[string]string{"CLIENT": "client span", "INTERNAL": "internal span", "PRODUCER": "producer span",
		"CONSUMER": "consumer span", "UNSPECIFIED": "unspecified kind"} {
		if s.Reasons[reason] != want.ByKind[kind] || p.Source.NotSent[reason] != want.ByKind[kind] {
			t.Errorf("%s: %d, want %d", reason, s.Reasons[reason], want.ByKind[kind])
		}
	}
	if (p.Window == nil) != (want.Window == nil) || p.Window != nil && math.Abs(p.Window.Seconds-*want.Window) > 1e-9 {
		t.Errorf("window %v, want %v", p.Window, want.Window)
	}
	agreesRate(t, p, want.Rate)
	want.checkRoutes(t, a)
}

// checkRoutes compares route by route. One that a framework spells its own way (/products/:id) is found
// under the profile's spelling; no two may share one.
func (want *traceTruth) checkRoutes(t *testing.T, a *answer) {
	t.Helper()
	left := a.counts()
	for name, w := range want.Routes {
		method, path, _ := strings.Cut(name, " ")
		u, err := traffic.UnifyRoute(path)
		if err != nil {
			t.Fatal(err)
		}
		r := a.route(method + " " + u.String())
		if r == nil || left[r.Name()] == 0 {
			t.Errorf("%s is not in the profile, or twice in the truth: %v", name, a.counts())
			continue
		}
		delete(left, r.Name())
		if o := a.route(method + " " + traffic.Unmatched); path == "/" && o != nil {
			// case 13: where the instrumentation says "/" of a request for another path, no route matched
			// it; such requests are kept apart, and both together are what the truth counts
			delete(left, o.Name())
			status := map[string]uint64{}
			for _, part := range []*traffic.Route{r, o} {
				for class, n := range part.Status {
					status[class] += n
				}
			}
			if r.Requests+o.Requests != w.Count || r.Latency.Samples+o.Latency.Samples != w.Durations || !reflect.DeepEqual(status, w.Status) {
				t.Errorf("%s and unmatched: %+v, %+v, want %+v", name, r, o, w)
			}
			continue
		}
		if r.Requests != w.Count || !reflect.DeepEqual(r.Status, w.Status) || r.Latency == nil || r.Latency.Samples != w.Durations ||
			r.Latency.P95 != float64(w.P95)/1e6 || r.Latency.P50 != float64(w.P50)/1e6 {
			t.Errorf("%s: %+v %+v, want %+v", name, r, r.Latency, w)
		}
		if base, ok := r.Baseline(); ok != w.Baseline || ok && base != time.Duration(w.P95) {
			t.Errorf("%s: baseline %v %v, want %v %v", name, base, ok, w.P95, w.Baseline)
		}
	}
	if len(left) > 0 {
		t.Errorf("routes that the truth does not know: %v", left)
	}
}

// seatrialIn runs the program in a folder: what it printed, and its exit.
func seatrialIn(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	out, err := exec.Command("seatrial", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		return string(out), exitNumber(err)
	}
	return string(out), 0
}
