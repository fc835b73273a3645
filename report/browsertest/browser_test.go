// Package browsertest opens report.html in a real Chromium: no request leaves the page, its policy is
// in force, it draws, sorts and filters, and the console stays empty. It is apart from package
// report, so that a quick run of that package's tests needs no browser.
package browsertest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seatrial/evidence"
	"seatrial/report"
)

// chromium finds the browser; a machine without one fails the test, and `make test` installs it.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no chromium on the PATH: install the package chromium")
	return ""
}

// browse runs the browser once on a page and gives its document and its log.
func browse(t *testing.T, url string, flags ...string) (document, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(), "--enable-logging=stderr",
		"--log-level=0", "--virtual-time-budget=3000", "--window-size=1200,900"}, flags...)
	cmd := exec.CommandContext(ctx, chromium(t), append(args, url)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return out.String(), errs.String()
}

func sample(t *testing.T) *evidence.Run {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := evidence.Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func page(t *testing.T, run *evidence.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// console are the messages that the page caused.
func console(log string) []string {
	return regexp.MustCompile(`(?m)^.*(?:CONSOLE|Content Security Policy|Refused to).*$`).FindAllString(log, -1)
}

// probe appends a script to the page's own, whose digest the policy then admits, so that the test can
// use the page as a person does. Nothing else of the policy changes.
func probe(t *testing.T, html []byte, script string) []byte {
	t.Helper()
	const marker = "</body>"
	i := bytes.LastIndex(html, []byte(marker))
	if i < 0 {
		t.Fatal("the page has no end")
	}
	out := append([]byte(nil), html[:i]...)
	out = append(out, "<script>"+script+"</script>"...)
	out = append(out, html[i:]...)
	return bytes.Replace(out, []byte("script-src &#39;"), []byte("script-src &#39;"+digest(script)+"&#39; &#39;"), 1)
}

// As a file, as it is opened from a download: it draws, and the console stays empty.
func TestOpensFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, page(t, sample(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, log := browse(t, "file://"+path, "--dump-dom")
	if lines := console(log); len(lines) != 0 {
		t.Errorf("the console says: %s", strings.Join(lines, "\n"))
	}
	if n := strings.Count(dom, `class="chart"`); n != 6 {
		t.Errorf("%d charts in the document, want 6", n)
	}
	if !strings.Contains(dom, `<th scope="col"><button type="button">route</button></th>`) {
		t.Error("the table's script did not run under the page's policy")
	}
	if !strings.Contains(dom, "Content-Security-Policy") {
		t.Error("the policy is missing")
	}
}

// Served, so that every request is seen: the page is asked for, and nothing else.
func TestAsksForNothing(t *testing.T) {
	var pages, others atomic.Int32
	html := page(t, sample(t))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/report.html":
			pages.Add(1)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(html)
		case "/favicon.ico": // asked for by the browser itself, for the tab
			http.NotFound(w, r)
		default:
			others.Add(1)
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	proxy := deadEnd(t)
	_, log := browse(t, server.URL+"/report.html", "--dump-dom", "--proxy-server="+proxy.addr,
		"--proxy-bypass-list=<-loopback>;"+strings.TrimPrefix(server.URL, "http://"))
	if pages.Load() == 0 || others.Load() != 0 {
		t.Errorf("the page was asked for %d times, other things %d times\n%s", pages.Load(), others.Load(), log)
	}
	for _, host := range proxy.hosts() {
		if bytes.Contains(html, []byte(host)) {
			t.Errorf("a host that the page names was asked for: %s", host)
		}
	}
}

// blindProxy notes every host that the browser asks for beyond the test's own server, and answers
// none. The browser's own services may ask for theirs; the page must not.
type blindProxy struct {
	addr string
	mu   sync.Mutex
	seen []string
}

func (p *blindProxy) hosts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

func deadEnd(t *testing.T) *blindProxy {
	t.Helper()
	p := &blindProxy{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Host)
		p.mu.Unlock()
		http.Error(w, "no way out", http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	p.addr = strings.TrimPrefix(server.URL, "http://")
	return p
}

// A page full of hostile names runs nothing of them, and would be kept from it if it tried.
func TestHostileNamesRunNothing(t *testing.T) {
	run := sample(t)
	const attack = `</td></style></script><script>document.title="owned"</script><img src="http://127.0.0.1:9/x" onerror="document.title='owned'">`
	run.Sentence, run.Reproduce, run.Warnings = attack, attack, []string{attack}
	for i := range run.Routes {
		run.Routes[i].Name = attack
	}
	for i := range run.Series {
		run.Series[i].ByClass = map[string]uint64{attack: 1}
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, page(t, run), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, log := browse(t, "file://"+path, "--dump-dom")
	if strings.Contains(dom, "<title>owned") || strings.Contains(dom, "<img") {
		t.Error("a hostile name became a part of the page")
	}
	if lines := console(log); len(lines) != 0 {
		t.Errorf("the console says: %s", strings.Join(lines, "\n"))
	}
}

// The policy itself: what is smuggled into the page does not run, and the console says so. This also
// shows that an empty console means something.
func TestPolicyIsInForce(t *testing.T) {
	html := bytes.Replace(page(t, sample(t)), []byte("</body>"), []byte(`<script>document.title="owned"</script><img src="http://127.0.0.1:9/x.png"></body>`), 1)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, html, 0o600); err != nil {
		t.Fatal(err)
	}
	dom, log := browse(t, "file://"+path, "--dump-dom")
	if strings.Contains(dom, "<title>owned") {
		t.Error("a script that the page did not bring was run")
	}
	if len(console(log)) < 2 {
		t.Errorf("the console is silent about a refused script and image:\n%s", log)
	}
}

// Sorting and filtering, contrast and names: asked of the page by a script whose digest is admitted.
func TestTheRouteTableSortsAndFilters(t *testing.T) {
	const script = `
const head = [...document.querySelectorAll("#routetable thead tr:nth-child(2) th")];
const names = () => [...document.querySelectorAll("#routetable tbody tr")].filter(r => !r.hidden).map(r => r.cells[0].firstChild.textContent);
head[1].querySelector("button").click();
const out = ["sorted:" + names().join("|") + ":" + head[1].getAttribute("aria-sort")];
head[1].querySelector("button").click();
out.push("again:" + names().join("|") + ":" + head[1].getAttribute("aria-sort"));
const f = document.getElementById("filter");
f.value = "ORDERS"; f.dispatchEvent(new Event("input"));
out.push("filtered:" + names().join("|") + ":" + document.getElementById("found").textContent);
document.title = out.join(";");`
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, probe(t, page(t, sample(t)), script), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, log := browse(t, "file://"+path, "--dump-dom")
	title := regexp.MustCompile(`<title>(.*?)</title>`).FindStringSubmatch(dom)
	want := "sorted:GET /|GET /orders/{id}|GET /products/{slug}/reviews|HEAD /health:descending;" +
		"again:HEAD /health|GET /products/{slug}/reviews|GET /|GET /orders/{id}:ascending;filtered:GET /orders/{id}:1 of 4 routes"
	if len(title) != 2 || title[1] != want {
		t.Errorf("got %q\nwant %q\n%s", title, want, strings.Join(console(log), "\n"))
	}
}

// WCAG AA: every text has a contrast of 4.5 to its ground, in light and in dark; every chart, table
// and control has a name; nothing overflows the page.
func TestIsAccessible(t *testing.T) {
	for _, flags := range [][]string{{}, {"--blink-settings=preferredColorScheme=0"}, {"--window-size=480,900"}} {
		path := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(path, probe(t, page(t, sample(t)), accessScript), 0o600); err != nil {
			t.Fatal(err)
		}
		dom, log := browse(t, "file://"+path, append([]string{"--dump-dom"}, flags...)...)
		title := regexp.MustCompile(`<title>(.*?)</title>`).FindStringSubmatch(dom)
		if len(title) != 2 || !strings.HasPrefix(title[1], "checked ") || !strings.HasSuffix(title[1], "problems: none") {
			t.Errorf("%v: %q\n%s", flags, title, strings.Join(console(log), "\n"))
		}
	}
}
