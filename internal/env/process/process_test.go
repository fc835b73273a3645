package process_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatrial/fault"
	"seatrial/internal/env"
	"seatrial/internal/env/envtest"
	"seatrial/internal/env/process"
	"seatrial/manifest"
)

// quick does not wait 5 s for processes that ignore SIGTERM on purpose.
var quick = process.Provider{Grace: 200 * time.Millisecond}

func TestMain(m *testing.M) {
	envtest.Helper()
	if dir := os.Getenv("OWNER_DIR"); dir != "" {
		os.Exit(owner(dir))
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	envtest.Run(t, envtest.Driver{Provider: quick, Command: envtest.Command})
}

func service(m envtest.Mode) manifest.Service {
	return manifest.Service{Run: envtest.Command(m), Health: manifest.Health{Path: "/healthz", Timeout: 20 * time.Second}}
}

// owner is a Seatrial that brings an environment up and waits to be killed, or reports how it failed.
func owner(dir string) int {
	if limit, err := strconv.ParseUint(os.Getenv("OWNER_FSIZE"), 10, 64); err == nil {
		// No file may grow beyond the limit: to the ledger the same as a full disk.
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	e, err := env.Up(context.Background(), env.Config{Dir: dir, Name: "trial", Provider: quick,
		Services: map[string]manifest.Service{"a": service(envtest.Stray), "b": service(envtest.Healthy)}})
	if err != nil {
		fmt.Println("failed", err)
		return 0
	}
	fmt.Println("up", e.URLs()["a"])
	if os.Getenv("OWNER_FSIZE") != "" {
		fmt.Println("down", e.Down(context.Background()))
		return 0
	}
	select {}
}

func startOwner(t *testing.T, dir string, extra ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(extra, "OWNER_DIR="+dir)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// carriers counts the processes below dir's environment by the log that they have open.
func running(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/1")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, dir) {
			out = append(out, l+" "+to)
		}
	}
	return out
}

func TestKilledOwner(t *testing.T) {
	dir := t.TempDir()
	cmd, out := startOwner(t, dir)
	if !out.Scan() || !strings.HasPrefix(out.Text(), "up ") {
		t.Fatalf("owner: %q", out.Text())
	}
	envtest.WantCode(t, env.Down(t.Context(), dir, "trial", quick), fault.ENV007)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed: an error, on purpose

	infos, err := env.List(dir)
	if err != nil || len(infos) != 1 || infos[0].State != env.Leftover || infos[0].Owner.PID != cmd.Process.Pid {
		t.Fatalf("list: %+v, %v", infos, err)
	}
	for _, s := range infos[0].Services {
		if !(process.Provider{}).Alive(s.Resource) {
			t.Errorf("%s vanished with its owner", s.Resource.ID)
		}
	}
	if n := len(running(t, dir)); n < 2 {
		t.Fatalf("%d processes run, want the services", n)
	}
	if err := env.Down(t.Context(), dir, "trial", quick); err != nil {
		t.Fatal(err)
	}
	if left := running(t, dir); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
	envtest.WantEmpty(t, dir)
}

func TestLeftoverIsTakenDownByTheNextUp(t *testing.T) {
	dir := t.TempDir()
	cmd, out := startOwner(t, dir)
	if !out.Scan() {
		t.Fatal("the owner said nothing")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	var said strings.Builder
	e, err := env.Up(t.Context(), env.Config{Dir: dir, Name: "trial", Provider: quick, Out: &said,
		Services: map[string]manifest.Service{"c": service(envtest.Healthy)}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(running(t, dir)); n != 1 || !strings.Contains(said.String(), "left behind") {
		t.Errorf("%d processes run, want the new one only; said %q", n, said.String())
	}
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A crash between the intent and the done line leaves a process that the journal cannot name.
func TestIntentWithoutDone(t *testing.T) {
	dir := t.TempDir()
	cmd, out := startOwner(t, dir)
	if !out.Scan() {
		t.Fatal("the owner said nothing")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	journal := filepath.Join(dir, ".seatrial", "environments", "trial", "journal.jsonl")
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	var cut []string
	for _, l := range lines {
		if !strings.Contains(l, `"op":"done"`) {
			cut = append(cut, l)
		}
	}
	cut = append(cut, `{"at":"2026-01-01T00:00:00Z","op":"do`) // torn by the crash
	if err := os.WriteFile(journal, []byte(strings.Join(cut, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(journal), "env.json")); err != nil {
		t.Fatal(err)
	}
	infos, err := env.List(dir)
	if err != nil || len(infos) != 1 || infos[0].State != env.Broken {
		t.Fatalf("list: %+v, %v", infos, err)
	}
	gone, err := env.Prune(t.Context(), dir, quick)
	if err != nil || len(gone) != 1 {
		t.Fatalf("prune: %v, %v", gone, err)
	}
	if left := running(t, dir); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
	envtest.WantEmpty(t, dir)
}

func TestFullDisk(t *testing.T) {
	for _, limit := range []int{0, 60, 300, 600, 1200, 1 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			dir := t.TempDir()
			cmd, out := startOwner(t, dir, fmt.Sprintf("OWNER_FSIZE=%d", limit))
			var said []string
			for out.Scan() {
				said = append(said, out.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(said, "\n")
			if full := limit < 1<<20; full && !strings.Contains(text, "failed ENV-010") || !full && !strings.Contains(text, "down <nil>") {
				t.Errorf("said %q", text)
			}
			if left := running(t, dir); len(left) != 0 {
				t.Errorf("still running: %v", left)
			}
			envtest.WantEmpty(t, dir)
		})
	}
}

func TestPortRace(t *testing.T) {
	dir := t.TempDir()
	var said strings.Builder
	e, err := env.Up(t.Context(), env.Config{Dir: dir, Name: "trial", Provider: quick, Out: &said,
		Services: map[string]manifest.Service{"web": service(envtest.Squatted)}})
	b, rerr := os.ReadFile(filepath.Join(dir, "squatter"))
	if rerr != nil {
		t.Fatal(rerr)
	}
	pid, perr := strconv.Atoi(string(b))
	if perr != nil {
		t.Fatal(perr)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "trying another") {
		t.Errorf("said %q", said.String())
	}
	if _, err := e.Target("web"); err != nil {
		t.Error(err)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := env.Identify(pid); !ok {
		t.Error("a process that is not of the environment was ended")
	}
}

func TestFixedPortTaken(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	svc := service(envtest.Healthy)
	svc.Port = l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	_, err = env.Up(t.Context(), env.Config{Dir: dir, Name: "trial", Provider: quick, Services: map[string]manifest.Service{"web": svc}})
	f := envtest.WantCode(t, err, fault.ENV009)
	if !strings.Contains(f.Message, strconv.Itoa(svc.Port)) {
		t.Errorf("%q does not name the port", f.Message)
	}
	envtest.WantEmpty(t, dir)
}

// unit starts a helper straight through the driver.
func unit(t *testing.T, m envtest.Mode, port int) (string, env.Instance) {
	t.Helper()
	dir := t.TempDir()
	tok := strings.Repeat("ab", 32)
	u := env.Unit{ID: "x/0", Service: "x", Token: tok, Dir: dir, Command: envtest.Command(m), Port: port, Log: filepath.Join(dir, "log"),
		Env: []string{"PORT=" + strconv.Itoa(port), env.MarkerEnv + "=" + tok, env.MarkerUnit + "=x/0"}}
	inst, err := quick.Start(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := quick.Remove(context.Background(), tok, inst.Resource); err != nil {
			t.Error(err)
		}
		<-inst.Exited
	})
	return tok, inst
}

func TestProveRefusesForeignListener(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	addr := netip.MustParseAddrPort(l.Addr().String())
	tok, inst := unit(t, envtest.Silent, int(addr.Port()))
	if err := quick.Prove(tok, inst.Resource, addr); err == nil || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("got %v, want a refusal that names this test's process", err)
	}
	if err := quick.Prove(tok, inst.Resource, netip.MustParseAddrPort("192.0.2.1:80")); err == nil {
		t.Error("an address beyond loopback was proved")
	}
	if err := quick.Prove(tok, inst.Resource, netip.MustParseAddrPort("127.0.0.1:1")); err == nil {
		t.Error("a port where nothing listens was proved")
	}
	// A ledger that names a process of someone else proves nothing, even if that process listens.
	me, _ := env.Identify(os.Getpid())
	if err := quick.Prove(tok, env.Resource{Kind: "process", ID: "y/0", Process: me}, addr); err == nil {
		t.Error("a forged ledger was believed")
	}
}

func TestProveIPv6(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Logf("no IPv6 loopback here: %v", err)
		return
	}
	_ = l.Close()
	e, err := env.Up(t.Context(), env.Config{Dir: t.TempDir(), Name: "trial", Provider: quick,
		Services: map[string]manifest.Service{"web": service(envtest.Six)}})
	if err != nil {
		t.Fatal(err)
	}
	if u := e.URLs()["web"]; !strings.HasPrefix(u, "http://[::1]:") {
		t.Errorf("URL %q", u)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestMemoryLimit(t *testing.T) {
	dir := t.TempDir()
	svc := service(envtest.Healthy)
	svc.Run = "ulimit -d; " + svc.Run
	svc.Resources = manifest.Resources{CPU: 1.5, Memory: "768MiB"}
	e, err := env.Up(t.Context(), env.Config{Dir: dir, Name: "trial", Provider: quick, Services: map[string]manifest.Service{"web": svc}})
	if err != nil {
		t.Fatal(err)
	}
	if n := e.Info().Notes; len(n) != 2 || !strings.Contains(n[0], "resources.cpu") {
		t.Errorf("notes %q", n)
	}
	var logs strings.Builder
	if err := env.Logs(t.Context(), dir, "trial", "web", false, &logs); err != nil || !strings.HasPrefix(logs.String(), "786432\n") {
		t.Errorf("the limit in KiB was %q, %v", logs.String(), err)
	}
	if err := e.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	svc.Resources.Memory = "much"
	_, err = env.Up(t.Context(), env.Config{Dir: dir, Name: "trial", Provider: quick, Services: map[string]manifest.Service{"web": svc}})
	envtest.WantCode(t, err, fault.ENV003)
}
