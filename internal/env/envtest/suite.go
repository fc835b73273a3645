// Package envtest is the conformance suite of environments: every driver passes the same tests. It
// also holds the helper service that they start, which is the test binary itself.
package envtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/internal/env"
	"seatrial/manifest"
)

// Driver is what a driver gives to the suite.
type Driver struct {
	Provider env.Provider
	Command  func(Mode) string // the `run` line of a helper service under this driver
}

// Run runs the whole suite.
func Run(t *testing.T, d Driver) {
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"up and down", d.upDown},
		{"order, substitution and environment", d.substitution},
		{"replicas", d.replicas},
		{"not ready", d.notReady},
		{"build", d.build},
		{"strays and stubborn processes are removed", d.strays},
		{"an impatient tear-down forces", d.impatient},
		{"one name, one holder", d.oneHolder},
		{"kept and opened again", d.kept},
		{"cancelled", d.cancelled},
		{"remove is repeatable and narrow", d.remove},
		{"paths with spaces and other letters", d.paths},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each has a folder of its own, and most of the time is waiting
			c.test(t)
		})
	}
}

func (d Driver) service(m Mode) manifest.Service {
	return manifest.Service{Run: d.Command(m), Health: manifest.Health{Path: "/healthz", Timeout: 20 * time.Second}}
}

func (d Driver) config(dir string, services map[string]manifest.Service) env.Config {
	return env.Config{Dir: dir, Name: "trial", Services: services, Provider: d.Provider}
}

// up brings services up and takes them down when the test ends.
func (d Driver) up(t *testing.T, cfg env.Config) *env.Environment {
	t.Helper()
	e, err := env.Up(t.Context(), cfg)
	if err != nil {
		t.Fatalf("up: %v\n%s", err, detail(err))
	}
	t.Cleanup(func() {
		if err := e.Down(context.Background()); err != nil {
			t.Errorf("down: %v", err)
		}
	})
	return e
}

func detail(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Detail
	}
	return ""
}

// WantCode fails the test unless err carries the code.
func WantCode(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != code {
		t.Fatalf("got error %v, want %s", err, code)
	}
	return f
}

