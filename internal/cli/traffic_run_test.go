package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seatrial/traffic/loki/lokitest"
)

// sent is a loopback server that keeps what reached it, as it stood on the wire.
type sent struct {
	URL   string
	mutex sync.Mutex
	lines []string
}

func serve(t *testing.T) *sent {
	t.Helper()
	s := &sent{}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.lines = append(s.lines, r.Method+" "+r.RequestURI)
	}))
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

func (s *sent) requests() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.lines)
}

// project writes a folder with a manifest that admits the server.
func (s *sent) project(t *testing.T, load string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["seatrial.yaml"] = fmt.Sprintf("targets:\n  here: {url: %s, max_rate: 500/s}\nload:\n  duration: 2s\n  warmup: 0s\n%s", s.URL, load)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reports are the files of the only run of a project, and what was printed.
func reports(t *testing.T, dir, printed string) map[string]string {
	t.Helper()
	out := map[string]string{"standard output": printed}
	for _, name := range []string{"report.html", "report.md", "report.txt", "run.json"} {
		found, err := filepath.Glob(filepath.Join(dir, ".seatrial", "runs", "*", name))
		if err != nil || len(found) != 1 {
			continue
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	if out["report.html"] == "" || out["run.json"] == "" {
		t.Fatalf("the run left no report:\n%s", printed)
	}
	return out
}

var spaces = regexp.MustCompile(`\s+`)

// say asserts that each report holds each of the words; white space is one however a line was folded.
func say(t *testing.T, reports map[string]string, words ...string) {
	t.Helper()
	for name, text := range reports {
		flat := spaces.ReplaceAllString(html.UnescapeString(text), " ")
		for _, w := range words {
			if !strings.Contains(flat, w) {
				t.Errorf("%s does not say %q:\n%.2000s", name, w, flat)
			}
		}
	}
}

// logOf is a log of n requests of each line "METHOD /path", a second apart unless they share one time.
func logOf(n int, step time.Duration, lines ...string) string {
	var b strings.Builder
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for range n {
		for _, l := range lines {
			fmt.Fprintf(&b, "192.0.2.1 - ann [%s] \"%s HTTP/1.1\" 200 5\n", at.Format("02/Jan/2006:15:04:05 -0700"), l)
			at = at.Add(step)
		}
	}
	return b.String()
}

// TR-40 at the socket, TR-6, TR-7, TR-42: a log whose clients disguised what unsafe_routes forbids is
// replayed, and nothing that can be read as such arrives; the reports say that the rate was assumed,
// that no latency limit was in force, and which pattern falls short.
func TestRunOnAHostileLog(t *testing.T) {
	s := serve(t)
	hostile := []string{
		"GET /shop/1", "GET /shop/2?token=secret", "GET /admin/users", "GET /%61dmin/users", "GET /%2561dmin/users", "GET //admin//users",
		"GET /shop/../admin/users", "GET /shop/%2e%2e/admin/users", "GET /shop/..%2fadmin/users", "GET /shop/%252e%252e%252fadmin/users",
		"GET /admin;x=1/users", "GET /ADMIN/../admin/users", "GET /./admin/users", `GET /shop\..\..\admin/users`, "DELETE /shop/1", "DELETE /a/b/c",
		"POST /shop", "GET http://elsewhere.example/admin/users", "GET /x/%2Fadmin/users",
	}
	dir := s.project(t, "  source: access_log\n  source_config: {path: access.log}\n  scale: 10\n"+
		"  safe_routes: ['GET /**']\n  unsafe_routes: ['GET /admin/**', 'DELETE /*']\n",
		map[string]string{"access.log": logOf(30, 0, hostile...)})
	out, exit := seatrialIn(t, dir, "run", "--url", s.URL)
	if exit != 0 && exit != 7 { // a busy machine may have saturated the generator
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	got := s.requests()
	if len(got) < 50 || !slices.Contains(got, "GET /shop/1") || !slices.Contains(got, "GET /shop/2") {
		t.Errorf("%d requests arrived: %.20q", len(got), got)
	}
	for _, line := range got {
		method, target, _ := strings.Cut(line, " ")
		if method != "GET" || forbidden(target) || strings.Contains(target, "secret") {
			t.Errorf("%q was sent", line)
		}
	}
	r := reports(t, dir, out)
	say(t, r, "the rate was assumed: every request that had a time had the same", "no latency limit was in force", "DELETE /*", "DELETE /a/b/c")
}

// forbidden tells whether a server that decodes up to three times and resolves dots, slashes, backslashes
// and parameters in any of these stages could take the target for one below /admin.
func forbidden(target string) bool {
	for range 4 {
		var segs []string
		for seg := range strings.SplitSeq(strings.ReplaceAll(target, `\`, "/"), "/") {
			seg, _, _ = strings.Cut(seg, ";")
			switch seg {
			case "", ".":
			case "..":
				segs = segs[:max(0, len(segs)-1)]
			default:
				segs = append(segs, seg)
			}
		}
		if len(segs) > 0 && strings.EqualFold(segs[0], "admin") {
			return true
		}
		decoded, err := url.PathUnescape(target)
		if err != nil {
			return false
		}
		target = decoded
	}
	return false
}

// TR-8: a run without traffic is named an assumed smoke in every report, sends the literal routes that
// read, and nothing else.
func TestAssumedSmokeIsNamedInEveryReport(t *testing.T) {
	s := serve(t)
	dir := s.project(t, "  safe_routes: ['GET /a', 'HEAD /b', 'POST /c', 'GET /d/*']\n", map[string]string{})
	out, exit := seatrialIn(t, dir, "run", "--url", s.URL)
	if exit != 0 && exit != 7 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	kinds := map[string]int{}
	for _, line := range s.requests() {
		kinds[line]++
	}
	if len(kinds) != 2 || kinds["GET /a"] == 0 || kinds["HEAD /b"] == 0 {
		t.Errorf("sent: %v", kinds)
	}
	r := reports(t, dir, out)
	say(t, r, "assumed smoke")
	for name, text := range r {
		if strings.Contains(text, "of production's requests are on routes that this run sends") {
			t.Errorf("%s speaks of production", name)
		}
	}
}

// TR-9: where filtering leaves no route, the run proves nothing, says which pattern removed how much,
// and opens no connection.
func TestNoRouteLeftProvesNothing(t *testing.T) {
	s := serve(t)
	dir := s.project(t, "  source: access_log\n  source_config: {path: access.log}\n  safe_routes: ['GET /none']\n  unsafe_routes: ['GET /a']\n",
		map[string]string{"access.log": logOf(30, time.Second, "GET /a", "GET /a", "GET /a", "GET /b")})
	out, exit := seatrialIn(t, dir, "run", "--url", s.URL)
	if exit != 7 || len(s.requests()) != 0 {
		t.Errorf("exit %d, %d requests:\n%s", exit, len(s.requests()), out)
	}
	say(t, reports(t, dir, out), "LOD-013", "unsafe_routes: GET /a", "75", "not named in safe_routes", "25")
	if strings.Contains(out, "PASS") {
		t.Errorf("a pass:\n%s", out)
	}
}

// profiled is a project whose committed profile was recorded from traces with durations, and whose own
// source is a log without any.
func profiled(t *testing.T, s *sent) string {
	t.Helper()
	var spans strings.Builder
	for i := range 200 {
		path := []string{"/a", "/a", "/a", "/b"}[i%4]
		at := int64(1_700_000_000_000_000_000) + int64(i)*50_000_000
		fmt.Fprintf(&spans, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":2,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":%q}},{"key":"http.response.status_code","value":{"intValue":"200"}}]}]}]}]}`+"\n",
			at, at+900_000_000, path)
	}
	dir := s.project(t, "  source: access_log\n  source_config: {path: access.log}\n  safe_routes: ['GET /a']\n  rate: 40/s\n"+
		"  traffic: {profile: .seatrial/traffic.json}\n  thresholds: {p95_increase: 0.25}\n",
		map[string]string{"access.log": logOf(30, time.Second, "GET /a", "GET /b"), "traces.jsonl": spans.String()})
	if out, exit := seatrialIn(t, dir, "traffic", "record", "--from", "traces.jsonl"); exit != 0 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	return dir
}

// TR-34: with a profile the report tells the share that is really sent, the heaviest route it never
// touches, its rate beside production's, and whose baselines come from the profile.
func TestRunBesideAProfile(t *testing.T) {
	s := serve(t)
	dir := profiled(t, s)
	out, exit := seatrialIn(t, dir, "run", "--url", s.URL)
	if exit != 0 && exit != 7 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	say(t, reports(t, dir, out), "75% of production's requests are on routes that this run sends, at 40/s beside production's own 20.1/s",
		"the heaviest route that it never touches is GET /b (25%)", "baselines from the committed profile: GET /a")
}

// TR-33 over the commands: an old profile is refused, never quoted, unless max_age allows it; one from
// the future or of another version is refused in words of its own.
func TestProfileThatCannotBeUsed(t *testing.T) {
	s := serve(t)
	dir := profiled(t, s)
	path := filepath.Join(dir, ".seatrial", "traffic.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stamped := func(age time.Duration) string {
		return when.ReplaceAllString(string(good), fmt.Sprintf(`"recorded": %q`, time.Now().Add(-age).UTC().Format(time.RFC3339)))
	}
	for name, c := range map[string]struct {
		text, says string
		exit       int
	}{
		"old":     {stamped(337 * time.Hour), "LOD-025", 5},
		"future":  {stamped(-time.Hour), "TRF-003", 5},
		"version": {strings.Replace(string(good), `"version": 2`, `"version": 9`, 1), "version 9", 5},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"traffic", "show"}, {"run", "--url", s.URL}} {
			out, exit := seatrialIn(t, dir, args...)
			if exit != c.exit || !strings.Contains(out, c.says) || strings.Contains(out, "GET /a") {
				t.Errorf("%s, %v: exit %d, want %d with %q and no route:\n%s", name, args, exit, c.exit, c.says, out)
			}
		}
	}
	if err := os.WriteFile(path, []byte(stamped(337*time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "seatrial.yaml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	allowed := strings.Replace(string(text), "traffic.json}", "traffic.json, max_age: 400h}", 1)
	if err := os.WriteFile(manifest, []byte(allowed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, exit := seatrialIn(t, dir, "traffic", "show"); exit != 0 || !strings.Contains(out, "GET /a") {
		t.Errorf("max_age: 400h: exit %d\n%s", exit, out)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent on a profile that cannot be used", n)
	}
}

// TR-32: show marks what safe_routes reach, states the share, prints the lines that would cover the
// rest, and writes nothing.
func TestShowWritesNothing(t *testing.T) {
	dir := profiled(t, serve(t))
	before := tree(t, dir)
	out, exit := seatrialIn(t, dir, "traffic", "show")
	if exit != 0 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	say(t, map[string]string{"traffic show": out}, "* 75% GET /a", "25% GET /b", "reached by safe_routes: 75% of production's requests", "- GET /b")
	if strings.Index(out, "GET /a ") > strings.Index(out, "GET /b ") {
		t.Errorf("not busiest first:\n%s", out)
	}
	if after := tree(t, dir); after != before {
		t.Errorf("show changed the folder:\n%s\n%s", before, after)
	}
}

// tree is every file of a folder with its content.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s\n%s\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TR-3 over the command: over 5% unparsable of 100 lines is a loud warning, 5% is none, a cut last line
// is one line; lines are shown by number and reason, never by content.
func TestUnparsableLinesAreLoud(t *testing.T) {
	good := strings.Split(strings.TrimSpace(logOf(100, time.Second, "GET /a")), "\n")
	for bad, warned := range map[int]bool{5: false, 6: true} {
		lines := slices.Clone(good)
		for i := range bad {
			lines[10*i] = "canary of a line"
		}
		a := recordTraffic(t, []byte(strings.Join(lines, "\n")+"\n"), nil, "--from", "-")
		if (a.out.Warning != "") != warned || a.out.Skips.Unparsable != int64(bad) || strings.Contains(a.text, "canary") {
			t.Errorf("%d bad lines: %s", bad, a.text)
		}
		if f := a.out.Skips.First; len(f) != bad || f[1].Line != 11 || f[1].Reason == "" {
			t.Errorf("%d bad lines: first %+v", bad, f)
		}
	}
	cut := strings.Join(good, "\n")
	a := recordTraffic(t, []byte(cut[:len(cut)-30]), nil, "--from", "-")
	if a.exit != 0 || a.out.Profile.Requests != 99 || a.out.Skips.Unparsable != 1 || a.out.Warning != "" {
		t.Errorf("a cut last line: %s", a.text)
	}
}

// TR-1: each source that the schema names can be run, and one that it does not name is refused by name
// with those that work.
func TestEachSourceOfTheSchemaRuns(t *testing.T) {
	out, exit := seatrialIn(t, t.TempDir(), "schema")
	if exit != 0 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	var schema struct {
		Properties struct {
			Load struct {
				Properties struct {
					Source struct{ Enum []string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &schema); err != nil {
		t.Fatal(err)
	}
	sources := schema.Properties.Load.Properties.Source.Enum
	if len(sources) < 3 {
		t.Fatalf("sources %q", sources)
	}
	s := serve(t)
	entries := lokitest.Stream{Labels: map[string]string{"app": "web"}}
	for i, line := range strings.Split(strings.TrimSpace(logOf(30, time.Second, "GET /a")), "\n") {
		entries.Entries = append(entries.Entries, lokitest.Entry{Time: time.Now().Add(-time.Minute).UnixNano() + int64(i)*1e9, Line: line})
	}
	logs := httptest.NewServer(&lokitest.Server{Streams: []lokitest.Stream{entries}})
	defer logs.Close()
	for _, source := range append(sources, "tempo", "datadog") {
		load := "  source: " + source + "\n  safe_routes: ['GET /a']\n  rate: 20/s\n"
		switch source {
		case "loki":
			load += "  source_config: {url: '" + logs.URL + "', query: '{app=\"web\"}', since: 1h}\n"
		case "otel", "access_log", "tempo", "datadog":
			load += "  source_config: {path: " + source + ".txt}\n"
		}
		dir := s.project(t, load, map[string]string{"access_log.txt": logOf(30, time.Second, "GET /a"), "otel.txt": traceOf("/a", 30)})
		before := len(s.requests())
		out, exit := seatrialIn(t, dir, "run", "--url", s.URL, "--duration", "1s")
		sent := len(s.requests()) - before
		if slices.Contains(sources, source) {
			if exit != 0 && exit != 7 || sent == 0 {
				t.Errorf("%s: exit %d, %d requests:\n%s", source, exit, sent, out)
			}
			continue
		}
		if exit != 3 || sent != 0 {
			t.Errorf("%s: exit %d, %d requests:\n%s", source, exit, sent, out)
		}
		say(t, map[string]string{source: out}, append([]string{"LOD-012", source}, sources...)...)
	}
}

// traceOf is an export of n server spans of GET path, 50 ms apart.
func traceOf(path string, n int) string {
	var b strings.Builder
	for i := range n {
		at := int64(1_700_000_000_000_000_000) + int64(i)*50_000_000
		fmt.Fprintf(&b, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":2,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"url.path","value":{"stringValue":%q}},{"key":"http.response.status_code","value":{"intValue":"200"}}]}]}]}]}`+"\n",
			at, at+900_000_000, path)
	}
	return b.String()
}

// A source in which nothing can be replayed proves nothing, and says that it was the source.
func TestSourceWithoutARequest(t *testing.T) {
	s := serve(t)
	load := "  source_config: {path: in.txt}\n  safe_routes: ['GET /**']\n"
	for name, c := range map[string]struct {
		source, text, says string
		exit               int
	}{
		"no server span": {"otel", strings.ReplaceAll(traceOf("/a", 30), `"kind":2`, `"kind":3`), "the source holds no request", 7},
		"probes":         {"access_log", logOf(30, time.Second, `\x16\x03`), "the source holds no request", 7},
		"other JSON":     {"otel", `{"level":"info","request":{"uri":"/a"}}`, "holds no traces", 5},
		"no log":         {"access_log", "hello\n", "not one of 1 lines", 5},
		"empty":          {"access_log", "", "holds no line", 5},
	} {
		dir := s.project(t, "  source: "+c.source+"\n"+load, map[string]string{"in.txt": c.text})
		if out, exit := seatrialIn(t, dir, "run", "--url", s.URL); exit != c.exit || !strings.Contains(spaces.ReplaceAllString(out, " "), c.says) || strings.Contains(out, "PASS") {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", name, exit, c.exit, c.says, out)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// TR-3 holds for each file: one that does not parse is told loudly among many that do.
func TestOneBadFileAmongGoodOnesIsLoud(t *testing.T) {
	dir := t.TempDir()
	foreign := strings.Repeat("canary of another format\n", 120)
	for name, text := range map[string]string{
		"a.log": logOf(4000, time.Second, "GET /a"), "b.log": foreign, "c.log": logOf(100, time.Second, "GET /a") + foreign[:3*25],
		"x.jsonl": traceOf("/a", 4000), "y.jsonl": foreign,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for glob, want := range map[string]string{"[abc].log": "120 of 120 records of b.log (100.0%)", "*.jsonl": "120 of 120 records of y.jsonl (100.0%)"} {
		out, exit := seatrialIn(t, dir, "traffic", "record", "--from", glob)
		if exit != 0 || !strings.Contains(out, "WARNING   "+want) || strings.Contains(out, "canary") || strings.Contains(out, "more inputs") {
			t.Errorf("%s: exit %d\n%s", glob, exit, out)
		}
	}
}
