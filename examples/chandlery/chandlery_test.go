package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// start serves cfg on a free port and stops when the test ends.
func start(t *testing.T, cfg Config) (url string, srv *Server) {
	t.Helper()
	srv, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.Release()
		ts.Close()
	})
	return ts.URL, srv
}

// do sends one request and gives status and body.
func do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestShopAnswers(t *testing.T) {
	url, _ := start(t, Config{})
	for _, c := range []struct {
		method, path, body string
		status             int
		has                string
	}{
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/", "", 200, "Chandlery"},
		{"HEAD", "/", "", 200, ""},
		{"GET", "/assets/site.css", "", 200, "body{"},
		{"GET", "/users/38429aee-3a1d-54b1-d549-78e7f19a29c9/avatar.png", "", 200, "PNG"},
		{"GET", "/api/products", "", 200, `"id":1,`},
		{"GET", "/api/products?page=2", "", 200, `"id":43,`},
		{"GET", "/api/products/346", "", 200, `"id":346,`},
		{"GET", "/api/products/34", "", 404, "no such product"},
		{"GET", "/api/products/501", "", 404, "no such product"},
		{"GET", "/api/products/x", "", 404, "no such product"},
		{"GET", "/api/categories/bilge-pump", "", 200, "bilge pump"},
		{"GET", "/api/categories/none", "", 404, "no such category"},
		{"GET", "/api/search?q=Anchor", "", 200, "anchor"},
		{"POST", "/api/search", `{"q":"lantern"}`, 200, "lantern"},
		{"POST", "/api/search", "", 200, `"id":1,`},
		{"POST", "/api/search", "{", 400, "JSON"},
		{"POST", "/api/cart/8de1f33f0601aecb1973e1c2/items", "", 201, `"items":1`},
		{"POST", "/api/cart/8de1f33f0601aecb1973e1c2/items", `{"product_id":2}`, 201, `"items":2`},
		{"POST", "/api/cart/" + strings.Repeat("x", 65) + "/items", "", 400, "64"},
		{"GET", "/api/orders/1", "", 200, `"placed"`},
		{"POST", "/api/orders", `{"product_id":3,"quantity":2}`, 201, `"id":1001`},
		{"POST", "/api/orders", `{"product_id":17}`, 422, "no such product"},
		{"DELETE", "/api/orders/1001", "", 200, `"cancelled"`},
		{"GET", "/api/orders/1001", "", 200, `"cancelled"`},
		{"GET", "/api/orders/99999", "", 404, "no such order"},
		{"GET", "/api/orders/-1", "", 404, "no such order"},
		{"POST", "/api/payments/charge", "", 202, "accepted"},
		{"POST", "/api/payments/steal", "", 404, "no such payment"},
		{"GET", "/api/report", "", 200, "stock_value_cents"},
		{"GET", "/nowhere", "", 404, "not found"},
		{"PUT", "/api/products", "", 404, "not found"},
	} {
		status, body := do(t, c.method, url+c.path, c.body)
		if status != c.status || !strings.Contains(body, c.has) {
			t.Errorf("%s %s: %d %q; want %d with %q", c.method, c.path, status, body, c.status, c.has)
		}
	}
	_, avatar := do(t, "GET", url+"/users/1/avatar.png", "")
	if _, err := png.Decode(strings.NewReader(avatar)); err != nil {
		t.Errorf("the avatar is no PNG: %v", err)
	}
	if status, _ := do(t, "POST", url+"/api/orders", strings.Repeat(" ", bodyLimit+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: %d", status)
	}
}

func TestRecommendationsFillFortyFourBuckets(t *testing.T) {
	url, _ := start(t, Config{})
	heads := map[string]bool{}
	for _, scope := range scopes() {
		for _, strategy := range strategies() {
			_, body := do(t, "GET", fmt.Sprintf("%s/api/recommendations/%s/%s?product=2", url, scope, strategy), "")
			var rec recommendation
			if err := json.Unmarshal([]byte(body), &rec); err != nil {
				t.Fatal(err)
			}
			if rec.Scope != scope || rec.Strategy != strategy || len(rec.Items) != 6 {
				t.Errorf("%s/%s: %+v", scope, strategy, rec)
			}
			heads[rec.Head] = true
		}
	}
	if len(heads) != 44 {
		t.Errorf("%d heads; want 44", len(heads))
	}
	for _, path := range []string{"/x/new", "/shop/x", "/shop/similar?product=17"} {
		if status, _ := do(t, "GET", url+"/api/recommendations"+path, ""); status != 404 {
			t.Errorf("%s: %d; want 404", path, status)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	s := newShop()
	for i := range 3 * orderSlots {
		s.place(1, 1)
		s.put(fmt.Sprint(i), 1)
		s.put("busy", 1)
	}
	if len(s.orders) != orderSlots || len(s.carts) != cartSlots || len(s.queue) != cartSlots {
		t.Errorf("orders %d, carts %d, queue %d", len(s.orders), len(s.carts), len(s.queue))
	}
	if n := s.put("busy", 1); n > cartItems {
		t.Errorf("%d items in one cart", n)
	}
	if _, ok := s.order(1, ""); ok {
		t.Error("the oldest order should be forgotten")
	}
	if _, ok := s.order(s.lastID, ""); !ok {
		t.Error("the newest order should be kept")
	}
}

func TestLatencyIsAdded(t *testing.T) {
	url, _ := start(t, Config{Latency: []string{"*=1ms", "GET /api/search=40ms"}})
	begin := time.Now()
	do(t, "GET", url+"/api/search", "")
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("took %s; want at least 40ms", took)
	}
}

func TestLatencyDistributions(t *testing.T) {
	uniform, err := parseLatency("30ms..50ms", 1)
	if err != nil {
		t.Fatal(err)
	}
	exponential, err := parseLatency("exp:20ms", 1)
	if err != nil {
		t.Fatal(err)
	}
	const n = 10_000
	var sumU, sumE time.Duration
	for range n {
		u := uniform.next()
		if u < 30*time.Millisecond || u > 50*time.Millisecond {
			t.Fatalf("%s is outside 30ms..50ms", u)
		}
		sumU += u
		sumE += exponential.next()
	}
	if mean := sumU / n; mean < 39*time.Millisecond || mean > 41*time.Millisecond {
		t.Errorf("uniform mean %s; want about 40ms", mean)
	}
	if mean := sumE / n; mean < 19*time.Millisecond || mean > 21*time.Millisecond {
		t.Errorf("exponential mean %s; want about 20ms", mean)
	}
	again, _ := parseLatency("30ms..50ms", 1)
	first, _ := parseLatency("30ms..50ms", 1)
	if a, b := again.next(), first.next(); a != b {
		t.Errorf("the same seed gave %s and %s", a, b)
	}
}

func TestErrorShareIsExact(t *testing.T) {
	url, _ := start(t, Config{Errors: []string{"GET /api/report=0.1:503", "GET /api/orders/{id}=1"}})
	counts := map[int]int{}
	for range 50 {
		status, _ := do(t, "GET", url+"/api/report", "")
		counts[status]++
	}
	if counts[503] != 5 || counts[200] != 45 {
		t.Errorf("%v; want 5 x 503 and 45 x 200", counts)
	}
	if status, _ := do(t, "GET", url+"/api/orders/1", ""); status != 500 {
		t.Errorf("%d; want the default, 500", status)
	}
	if status, _ := do(t, "GET", url+"/api/products", ""); status != 200 {
		t.Errorf("a route without a rule: %d", status)
	}
}

func TestUnauthorizedSparesHealth(t *testing.T) {
	url, _ := start(t, Config{Unauthorized: true})
	for path, want := range map[string]int{"/healthz": 200, "/": 401, "/api/products": 401, "/nowhere": 401} {
		if status, _ := do(t, "GET", url+path, ""); status != want {
			t.Errorf("%s: %d; want %d", path, status, want)
		}
	}
}

func TestStallHoldsUntilThePeriodEnds(t *testing.T) {
	s, err := parseStall("1s@10s")
	if err != nil {
		t.Fatal(err)
	}
	for age, want := range map[time.Duration]time.Duration{
		0: 0, 8999 * time.Millisecond: 0, 9 * time.Second: time.Second, 9500 * time.Millisecond: 500 * time.Millisecond,
		10 * time.Second: 0, 19750 * time.Millisecond: 250 * time.Millisecond,
	} {
		if got := s.left(age); got != want {
			t.Errorf("at %s: %s; want %s", age, got, want)
		}
	}
}

// In a bubble of synthetic time every held request is let go at the same instant.
func TestStallStopsTheWholeRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := New(Config{Stall: []string{"GET /api/products=1s@10s"}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		get := func(path string) time.Duration {
			srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
			return time.Since(began)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(9*time.Second + time.Duration(i)*50*time.Millisecond)
				if other := get("/api/report"); other != 9*time.Second+time.Duration(i)*50*time.Millisecond {
					t.Errorf("another route waited until %s", other)
				}
				if done := get("/api/products"); done != 10*time.Second {
					t.Errorf("request %d ended at %s; want 10s", i, done)
				}
			})
		}
		wg.Wait()
	})
}

