package env

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"seatrial/fault"
	"seatrial/manifest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inside is a Provider whose services are servers of this test: it fails where a test asks it to.
type inside struct {
	mu       sync.Mutex
	servers  map[string]*http.Server
	removed  []string
	stuck    map[string]bool // IDs that cannot be removed
	sweepErr error
	unproved error
}

func (p *inside) Name() string                              { return "inside" }
func (p *inside) Build(context.Context, Unit) error         { return nil }
func (p *inside) Alive(Resource) bool                       { return true }
func (p *inside) Sweep(context.Context, string) error       { return p.sweepErr }
func (p *inside) Notes(string, manifest.Resources) []string { return nil }

func (p *inside) Prove(string, Resource, netip.AddrPort) error { return p.unproved }

func (p *inside) Start(_ context.Context, u Unit) (Instance, error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", u.Port))
	if err != nil {
		return Instance{}, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Second}
	go func() { _ = srv.Serve(l) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.servers == nil {
		p.servers = map[string]*http.Server{}
	}
	p.servers[u.ID] = srv
	return Instance{Resource: Resource{Kind: "inside", ID: u.ID, Service: u.Service, Port: u.Port},
		Exited: make(chan struct{}), Status: func() string { return "" }}, os.WriteFile(u.Log, []byte(u.ID+" started\n"), 0o600)
}

func (p *inside) Remove(_ context.Context, _ string, r Resource) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = append(p.removed, r.ID)
	if p.stuck[r.ID] {
		return errors.New("it will not go")
	}
	if s := p.servers[r.ID]; s != nil {
		delete(p.servers, r.ID)
		return s.Close()
	}
	return nil
}

func chain() map[string]manifest.Service {
	return map[string]manifest.Service{
		"a": {Run: "x"},
		"b": {Run: "x --to ${service.a.url}"},
		"c": {Run: "x", DependsOn: []string{"b"}},
	}
}

func wantCode(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return f
}

