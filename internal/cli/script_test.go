package cli

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary stand in for seatrial, so that the scripts drive the real program,
// and builds the example once.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"seatrial": func() {
			os.Exit(Main(Process{Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Exit: os.Exit}))
		},
	})
}

// hearHangups lets the programs that a script starts be hung up although this test itself runs under
// nohup: what is ignored is inherited, and what is caught is not.
func hearHangups(t *testing.T) {
	if !signal.Ignored(syscall.SIGHUP) {
		return
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
}

// TestScripts runs testdata/script/*.txtar over the real binary, one script for each block and each
// error of the manifest's page and for each command.
func TestScripts(t *testing.T) {
	shop := chandlery(t)
	hearHangups(t)
	testscript.RunT(serial{t}, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CHANDLERY", shop)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GITHUB_STEP_SUMMARY", "")
			for _, keep := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY", "GOROOT"} {
				if v := goEnv(t, keep); v != "" {
					e.Setenv(keep, v)
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    cmdExits,
			"measures": cmdMeasures,
			"silent":   cmdSilent,
			"serve":    cmdServe,
			"popular":  cmdPopular,
			"secure":   cmdSecure,
		},
	})
}

// serial runs one script after the other: two loads at once on a small machine would measure each
// other, and the generator would rightly call itself saturated.
type serial struct{ *testing.T }

// Parallel does nothing.
func (serial) Parallel() {}

// Run implements testscript.T.
func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

// Verbose implements testscript.T.
func (serial) Verbose() bool { return testing.Verbose() }

// chandlery builds the example application.
func chandlery(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "chandlery")
	cmd := exec.Command("go", "build", "-o", out, "seatrial/examples/chandlery")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, b)
	}
	return out
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	b, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// cmdExits runs a command and asserts its exit number: exits N COMMAND ARGS...
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = exitNumber(err)
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

// cmdMeasures runs a load that must pass, or prove nothing for the one reason that a busy machine gives
// by itself: the generator could not keep to its schedule. measures COMMAND ARGS...
func cmdMeasures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: measures COMMAND ARGS...")
	}
	err := ts.Exec(args[0], args[1:]...)
	if err == nil {
		return
	}
	if out := ts.ReadFile("stdout"); exitNumber(err) != exitUnproved || !strings.Contains(out, "generator saturated") {
		ts.Fatalf("exit %d for another reason than a busy machine", exitNumber(err))
	}
}

func exitNumber(err error) int {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // testscript gives it as it is
		return e.ExitCode()
	}
	return -1
}

// connections counts what reached the sockets of cmdSilent, by script.
type connections struct{ n atomic.Int64 }

// cmdSilent listens on a port that must see no connection until the script ends; the address goes
// into the variable that is named.
func cmdSilent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: silent VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	seen := &connections{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			seen.n.Add(1)
			_ = c.Close()
		}
	}()
	ts.Setenv(args[0], l.Addr().String())
	ts.Defer(func() {
		_ = l.Close()
		if n := seen.n.Load(); n != 0 {
			ts.Fatalf("%d connections reached a target that must see none", n)
		}
	})
}

// cmdServe serves 200 to everything on a loopback port: serve VARIABLE.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve VARIABLE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })}
	go func() { _ = srv.Serve(l) }()
	ts.Setenv(args[0], l.Addr().String())
	ts.Defer(func() { _ = srv.Close() })
}

// cmdPopular writes an access log in which the r-th most popular of n items was asked for 400/r times:
// popular FILE N [FIRST]. The first item has the number FIRST (1000).
func cmdPopular(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: popular FILE N [FIRST]")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	first := 1000
	if len(args) > 2 {
		first, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	var b strings.Builder
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for round := range 400 {
		for rank := 1; rank <= n && round < 400/rank; rank++ {
			fmt.Fprintf(&b, "192.0.2.1 - - [%s] \"GET /items/%d HTTP/1.1\" 200 5\n", at.Format("02/Jan/2006:15:04:05 -0700"), first+rank)
			at = at.Add(10 * time.Millisecond)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// cmdSecure serves the same handler over TLS with HTTP/2 and over QUIC with HTTP/3, with its certificate in ca.pem, and on the Unix
// socket app.sock: secure VARIABLE. It answers what it was asked and echoes bodies.
func cmdSecure(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: secure VARIABLE")
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Proto", r.Proto)
		w.Header().Set("X-Type", r.Header.Get("Content-Type"))
		if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/status/")); err == nil {
			w.WriteHeader(status)
		}
		_, _ = io.Copy(w, r.Body)
	})
	srv := httptest.NewUnstartedServer(echo)
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail are what some scripts are about
	srv.StartTLS()
	socket, err := net.ListenPacket("udp", srv.Listener.Addr().String())
	ts.Check(err)
	three := &http3.Server{Handler: echo, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: srv.TLS.Certificates})}
	go func() { _ = three.Serve(socket) }()
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), cert, 0o600))
	l, err := net.Listen("unix", ts.MkAbs("app.sock"))
	ts.Check(err)
	local := &http.Server{Handler: echo}
	go func() { _ = local.Serve(l) }()
	ts.Setenv(args[0], srv.Listener.Addr().String())
	ts.Defer(func() { srv.Close(); _ = local.Close(); _ = three.Close(); _ = socket.Close() })
}
