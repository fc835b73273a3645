package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/watch"
	"seatrial/judge"
	"seatrial/manifest"
	"seatrial/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frames is a watcher that keeps what it was told.
type frames struct {
	updates atomic.Int64
	final   watch.Final
}

func (f *frames) Update(watch.Frame)     { f.updates.Add(1) }
func (f *frames) Done(final watch.Final) { f.final = final }

// config is a run of source none against an admitted loopback server.
func config(t *testing.T, handler http.HandlerFunc, extra string) Config {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	dir := t.TempDir()
	m, err := manifest.Parse([]byte(fmt.Sprintf("targets:\n  here:\n    url: %s\n    max_rate: 500/s\nload:\n  source: none\n  rate: 100/s\n"+
		"  warmup: 200ms\n  duration: 1s\n  safe_routes: [GET /a, GET /b]\n%s", s.URL, extra)), dir)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Dir: dir, Manifest: m, Command: "run", RunRoot: filepath.Join(dir, ".seatrial", "runs"), Version: "test",
		Now: time.Now, Getenv: func(string) string { return "" }}
}

// TestDo takes a run from its manifest to its evidence, with a live view beside it.
func TestDo(t *testing.T) {
	var sent atomic.Int64
	cfg := config(t, func(http.ResponseWriter, *http.Request) { sent.Add(1) }, "")
	view := &frames{}
	cfg.Watch = func() watch.Watcher { return view }
	cfg.Slices = 2
	r, err := Do(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	due := r.Run.Account.Due
	for _, kind := range r.Kinds { // a busy machine may have saturated the generator; nothing else may
		if kind != fault.New(fault.GEN001, "").Kind() {
			t.Errorf("causes %+v", r.Run.Causes)
		}
	}
	if due == 0 || r.Run.Account.Answered != due || sent.Load() < int64(due) {
		t.Errorf("account %+v; the service saw %d", r.Run.Account, sent.Load())
	}
	if view.updates.Load() == 0 || view.final.Folder != r.Folder || view.final.Verdict != r.Run.Verdict {
		t.Errorf("the live view had %d frames and ended with %+v", view.updates.Load(), view.final)
	}
	var stored evidence.Run
	if b, err := os.ReadFile(filepath.Join(r.Folder, "run.json")); err != nil || json.Unmarshal(b, &stored) != nil || !stored.Complete {
		t.Errorf("run.json: %v, complete %v", err, stored.Complete)
	}
}

// TestDoFailsByErrors: a build that answers 500 fails with the threshold's code, whatever the machine.
func TestDoFailsByErrors(t *testing.T) {
	r, err := Do(t.Context(), config(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, ""))
	if err != nil {
		t.Fatal(err)
	}
	if r.Run.Verdict != judge.Fail || !strings.Contains(codes(r.Run), "LOD-011") {
		t.Errorf("verdict %s, %+v", r.Run.Verdict, r.Run.Causes)
	}
}

// TestDoInterrupted: what was measured until then is evidence, and never a pass.
func TestDoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var once atomic.Bool
	r, err := Do(ctx, config(t, func(http.ResponseWriter, *http.Request) {
		if once.CompareAndSwap(false, true) {
			cancel()
		}
	}, ""))
	if err != nil {
		t.Fatal(err)
	}
	if r.Run.Verdict == judge.Pass || !strings.Contains(codes(r.Run), "CLI-003") || r.Run.Account.Unsent == 0 {
		t.Errorf("verdict %s, causes %s, account %+v", r.Run.Verdict, codes(r.Run), r.Run.Account)
	}
}

func codes(r *evidence.Run) string {
	var out []string
	for _, c := range r.Causes {
		out = append(out, c.Code)
	}
	return strings.Join(out, " ")
}