func TestTearDownInReverseAndPastFailures(t *testing.T) {
	dir := t.TempDir()
	p := &inside{stuck: map[string]bool{"b/0": true}}
	e, err := Up(t.Context(), Config{Dir: dir, Name: "n", Services: chain(), Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	f := wantCode(t, e.Down(t.Context()), fault.ENV006)
	if !strings.Contains(f.Detail, "b/0") || strings.Contains(f.Detail, "a/0") {
		t.Errorf("detail %q", f.Detail)
	}
	if want := []string{"c/0", "b/0", "a/0"}; !slices.Equal(p.removed, want) {
		t.Errorf("removed %v, want %v", p.removed, want)
	}
	// Only what is left is tried again.
	p.removed = nil
	wantCode(t, Down(t.Context(), dir, "n", p), fault.ENV006)
	if infos, err := List(dir); err != nil || len(infos) != 1 || infos[0].State != Leftover {
		t.Errorf("list %+v, %v", infos, err)
	}
	p.stuck = nil
	if gone, err := Prune(t.Context(), dir, p); err != nil || !slices.Equal(gone, []string{"n"}) {
		t.Errorf("prune %v, %v", gone, err)
	}
	if want := []string{"b/0", "b/0"}; !slices.Equal(p.removed, want) {
		t.Errorf("then removed %v, want %v", p.removed, want)
	}
	wantCode(t, Down(t.Context(), dir, "n", p), fault.ENV005)
}

func TestFailedUpReportsBothFailures(t *testing.T) {
	dir := t.TempDir()
	p := &inside{unproved: errors.New("someone else listens"), sweepErr: errors.New("a stray stays")}
	svc := manifest.Service{Run: "x", Health: manifest.Health{Timeout: time.Second}}
	_, err := Up(t.Context(), Config{Dir: dir, Name: "n", Services: map[string]manifest.Service{"a": svc}, Provider: p})
	wantCode(t, err, fault.ENV004)
	if s := err.Error(); !strings.Contains(s, "someone else listens") || !strings.Contains(s, "ENV-006") || !strings.Contains(s, "a stray stays") {
		t.Errorf("error %q", s)
	}
}

func TestLedgerFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	p := &inside{}
	e, err := Up(t.Context(), Config{Dir: dir, Name: "n", Services: chain(), Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(ledgerDir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && path != ledgerDir(dir) {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	b, err := json.Marshal(e.Info())
	if err != nil || strings.Contains(string(b), e.state.Token) || len(e.state.Token) != 64 {
		t.Errorf("the token leaves the package: %s, %v", b, err)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLedgerThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".seatrial"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &inside{}
	_, err := Up(t.Context(), Config{Dir: dir, Name: "n", Services: chain(), Provider: p})
	if f := wantCode(t, err, fault.ENV010); !strings.Contains(f.Message, "not a directory") || strings.Contains(f.Message, dir) {
		t.Errorf("message %q", f.Message)
	}
	if len(p.servers) != 0 {
		t.Error("something was started without a ledger")
	}
}

func TestConfigRefusals(t *testing.T) {
	p := &inside{}
	services := func(s manifest.Service) map[string]manifest.Service { return map[string]manifest.Service{"a": s} }
	for name, c := range map[string]struct {
		cfg  Config
		code fault.Code
	}{
		"no driver":     {Config{Name: "n", Services: chain()}, fault.CLI002},
		"no name":       {Config{Services: chain(), Provider: p}, fault.CLI001},
		"path as name":  {Config{Name: "../n", Services: chain(), Provider: p}, fault.CLI001},
		"hidden name":   {Config{Name: ".locks", Services: chain(), Provider: p}, fault.CLI001},
		"newline":       {Config{Name: "a\nb", Services: chain(), Provider: p}, fault.CLI001},
		"no service":    {Config{Name: "n", Provider: p}, fault.ENV001},
		"no run":        {Config{Name: "n", Services: services(manifest.Service{}), Provider: p}, fault.MAN004},
		"bad port":      {Config{Name: "n", Services: services(manifest.Service{Run: "x", Port: 65536}), Provider: p}, fault.MAN004},
		"bad replicas":  {Config{Name: "n", Services: services(manifest.Service{Run: "x", Replicas: 1 << 20}), Provider: p}, fault.MAN004},
		"unknown need":  {Config{Name: "n", Services: services(manifest.Service{Run: "x", DependsOn: []string{"z"}}), Provider: p}, fault.MAN004},
		"unknown url":   {Config{Name: "n", Services: services(manifest.Service{Run: "x ${service.z.url}"}), Provider: p}, fault.MAN004},
		"itself":        {Config{Name: "n", Services: services(manifest.Service{Run: "x ${service.a.url}"}), Provider: p}, fault.MAN004},
		"database":      {Config{Name: "n", Services: services(manifest.Service{Run: "x ${database.url}"}), Provider: p}, fault.MAN004},
		"unset env":     {Config{Name: "n", Services: services(manifest.Service{Run: "x ${env:NO_SUCH_VARIABLE_HERE}"}), Provider: p}, fault.MAN004},
		"bad env":       {Config{Name: "n", Services: services(manifest.Service{Run: "x ${env:a b}"}), Provider: p}, fault.MAN004},
		"port in build": {Config{Name: "n", Services: services(manifest.Service{Run: "x", Build: "y ${PORT}"}), Provider: p}, fault.MAN004},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Dir = t.TempDir()
			_, err := Up(t.Context(), c.cfg)
			wantCode(t, err, c.code)
			if infos, err := List(c.cfg.Dir); err != nil || len(infos) != 0 {
				t.Errorf("the ledger holds %v, %v", infos, err)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	got, err := order(chain())
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("order %v, %v", got, err)
	}
	circle := map[string]manifest.Service{"a": {DependsOn: []string{"b"}}, "b": {Env: map[string]string{"U": "${service.c.url}"}}, "c": {DependsOn: []string{"a"}}}
	_, err = order(circle)
	if f := wantCode(t, err, fault.MAN004); !strings.Contains(f.Message, "a -> b -> c -> a") {
		t.Errorf("message %q", f.Message)
	}
}

func TestOrderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "services")
		services := map[string]manifest.Service{}
		for i := range n {
			var s manifest.Service
			for k := range i { // only to smaller numbers: never a circle
				if rapid.Bool().Draw(t, "edge") {
					s.DependsOn = append(s.DependsOn, fmt.Sprint("s", (k*7+3)%n, "-", k))
				}
			}
			services[fmt.Sprint("s", (i*7+3)%n, "-", i)] = s
		}
		got, err := order(services)
		if err != nil || len(got) != n {
			t.Fatalf("order %v, %v", got, err)
		}
		at := map[string]int{}
		for i, name := range got {
			at[name] = i
		}
		for name, s := range services {
			for _, need := range s.DependsOn {
				if at[need] >= at[name] {
					t.Fatalf("%s comes before %s, which it needs: %v", name, need, got)
				}
			}
		}
	})
}

// A journal that is cut at any byte must name at least every resource whose intent was complete and
// that was not removed before the cut.
func TestJournalCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		_ = enc.Encode(entry{Op: opOpen, Token: "t"})
		live := map[string]bool{}
		var ends []int
		var want []map[string]bool
		mark := func() {
			ends = append(ends, b.Len())
			m := map[string]bool{}
			for k := range live {
				m[k] = true
			}
			want = append(want, m)
		}
		mark()
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			id := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "id"))
			op := rapid.SampledFrom([]string{opIntent, opDone, opRemoved}).Draw(t, "op")
			_ = enc.Encode(entry{Op: op, Resource: &Resource{Kind: "k", ID: id}})
			if op == opRemoved {
				delete(live, id)
			} else {
				live[id] = true
			}
			mark()
		}
		cut := rapid.IntRange(0, b.Len()).Draw(t, "cut")
		h, err := parseHistory(bytes.NewReader(b.Bytes()[:cut]))
		if err != nil {
			t.Fatal(err)
		}
		if h.unreadable > 1 {
			t.Fatalf("%d unreadable lines after one cut", h.unreadable)
		}
		got := map[string]bool{}
		for _, r := range h.outstanding {
			got[r.ID] = true
		}
		k, _ := slices.BinarySearch(ends, cut+1)
		if k > 0 && !equalSets(got, want[k-1]) && !(k < len(ends) && cut == ends[k]-1 && equalSets(got, want[k])) {
			t.Fatalf("cut at %d: got %v, want %v", cut, got, want[k-1])
		}
	})
}