// WantEmpty fails the test unless the ledger of dir holds nothing.
func WantEmpty(t *testing.T, dir string) {
	t.Helper()
	infos, err := env.List(dir)
	if err != nil || len(infos) != 0 {
		t.Fatalf("the ledger holds %v (%v), want nothing", infos, err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (d Driver) upDown(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	cfg := d.config(dir, map[string]manifest.Service{"web": d.service(Slow)})
	cfg.Revision, cfg.Out = "abc", &out
	e := d.up(t, cfg)
	target, err := e.Target("")
	if err != nil || !target.OK() || target.Proof().Kind != "environment" {
		t.Fatalf("target: %+v, %v", target.Proof(), err)
	}
	if a := target.Addrs(); len(a) != 1 || !a[0].Addr().IsLoopback() || a[0].String() != strings.TrimPrefix(e.URLs()["web"], "http://") {
		t.Fatalf("addresses %v, URLs %v", a, e.URLs())
	}
	infos, err := env.List(dir)
	if err != nil || len(infos) != 1 || infos[0].State != env.InUse || infos[0].Holder != os.Getpid() || infos[0].Revision != "abc" {
		t.Fatalf("list: %+v, %v", infos, err)
	}
	if ms := e.StartupMS()["web"]; ms < 300 {
		t.Errorf("start-up took %v ms, the helper waits 300", ms)
	}
	if !strings.Contains(out.String(), "web/0: ready at http://") {
		t.Errorf("progress: %q", out.String())
	}
	res := infos[0].Services[0].Resource
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.Provider.Alive(res) {
		t.Error("the service still runs")
	}
	WantEmpty(t, dir)
	if _, err := e.Target("web"); err == nil {
		t.Error("an environment that is down still gives a target")
	} else {
		WantCode(t, err, fault.LOD001)
	}
	var logs strings.Builder
	if err := env.Logs(t.Context(), dir, "trial", "web", false, &logs); err != nil || !strings.Contains(logs.String(), "helper: slow") {
		t.Errorf("logs afterwards: %q, %v", logs.String(), err)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Errorf("second down: %v", err)
	}
}

func (d Driver) substitution(t *testing.T) {
	dir := t.TempDir()
	front := d.service(Healthy)
	front.Env = map[string]string{"BACK": "${service.back.url}/x", "ME": "port ${PORT}", "SECRET": "${env:TOKEN}", "PLAIN": "${OTHER}"}
	front.Run = `FROM_SHELL="${env:TOKEN}" ` + front.Run
	back := d.service(Healthy)
	cfg := d.config(dir, map[string]manifest.Service{"front": front, "back": back})
	cfg.Getenv = func(k string) (string, bool) { return "a b; exit 9 $(exit 8)", k == "TOKEN" }
	e := d.up(t, cfg)
	urls := e.URLs()
	if s := e.Info().Services; len(s) != 2 || s[0].Name != "back" {
		t.Fatalf("order of start: %+v", s)
	}
	want := map[string]string{"BACK": urls["back"] + "/x", "SECRET": "a b; exit 9 $(exit 8)", "FROM_SHELL": "a b; exit 9 $(exit 8)", "PLAIN": "${OTHER}"}
	want["ME"] = "port " + urls["front"][strings.LastIndexByte(urls["front"], ':')+1:]
	for k, v := range want {
		if got := get(t, urls["front"]+"/env/"+k); got != v {
			t.Errorf("%s = %q, want %q", k, got, v)
		}
	}
}

func (d Driver) replicas(t *testing.T) {
	svc := d.service(Healthy)
	svc.Replicas = 3
	e := d.up(t, d.config(t.TempDir(), map[string]manifest.Service{"web": svc}))
	target, err := e.Target("web")
	if err != nil {
		t.Fatal(err)
	}
	addrs := target.Addrs()
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	if addrs = slices.Compact(addrs); len(addrs) != 3 {
		t.Fatalf("addresses %v, want 3 different ones", addrs)
	}
	// A replica that is gone spoils the proof: load would go to two thirds of what was brought up.
	gone := e.Info().Services[1].Resource
	if err := d.Provider.Remove(t.Context(), token(t, e), gone); err != nil {
		t.Fatal(err)
	}
	_, err = e.Target("web")
	WantCode(t, err, fault.LOD001)
}

func (d Driver) notReady(t *testing.T) {
	for _, c := range []struct {
		mode Mode
		code fault.Code
		text string
	}{
		{Crash, fault.ENV003, "the configuration is wrong"},
		{Sick, fault.ENV004, "helper: sick"},
		{Redirect, fault.ENV004, "helper: redirect"},
		{Silent, fault.ENV004, "helper: silent"},
	} {
		t.Run(string(c.mode), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			bad := d.service(c.mode)
			bad.Health.Timeout, bad.DependsOn = 2*time.Second, []string{"first"}
			if c.code == fault.ENV003 {
				bad.Health.Timeout = 20 * time.Second
			}
			_, err := env.Up(t.Context(), d.config(dir, map[string]manifest.Service{"first": d.service(Healthy), "second": bad}))
			f := WantCode(t, err, c.code)
			if !strings.Contains(f.Message, "second") || !strings.Contains(f.Detail, c.text) || strings.ContainsRune(f.Detail, 0x1b) {
				t.Errorf("message %q, detail %q", f.Message, f.Detail)
			}
			WantEmpty(t, dir)
		})
	}
}

func (d Driver) build(t *testing.T) {
	dir := t.TempDir()
	ok := d.service(Healthy)
	ok.Build = "echo built > artefact"
	bad := d.service(Healthy)
	bad.Build, bad.DependsOn = "echo compiling; echo no such symbol >&2; exit 7", []string{"ok"}
	_, err := env.Up(t.Context(), d.config(dir, map[string]manifest.Service{"ok": ok, "bad": bad}))
	f := WantCode(t, err, fault.ENV002)
	if !strings.Contains(f.Detail, "no such symbol") || !strings.Contains(f.Message, "bad") {
		t.Errorf("message %q, detail %q", f.Message, f.Detail)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "artefact")); err != nil || string(b) != "built\n" {
		t.Errorf("the first service's build left %q, %v", b, err)
	}
	WantEmpty(t, dir)
}

func (d Driver) strays(t *testing.T) {
	for _, m := range []Mode{Stray, Stubborn} {
		t.Run(string(m), func(t *testing.T) {
			dir := t.TempDir()
			e := d.up(t, d.config(dir, map[string]manifest.Service{"web": d.service(m)}))
			res := e.Info().Services[0].Resource
			if err := e.Down(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d.Provider.Alive(res) {
				t.Error("the service still runs")
			}
			WantEmpty(t, dir)
		})
	}
}

func (d Driver) impatient(t *testing.T) {
	dir := t.TempDir()
	e := d.up(t, d.config(dir, map[string]manifest.Service{"web": d.service(Stubborn)}))
	res := e.Info().Services[0].Resource
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Down(ctx); err != nil {
		t.Fatal(err)
	}
	if d.Provider.Alive(res) {
		t.Error("the service still runs")
	}
	WantEmpty(t, dir)
}

func (d Driver) oneHolder(t *testing.T) {
	dir := t.TempDir()
	cfg := d.config(dir, map[string]manifest.Service{"web": d.service(Slow)})
	var wg sync.WaitGroup
	envs, errs := make([]*env.Environment, 2), make([]error, 2)
	for i := range envs {
		wg.Go(func() { envs[i], errs[i] = env.Up(t.Context(), cfg) })
	}
	wg.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if won < 0 {
		t.Fatalf("nobody won: %v", errs)
	}
	defer func() {
		if err := envs[won].Down(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	f := WantCode(t, errs[1-won], fault.ENV007)
	if !strings.Contains(f.Message, fmt.Sprint(os.Getpid())) {
		t.Errorf("%q does not name the holder %d", f.Message, os.Getpid())
	}
	WantCode(t, env.Down(t.Context(), dir, "trial", d.Provider), fault.ENV007)
	if _, err := envs[won].Target("web"); err != nil {
		t.Errorf("the winner's environment suffered: %v", err)
	}
}

func (d Driver) kept(t *testing.T) {
	dir := t.TempDir()
	cfg := d.config(dir, map[string]manifest.Service{"web": d.service(Healthy)})
	cfg.Keep = true
	e := d.up(t, cfg)
	url := e.URLs()["web"]
	if err := e.Release(); err != nil {
		t.Fatal(err)
	}
	infos, err := env.List(dir)
	if err != nil || len(infos) != 1 || infos[0].State != env.Kept {
		t.Fatalf("list: %+v, %v", infos, err)
	}
	if gone, err := env.Prune(t.Context(), dir, d.Provider); err != nil || len(gone) != 0 {
		t.Fatalf("prune removed %v, %v", gone, err)
	}
	_, err = env.Up(t.Context(), cfg)
	WantCode(t, err, fault.ENV007)
	if target, ok, err := (env.Ledger{Dir: dir, Provider: d.Provider}).Origin(url); !ok || err != nil || !target.OK() {
		t.Errorf("origin %s: %v, %v", url, ok, err)
	}
	if _, ok, err := (env.Ledger{Dir: dir, Provider: d.Provider}).Origin("http://127.0.0.1:1"); ok || err != nil {
		t.Errorf("a foreign origin is known: %v", err)
	}
	again, err := env.Open(dir, "trial", d.Provider)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Target("web"); err != nil {
		t.Error(err)
	}
	if err := again.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	WantEmpty(t, dir)
	_, err = env.Open(dir, "trial", d.Provider)
	WantCode(t, err, fault.ENV005)
}

func (d Driver) cancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	slow := d.service(Silent)
	slow.DependsOn = []string{"first"}
	cfg := d.config(dir, map[string]manifest.Service{"first": d.service(Healthy), "slow": slow})
	cfg.Out = writer(func(b []byte) {
		if strings.Contains(string(b), "slow/0: starting") {
			cancel()
		}
	})
	_, err := env.Up(ctx, cfg)
	WantCode(t, err, fault.CLI003)
	WantEmpty(t, dir)
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func (d Driver) remove(t *testing.T) {
	dir := t.TempDir()
	e := d.up(t, d.config(dir, map[string]manifest.Service{"a": d.service(Healthy), "b": d.service(Healthy)}))
	s := e.Info().Services
	for range 2 {
		if err := d.Provider.Remove(t.Context(), token(t, e), s[0].Resource); err != nil {
			t.Fatal(err)
		}
	}
	if d.Provider.Alive(s[0].Resource) || !d.Provider.Alive(s[1].Resource) {
		t.Error("remove did not remove exactly its resource")
	}
	// Another start time or another boot is another process, whatever its number.
	for _, change := range []func(*env.Resource){
		func(r *env.Resource) { r.Process.Start++ },
		func(r *env.Resource) { r.Process.Boot = "another" },
	} {
		r := s[1].Resource
		r.ID = "other/0"
		change(&r)
		if err := d.Provider.Remove(t.Context(), "", r); err != nil {
			t.Fatal(err)
		}
	}
	if !d.Provider.Alive(s[1].Resource) {
		t.Error("a process was ended although it was not the one of the ledger")
	}
}

func (d Driver) paths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my läden 店 [1] $HOME 'q'")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := d.config(dir, map[string]manifest.Service{"the shop é": d.service(Healthy)})
	cfg.Name = "Überfahrt 店 $(x) 'y'"
	e := d.up(t, cfg)
	if _, err := e.Target("the shop é"); err != nil {
		t.Error(err)
	}
	var logs strings.Builder
	if err := env.Logs(t.Context(), dir, cfg.Name, "the shop é", false, &logs); err != nil || !strings.Contains(logs.String(), "helper: healthy") {
		t.Errorf("logs: %q, %v", logs.String(), err)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	WantEmpty(t, dir)
}

// token reads the environment's token from its ledger file.
func token(t *testing.T, e *env.Environment) string {
	t.Helper()
	log := e.Info().Services[0].Log
	b, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(log)), "env.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), `"token": "`)
	if !ok || len(rest) < 64 {
		t.Fatalf("no token in %s", b)
	}
	return rest[:64]
}
