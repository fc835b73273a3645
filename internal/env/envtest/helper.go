package envtest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// modeVariable makes a test binary behave as a service instead of running its tests.
const modeVariable = "ENVTEST_MODE"

// Mode is how a helper service behaves.
type Mode string

// The modes of the helper service. All but Crash and Silent listen on $PORT.
const (
	Healthy  Mode = "healthy"  // answers 200 on /healthz and its environment on /env/NAME
	Slow     Mode = "slow"     // listens only after 300 ms
	Sick     Mode = "sick"     // answers 503 on /healthz
	Redirect Mode = "redirect" // answers 302 to a path that answers 200
	Crash    Mode = "crash"    // prints a line and exits with status 3
	Silent   Mode = "silent"   // never listens
	Stubborn Mode = "stubborn" // ignores SIGTERM
	Stray    Mode = "stray"    // has a child that left its session and ignores SIGTERM
	Six      Mode = "six"      // listens on the IPv6 loopback address only
	Squatted Mode = "squatted" // the first start loses its port to a foreign process, whose PID it writes to ./squatter
	squat    Mode = "squat"    // that foreign process
	noise    Mode = "noise"    // that child
)

// Helper runs the helper service and does not return, if this process was started as one. Call it
// first in TestMain of a package that runs the conformance suite.
func Helper() {
	mode := Mode(os.Getenv(modeVariable))
	if mode == "" {
		return
	}
	fmt.Printf("helper: %s on %s\n", mode, os.Getenv("PORT"))
	code := mode.serve()
	os.Exit(code) // a helper process, not the test
}

// Command gives the shell line that starts the running test binary as a helper service.
func Command(mode Mode) string {
	exe, err := os.Executable()
	if err != nil {
		panic("envtest: the test binary has no path: " + err.Error())
	}
	return fmt.Sprintf("%s=%s exec '%s'", modeVariable, mode, strings.ReplaceAll(exe, "'", `'\''`))
}

func (m Mode) serve() int {
	switch m {
	case Crash:
		fmt.Println("helper: \x1b[31mthe configuration is wrong\x1b[0m")
		return 3
	case Silent:
		select {}
	case Slow:
		time.Sleep(300 * time.Millisecond)
	case Stubborn:
		signal.Ignore(syscall.SIGTERM)
	case noise:
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute) // it ends by itself, should a test fail to end it
		return 0
	case Stray:
		m.spawn(noise, os.Environ())
	case Squatted:
		if done, code := m.squatted(); done {
			return code
		}
	}
	return m.listen()
}

// squatted starts a foreign process on the port, once.
func (m Mode) squatted() (bool, int) {
	if _, err := os.Stat("squatter"); err == nil {
		return false, 0
	}
	cmd := m.spawn(squat, []string{"PORT=" + os.Getenv("PORT")})
	if cmd == nil {
		return true, 4
	}
	for range 200 {
		c, err := net.Dial("tcp", "127.0.0.1:"+os.Getenv("PORT"))
		if err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if os.WriteFile("squatter", []byte(fmt.Sprint(cmd.Process.Pid)), 0o600) != nil {
		return true, 5
	}
	return true, 1
}

func (Mode) spawn(mode Mode, environ []string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	cmd := exec.Command(exe)
	cmd.Env = append(environ, modeVariable+"="+string(mode))
	leaveSession(cmd)
	if cmd.Start() != nil {
		return nil
	}
	return cmd
}

func (m Mode) listen() int {
	host := "127.0.0.1"
	if m == Six {
		host = "::1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, os.Getenv("PORT")))
	if err != nil {
		fmt.Println("helper:", err)
		return 2
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		switch m {
		case Sick:
			w.WriteHeader(http.StatusServiceUnavailable)
		case Redirect:
			http.Redirect(w, r, "/fine", http.StatusFound)
		}
	})
	mux.HandleFunc("/fine", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/env/{name}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, os.Getenv(r.PathValue("name")))
	})
	if m == squat {
		time.AfterFunc(time.Minute, func() { os.Exit(0) })
		// As long as the process that spawned it lives, it is the environment's own child; nothing is
		// answered until it is foreign. Whoever connects waits.
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(time.Millisecond)
		}
	}
	_ = (&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}).Serve(l)
	return 1
}
