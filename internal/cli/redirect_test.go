package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// admitted is a project whose target is a server of the test.
func admitted(t *testing.T, handler http.HandlerFunc, load string) *bench {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	b := newBench(t)
	b.write("seatrial.yaml", fmt.Sprintf("version: 1\ntargets:\n  here: {url: %q, max_rate: 200/s}\nload:\n  rate: 50/s\n  duration: 1s\n  warmup: 0s\n  safe_routes: [\"GET /a\"]\n%s", s.URL, load))
	return b
}

// LD-4: a response cannot authorise another host. Every answer points elsewhere, and nobody goes there.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = elsewhere.Close() }()
	var went atomic.Int64
	go func() {
		for {
			c, err := elsewhere.Accept()
			if err != nil {
				return
			}
			went.Add(1)
			_ = c.Close()
		}
	}()
	b := admitted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a" {
			t.Errorf("%s was asked for", r.URL.Path)
		}
		http.Redirect(w, r, "http://"+elsewhere.Addr().String()+"/b", http.StatusMovedPermanently)
	}, "")
	_, r, _ := b.run("run")
	if w := strings.Join(r.Warnings, "\n"); !strings.Contains(w, "were redirects, which are never followed") {
		t.Errorf("nothing warns of them: %q", w)
	}
	if r.Account.Answered == 0 || r.Routes[0].Status["3xx"] != r.Account.Answered {
		t.Errorf("account %+v, statuses %+v", r.Account, r.Routes[0].Status)
	}
	if n := went.Load(); n != 0 {
		t.Errorf("%d connections went where a redirect pointed", n)
	}
}

// The proxy variables of the environment never widen or bend where load goes (SA-2).
func TestProxySettingsAreIgnored(t *testing.T) {
	var proxied, direct atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied.Add(1) }))
	defer proxy.Close()
	b := admitted(t, func(http.ResponseWriter, *http.Request) { direct.Add(1) }, "")
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("no_proxy", "")
	_, r, _ := b.run("run")
	if proxied.Load() != 0 || direct.Load() == 0 || uint64(direct.Load()) != r.Account.Answered {
		t.Errorf("%d requests by the proxy, %d direct, %d answered", proxied.Load(), direct.Load(), r.Account.Answered)
	}
}

// SA-11: a disk that is full when a run ends gives no verdict and a code; nothing is left behind.
func TestFullDisk(t *testing.T) {
	b := admitted(t, func(http.ResponseWriter, *http.Request) {}, "")
	// A limit on the size of a file fails as a full disk does, and needs no privileges.
	limited := exec.Command("sh", "-c", `ulimit -f 16; exec "$0" "$@"`, b.seatrial, "-C", b.dir, "run")
	out, err := limited.CombinedOutput()
	if got := exitNumber(err); got != 5 || !strings.Contains(string(out), "EVD-001") || strings.Contains(string(out), "Pass") {
		t.Errorf("exit %d on a full disk:\n%s", got, out)
	}
	out, _ = b.command("report", "list").CombinedOutput()
	if strings.Contains(string(out), "pass") {
		t.Errorf("a run without its evidence is listed as a pass:\n%s", out)
	}
}
