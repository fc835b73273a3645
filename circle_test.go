package seatrial

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seatrial/internal/intake"
	"seatrial/traffic"
)

// TestCircleFromTrafficToProfile closes half of the circle: what the chandlery served and wrote down
// is what the sources read out of its trace export and of its access log.
func TestCircleFromTrafficToProfile(t *testing.T) {
	dir := t.TempDir()
	spans, lines := filepath.Join(dir, "spans.jsonl"), filepath.Join(dir, "access.log")
	url, stop := chandlery(t, "--otlp", spans, "--access-log", lines, "--latency", "GET /api/search=20ms",
		"--errors", "GET /api/report=0.25:503")
	want := map[string]uint64{
		"GET /api/products": 60, "GET /api/products/{id}": 120, "GET /api/search": 60,
		"GET /api/report": 60, "POST /api/orders": 60,
	}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			for i := range 10 {
				get(t, "GET", url+"/api/products")
				get(t, "GET", fmt.Sprintf("%s/api/products/%d?worker=%d", url, 1+worker*10+i, worker))
				get(t, "GET", fmt.Sprintf("%s/api/products/%d", url, 100+worker*10+i))
				get(t, "GET", url+"/api/search?q=anchor")
				get(t, "GET", url+"/api/report")
				get(t, "POST", url+"/api/orders")
			}
		})
	}
	wg.Wait()
	stop()

	for kind, file := range map[string]string{intake.OTel: spans, intake.AccessLog: lines} {
		p := read(t, kind, file)
		if got := requests(p); !maps.Equal(got, want) {
			t.Errorf("%s: %v; want %v", kind, got, want)
		}
		for i := range p.Routes {
			r := &p.Routes[i]
			if r.Name() == "GET /api/report" && (r.Status["5xx"] != 15 || r.Status["2xx"] != 45) {
				t.Errorf("%s: %s answered %v; want 15 x 5xx and 45 x 2xx", kind, r.Name(), r.Status)
			}
			base, ok := r.Baseline()
			if ok != (kind == intake.OTel) {
				t.Errorf("%s: %s has a baseline: %v", kind, r.Name(), ok)
			}
			if ok && r.Name() == "GET /api/search" && base < 20*time.Millisecond {
				t.Errorf("the baseline of a route that sleeps 20ms is %s", base)
			}
		}
	}
}

// TestBundledRecordings checks the demo's traffic against what independent readers counted.
func TestBundledRecordings(t *testing.T) {
	p := read(t, intake.OTel, "examples/chandlery/traffic/production.otlp.jsonl.gz")
	var total uint64
	for _, n := range requests(p) {
		total += n
	}
	if total != 700 {
		t.Errorf("the export holds %d requests; want 700", total)
	}
	sent := map[string]time.Duration{ // p95 by nearest rank, as traffic/README.md's readers counted it
		"GET /api/products": 8593581, "GET /api/products/{id}": 6223026,
		"POST /api/cart/{cartId}/items": 13055502, "GET /api/report": 48850830,
	}
	for i := range p.Routes {
		r := &p.Routes[i]
		if want, ok := sent[r.Name()]; ok {
			if got, _ := r.Baseline(); (got - want).Abs() > want/100 {
				t.Errorf("%s: baseline %s; want %s", r.Name(), got, want)
			}
			delete(sent, r.Name())
		}
	}
	if len(sent) > 0 {
		t.Errorf("the export lacks %v; it has %v", sent, requests(p))
	}
	log := read(t, intake.AccessLog, "examples/chandlery/traffic/production.access.log.gz")
	total = 0
	for _, n := range requests(log) {
		total += n
	}
	if total != 1000 || log.Window.Seconds != 177 {
		t.Errorf("the log holds %d requests in %v s; want 1000 in 177", total, log.Window.Seconds)
	}
}

// chandlery builds and starts the example with flags, and gives its URL and what stops it.
func chandlery(t *testing.T, flags ...string) (url string, stop func()) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "chandlery")
	if out, err := exec.Command("go", "build", "-o", bin, "./examples/chandlery").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	cmd := exec.Command(bin, append([]string{"--addr", "127.0.0.1:0"}, flags...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it did not say where it listens: %v", err)
	}
	return strings.TrimSpace(said[strings.Index(said, "http"):]), func() {
		http.DefaultClient.CloseIdleConnections()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("it did not end well: %v", err)
		}
	}
}

// get sends one request and reads the answer.
func get(t *testing.T, method, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// read reads a source into a profile.
func read(t *testing.T, kind, file string) *traffic.Profile {
	t.Helper()
	got, err := intake.Read(t.Context(), intake.Config{Kind: kind, Paths: []string{file}, Dir: ".", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return got.Profile
}

// requests counts by route.
func requests(p *traffic.Profile) map[string]uint64 {
	out := map[string]uint64{}
	for i := range p.Routes {
		out[p.Routes[i].Name()] += p.Routes[i].Requests
	}
	return out
}