func TestLockupNeverAnswers(t *testing.T) {
	url, srv := start(t, Config{Lockup: []string{"GET /api/products=after:2"}})
	for range 2 {
		if status, _ := do(t, "GET", url+"/api/products", ""); status != 200 {
			t.Fatalf("before the lock-up: %d", status)
		}
	}
	held := make(chan error, 1)
	go func() {
		resp, err := http.Get(url + "/api/products")
		if err == nil {
			_ = resp.Body.Close()
		}
		held <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", url+"/api/products", nil)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Errorf("answered %d after the lock-up", resp.StatusCode)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v; want the client's own time-out", err)
	}
	if status, _ := do(t, "GET", url+"/api/report", ""); status != 200 {
		t.Errorf("another route: %d", status)
	}
	srv.Release()
	if err := <-held; err == nil {
		t.Error("a held request was answered on release")
	}
}

func TestFlagsAreRefusedWithTheReason(t *testing.T) {
	for flag, want := range map[string]string{
		"--latency=GET /x=1ms":         `no route "GET /x"; the shop serves GET /{$}, `,
		"--latency=nothing":            "want ROUTE=VALUE",
		"--latency=*=fast":             `"fast" is no duration`,
		"--latency=*=-1ms":             `"-1ms" is no duration`,
		"--latency=*=5ms..1ms":         "5ms is more than 1ms",
		"--latency=*=exp:x":            `"x" is no duration`,
		"--errors=*=2":                 "no share between 0 and 1",
		"--errors=*=NaN":               "no share between 0 and 1",
		"--errors=*=0.5:200":           "no status between 400 and 599",
		"--stall=*=1s":                 "LENGTH@PERIOD",
		"--stall=*=10s@1s":             "does not fit",
		"--lockup=*=100":               "after:N",
		"--lockup=*=after:-1":          "no count",
		"--also=testdata/absent":       "no such file",
		"--otlp=testdata/absent/spans": "no such file",
		"--no-such-flag":               "flag provided but not defined",
		"argument":                     "unexpected argument",
	} {
		err := run(t.Context(), []string{"--addr", "127.0.0.1:0", flag}, func(string) string { return "" }, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", flag, err, want)
		}
	}
}