func equalSets(a, b map[string]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return true
}

func TestJournalAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(path, []byte(`{"op":"open","token":"t"}`+"\n"+`{"op":"int`), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.append(entry{Op: opIntent, Resource: &Resource{Kind: "k", ID: "x"}}); err != nil {
		t.Fatal(err)
	}
	j.close()
	h, err := readHistory(path)
	if err != nil || h.token != "t" || h.unreadable != 1 || len(h.outstanding) != 1 || h.outstanding[0].ID != "x" {
		t.Errorf("history %+v, %v", h, err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"op":"open","token":"t"}` + "\n" + `{"op":"intent","resource":{"kind":"process","id":"a/0"}}` + "\n{\n\n"))
	f.Add([]byte(`{"op":"removed","resource":{"id":""}}` + "\n" + `{"op":"done"}`))
	f.Add(bytes.Repeat([]byte("x"), maxEntry+10))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHistory(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(b, []byte{'\n'}) + 1; len(h.outstanding)+h.unreadable > lines {
			t.Errorf("%d resources and %d unreadable lines from %d lines", len(h.outstanding), h.unreadable, lines)
		}
	})
}

func FuzzLedgerFile(f *testing.F) {
	f.Add([]byte(`{"schema":1,"name":"n","token":"` + strings.Repeat("a", 64) + `","services":[{"name":"a","url":"http://127.0.0.1:80"}]}`))
	f.Add([]byte(`{"schema":1,"name":"n","services":[{"url":"http://192.0.2.1:80"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseFile(b, "n")
		if err != nil {
			return
		}
		target, err := admit(&s.Info, s.Token, "", &inside{}) // a driver that believes everything
		if err != nil {
			wantCode(t, err, fault.LOD001)
			return
		}
		for _, a := range target.Addrs() {
			if !a.Addr().IsLoopback() {
				t.Errorf("the ledger %q made %s a target", b, a)
			}
		}
	})
}

func TestStates(t *testing.T) {
	now := time.Now()
	me, ok := Identify(os.Getpid())
	if !ok || !me.Running() {
		t.Fatal("this process cannot be identified")
	}
	other := me
	other.Start++
	svc := func(id Identity) []Service { return []Service{{Resource: Resource{Kind: "process", Process: id}}} }
	for want, i := range map[State]Info{
		Leftover: {Keep: false, Services: svc(me)},
		Kept:     {Keep: true, Services: svc(me), Created: now},
		Expired:  {Keep: true, Services: svc(me), Created: now.Add(-time.Hour), TTL: time.Minute},
		Dead:     {Keep: true, Services: svc(other), Created: now},
	} {
		if got := i.state(now); got != want {
			t.Errorf("state %s, want %s", got, want)
		}
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d \x1b[31mred\x07\xff\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(tail(path), "\n")
	if len(got) != tailLines || got[0] != "line 4980 [31mred" || got[19] != "line 4999 [31mred" {
		t.Errorf("tail %q", got)
	}
	if tail(filepath.Join(t.TempDir(), "none")) != "" {
		t.Error("a missing log has a tail")
	}
}

func TestLogsAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b] *")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "web.0.log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for i := range 1000 {
		if _, err := fmt.Fprintf(f, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	trimLogs(dir, 4000)
	if _, err := fmt.Fprintln(f, "after"); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil || string(now) != "after\n" {
		t.Errorf("log holds %q, %v", now, err)
	}
	old, err := os.ReadFile(path + ".1")
	if err != nil || len(old) > 1000 || !strings.HasPrefix(string(old), "line ") || !strings.HasSuffix(string(old), "line 999\n") {
		t.Errorf("the cut part holds %q, %v", old, err)
	}
}

func TestLogs(t *testing.T) {
	dir := t.TempDir()
	p := &inside{}
	e, err := Up(t.Context(), Config{Dir: dir, Name: "n", Services: chain(), Provider: p})
	if err != nil {
		t.Fatal(err)
	}
	var one, all strings.Builder
	if err := Logs(t.Context(), dir, "n", "a", false, &one); err != nil || one.String() != "a/0 started\n" {
		t.Errorf("one: %q, %v", one.String(), err)
	}
	if err := Logs(t.Context(), dir, "n", "", false, &all); err != nil || all.String() != "a.0 | a/0 started\nb.0 | b/0 started\nc.0 | c/0 started\n" {
		t.Errorf("all: %q, %v", all.String(), err)
	}
	f := wantCode(t, Logs(t.Context(), dir, "n", "zz", false, &one), fault.ENV005)
	if f.Next != "It has: a, b, c." {
		t.Errorf("next %q", f.Next)
	}
	wantCode(t, Logs(t.Context(), dir, "other", "", false, &one), fault.ENV005)

	// Following ends by itself when the environment goes.
	follow := &lines{got: make(chan string, 10)}
	done := make(chan error, 1)
	go func() { done <- Logs(context.Background(), dir, "n", "a", true, follow) }()
	if l := <-follow.got; l != "a/0 started\n" {
		t.Errorf("first %q", l)
	}
	log, err := os.OpenFile(e.Info().Services[0].Log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(log, "more"); err != nil {
		t.Fatal(err)
	}
	_ = log.Close()
	if l := <-follow.got; l != "more\n" {
		t.Errorf("then %q", l)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("following ended with %v", err)
	}
}

type lines struct{ got chan string }

func (l *lines) Write(b []byte) (int, error) { l.got <- string(b); return len(b), nil }