// TestAbortRule feeds the monitor totals by the clock: only an error share that stays over the limit
// for the whole window ends the run (LD-9).
func TestAbortRule(t *testing.T) {
	type look struct {
		after      time.Duration
		ended, bad uint64 // since the look before
	}
	const s = time.Second
	for name, c := range map[string]struct {
		looks []look
		want  bool
	}{
		"over for the whole window":     {[]look{{s, 10, 6}, {s, 10, 10}, {s, 10, 6}}, true},
		"at the limit is not over it":   {[]look{{s, 10, 5}, {s, 10, 5}, {s, 10, 5}, {s, 10, 5}}, false},
		"one good second starts afresh": {[]look{{s, 10, 9}, {s, 10, 9}, {s, 10, 1}, {s, 10, 9}, {s, 10, 9}}, false},
		"silence neither adds nor ends": {[]look{{s, 10, 9}, {s, 0, 0}, {s, 0, 0}}, false},
		"and counts once it is broken":  {[]look{{s, 10, 9}, {s, 0, 0}, {s, 10, 9}}, true},
		"looks in quick succession add": {[]look{{s / 10, 1, 1}, {s, 10, 9}, {s, 10, 9}, {s, 10, 9}}, true},
		"nothing at all":                {[]look{{s, 0, 0}, {5 * s, 0, 0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			stopped := false
			m := &monitor{plan: &plan.Plan{Abort: plan.Abort{Rate: 0.5, For: 3 * s}}, stop: func() { stopped = true }}
			now := time.Unix(1000, 0)
			m.looked = now
			var ended, bad uint64
			for _, l := range c.looks {
				now = now.Add(l.after)
				ended, bad = ended+l.ended, bad+l.bad
				m.look(now, ended, bad)
			}
			if stopped != c.want || (m.abortShare() > 0) != c.want {
				t.Errorf("stopped %v with share %.2f, want %v", stopped, m.abortShare(), c.want)
			}
		})
	}
}

// TestTargetName: what there is only one of needs no name; of several none is guessed.
func TestTargetName(t *testing.T) {
	one := map[string]manifest.Service{"shop": {}}
	two := map[string]manifest.Service{"shop": {}, "search": {}}
	away := map[string]manifest.Target{"staging": {}}
	for name, c := range map[string]struct {
		m    manifest.Manifest
		want string
		code fault.Code
	}{
		"one service":              {manifest.Manifest{Services: one}, "shop", ""},
		"a service before targets": {manifest.Manifest{Services: one, Targets: away}, "shop", ""},
		"one target":               {manifest.Manifest{Targets: away}, "staging", ""},
		"several":                  {manifest.Manifest{Services: two}, "", fault.MAN004},
		"none":                     {manifest.Manifest{}, "", fault.ENV001},
	} {
		got, err := Config{Manifest: &c.m}.targetName()
		if e, _ := fault.As(err); got != c.want || (e == nil) != (c.code == "") || e != nil && e.Code != c.code {
			t.Errorf("%s: %q, %v; want %q, %s", name, got, err, c.want, c.code)
		}
	}
}

// TestCausesAreShort: a cause names a bounded number of checks and counts the rest.
func TestCausesAreShort(t *testing.T) {
	var fs []judge.Finding
	for i := range 40 {
		fs = append(fs, judge.Finding{Check: "p95_increase", Route: fmt.Sprintf("GET /%d", i)})
	}
	e := describe(fault.LOD011, fs, 40)
	if !strings.Contains(e.Message, "40 thresholds") || !strings.HasSuffix(e.Message, "and 32 more") || len(e.Message) > 400 {
		t.Errorf("%q", e.Message)
	}
}

// TestFlagsThatMeanNothingAreRefused: a flag that would be passed over in silence is not taken.
func TestFlagsThatMeanNothingAreRefused(t *testing.T) {
	service := manifest.Manifest{Services: map[string]manifest.Service{"shop": {}}}
	target := manifest.Manifest{Targets: map[string]manifest.Target{"staging": {}}}
	for name, c := range map[string]struct {
		cfg Config
		ok  bool
	}{
		"a service":                {Config{Manifest: &service, Env: "blue"}, true},
		"a revision":               {Config{Manifest: &service, Revision: "HEAD", Keep: true}, true},
		"a target":                 {Config{Manifest: &target}, true},
		"a URL":                    {Config{Manifest: &service, URL: "http://127.0.0.1:1"}, true},
		"environment of a target":  {Config{Manifest: &target, Env: "blue"}, false},
		"revision of a target":     {Config{Manifest: &target, Revision: "HEAD"}, false},
		"keeping a target":         {Config{Manifest: &target, Keep: true}, false},
		"URL and environment":      {Config{Manifest: &service, URL: "http://127.0.0.1:1", Env: "blue"}, false},
		"environment and revision": {Config{Manifest: &service, Env: "blue", Revision: "HEAD"}, false},
	} {
		err := c.cfg.checkFlags()
		if e, _ := fault.As(err); (err == nil) != c.ok || err != nil && (e == nil || e.Code != fault.CLI001) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