func TestAlsoRefusesWhatTheMuxCannotHold(t *testing.T) {
	for content, want := range map[string]string{
		"GET":                     "also:1: want METHOD /template",
		"\n# c\nGET x":            "also:3: want METHOD /template",
		"GET /{":                  "routes: ",
		"GET /api/products":       "routes: ",
		"GET /a/{x}\nGET /{y}/b/": "routes: ",
	} {
		file := filepath.Join(t.TempDir(), "also")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Also: file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", content, err, want)
		}
	}
}

func TestPortComesFromTheEnvironment(t *testing.T) {
	env := func(string) string { return "1234" }
	if cfg, err := parse(nil, env, io.Discard); err != nil || cfg.Addr != "127.0.0.1:1234" {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg, err := parse([]string{"--addr", ":1"}, env, io.Discard); err != nil || cfg.Addr != ":1" {
		t.Errorf("the flag should win: %+v, %v", cfg, err)
	}
}

// accessLine is the combined format.
var accessLine = regexp.MustCompile(`^(\S+) - (\S+) \[([^]]+)\] "(\S+) (\S+) HTTP/1\.1" (\d{3}) (\d+|-) "([^"]*)" "([^"]*)"$`)

// seen is one request as a record tells it.
type seen struct{ method, path, status string }

func TestRecordsAgree(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{AccessLog: filepath.Join(dir, "access.log"), OTLP: filepath.Join(dir, "spans.jsonl"),
		Errors: []string{"GET /api/report=0.5:503"}, Lockup: []string{"POST /api/orders=after:0"}}
	ctx, cancel := context.WithCancel(t.Context())
	srv, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- serve(ctx, lis, srv) }()
	url := "http://" + lis.Addr().String()

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 20 {
				do(t, "GET", fmt.Sprintf("%s/api/products/%d?ref=\"x", url, 30+i), "")
				do(t, "GET", url+"/api/report", "")
				do(t, "GET", url+"/no%20where", "")
			}
		})
	}
	wg.Wait()
	gone, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	req, _ := http.NewRequestWithContext(gone, "POST", url+"/api/orders", nil)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("the locked-up route answered")
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}

	fromLog, fromTrace := readLog(t, cfg.AccessLog), readTrace(t, cfg.OTLP)
	total := 0
	for _, n := range fromLog {
		total += n
	}
	if total != 8*20*3+1 {
		t.Errorf("%d lines; want %d", total, 8*20*3+1)
	}
	if !maps.Equal(fromLog, fromTrace) {
		t.Errorf("the log says %v,\nthe trace %v", fromLog, fromTrace)
	}
	for want, n := range map[seen]int{
		{"GET", "/api/products/34", "404"}: 8, {"GET", "/api/products/30", "200"}: 8,
		{"GET", "/api/report", "503"}: 80, {"GET", "/api/report", "200"}: 80,
		{"GET", "/no%20where", "404"}: 160, {"POST", "/api/orders", "499"}: 1,
	} {
		if fromLog[want] != n {
			t.Errorf("%v: %d; want %d", want, fromLog[want], n)
		}
	}
}

// readLog counts the requests of an access log, every line of which must be combined.
func readLog(t *testing.T, file string) map[seen]int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[seen]int{}
	for line := range strings.Lines(string(b)) {
		m := accessLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("not a combined line: %q", line)
		}
		if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[3]); err != nil {
			t.Error(err)
		}
		path, _, _ := strings.Cut(m[5], "?")
		out[seen{m[4], path, m[6]}]++
	}
	return out
}

// readTrace counts the server spans of an export and checks the shape of every span.
func readTrace(t *testing.T, file string) map[seen]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	out := map[seen]int{}
	kinds := map[int]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var doc tracesData
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		for _, s := range doc.ResourceSpans[0].ScopeSpans[0].Spans {
			kinds[s.Kind]++
			if !validID(s.TraceID, 32) || !validID(s.SpanID, 16) || s.Start > s.End || len(s.Start) != 19 {
				t.Errorf("malformed span %+v", s)
			}
			if s.Kind == 2 {
				out[seenOf(t, s)]++
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if kinds[2] == 0 || kinds[2] != kinds[3] {
		t.Errorf("spans by kind %v; want as many client as server spans", kinds)
	}
	return out
}

// seenOf reads a server span and checks its route against its path.
func seenOf(t *testing.T, s span) seen {
	t.Helper()
	attr := map[string]string{}
	for _, a := range s.Attributes {
		for _, v := range a.Value {
			attr[a.Key] = fmt.Sprint(v)
		}
	}
	want := map[bool]string{true: "/api/products/{id}", false: attr["url.path"]}[strings.HasPrefix(attr["url.path"], "/api/products/")]
	if attr["url.path"] == "/no%20where" {
		want = ""
	}
	if attr["http.route"] != want {
		t.Errorf("%s has route %q; want %q", attr["url.path"], attr["http.route"], want)
	}
	status := attr["http.response.status_code"]
	if status == "" {
		status = "499" // nobody was answered
	}
	if bad := status >= "499"; bad != (s.Status.Code == 2) {
		t.Errorf("status %s has span status %d", status, s.Status.Code)
	}
	return seen{attr["http.request.method"], attr["url.path"], status}
}

func TestTraceContextIsContinued(t *testing.T) {
	const trace, parent = "520f1588cdb12e1058ea638ed604b486", "21278a2ede9189e7"
	if id, up := traceOf("00-" + trace + "-" + parent + "-01"); id != trace || up != parent {
		t.Errorf("%s %s", id, up)
	}
	for _, bad := range []string{"", "00-x-y-01", "00-" + strings.Repeat("0", 32) + "-" + parent + "-01"} {
		if id, up := traceOf(bad); !validID(id, 32) || up != "" {
			t.Errorf("%q: %s %s; want a new trace", bad, id, up)
		}
	}
}

func TestHostileTextCannotBreakALogLine(t *testing.T) {
	line := combined(&served{method: "GET", target: "/\"\n\\é", proto: "1.1", agent: "a\"b\x00", user: "a b\n", status: 200, client: "::1"})
	if strings.Count(line, "\n") != 1 || !strings.Contains(line, `"GET /\x22\x0A\x5C\xC3\xA9 HTTP/1.1"`) || !strings.Contains(line, "- a%20b%0A [") {
		t.Errorf("%q", line)
	}
}

func TestRunServesAndStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"--addr", "127.0.0.1:0", "--lockup", "GET /{$}=after:0"}, func(string) string { return "" }, w, io.Discard)
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(line[strings.Index(line, "http"):])
	if status, _ := do(t, "GET", url+"/healthz", ""); status != 200 {
		t.Fatalf("health: %d", status)
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		if resp, err := http.Get(url + "/"); err == nil {
			_ = resp.Body.Close()
		}
	}()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopping: %v", err)
	}
	<-held
}

// The bundled recordings can be replayed: what production answered, the chandlery answers, status by
// status but for redirects, which it does not copy.
func TestBundledAccessLogIsServed(t *testing.T) {
	srv, err := New(Config{Also: "traffic/storefront.routes"})
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]int{}
	lines := strings.Split(strings.TrimSpace(unpack(t, "traffic/production.access.log.gz")), "\n")
	for _, line := range lines {
		part := strings.Split(line, `"`)
		request := strings.Fields(part[1])
		recorded := strings.Fields(part[2])[0]
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, httptest.NewRequest(request[0], request[1], nil))
		if recorded == "200" && rec.Code != 200 {
			wrong[part[1]]++
		}
	}
	if len(lines) != 1000 || len(wrong) > 0 {
		t.Errorf("%d lines; answered otherwise than 200: %v", len(lines), wrong)
	}
}

func TestBundledExportIsServed(t *testing.T) {
	srv, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile(`"http.request.method","value":\{"stringValue":"(\w+)"\}\}[^]]*?"url.path","value":\{"stringValue":"([^"]+)"\}\}[^]]*?"http.response.status_code","value":\{"intValue":(\d+)\}`)
	found := paths.FindAllStringSubmatch(unpack(t, "traffic/production.otlp.jsonl.gz"), -1)
	wrong := map[string]int{}
	for _, m := range found {
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, httptest.NewRequest(m[1], m[2], nil))
		sameClass := fmt.Sprint(rec.Code)[0] == m[3][0]
		if !sameClass && m[1] != "DELETE" && m[3] != "500" {
			wrong[fmt.Sprint(m[1], " ", m[2], ": ", m[3], " became ", rec.Code)]++
		}
	}
	if len(found) != 700 || len(wrong) > 0 {
		t.Errorf("%d server spans; answered otherwise: %v", len(found), slices.Sorted(maps.Keys(wrong)))
	}
}

// unpack reads a gzip file.
func unpack(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
