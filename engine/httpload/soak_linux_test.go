//go:build !race

// The race detector multiplies the memory that is measured here.

package httpload

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// soakLength is an hour, or what the environment says, in a long run, and a few seconds in any other.
func soakLength(t *testing.T) time.Duration {
	if os.Getenv("SEATRIAL_LONG") == "" {
		return 4 * time.Second
	}
	s := os.Getenv("SEATRIAL_SOAK")
	if s == "" {
		return time.Hour
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSoak: at 2,000 requests a second over 100 routes and 1,000 connections, memory and descriptors
// stay where they are however long it takes, and memory stays under 40 MB (SA-20). An hour with
// SEATRIAL_LONG; SEATRIAL_SOAK sets another length.
func TestSoak(t *testing.T) {
	length := soakLength(t)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(own)
	server.Env = append(os.Environ(), roleVariable+"=soak-server")
	in, _ := server.StdinPipe()
	out, _ := server.StdoutPipe()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = server.Wait() }()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	load := exec.Command(own)
	load.Env = append(os.Environ(), fmt.Sprintf("%s=soak-load %s %d", roleVariable, strings.TrimSpace(addr), length))
	var said strings.Builder
	load.Stdout, load.Stderr = &said, &said
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- load.Wait() }()
	rss, fds := sampleProcess(load.Process.Pid, ended, &err)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var answered, errs, goroutines int
	if _, err := fmt.Sscan(said.String(), &answered, &errs, &goroutines); err != nil {
		t.Fatalf("%q: %v", said.String(), err)
	}
	want := soakRate * length.Seconds()
	if float64(answered) < 0.98*want || float64(answered) > 1.02*want || errs > 0 || goroutines > 5 {
		t.Errorf("%d answered of about %.0f, %d errors, %d goroutines left", answered, want, errs, goroutines)
	}
	if len(rss) < int(length.Seconds())*9/10 {
		t.Fatalf("only %d samples of memory", len(rss))
	}
	first, last := highest(rss[len(rss)/4:len(rss)/2]), highest(rss[len(rss)/2:])
	early, late := highest(fds[len(fds)/4:len(fds)/2]), highest(fds[len(fds)/2:])
	t.Logf("%s, %d answered; memory at most %.1f MB in the second quarter, %.1f MB after; %d descriptors, then %d", length, answered, float64(first)/1e6, float64(last)/1e6, early, late)
	if last > first+2e6 || last > 40e6 {
		t.Errorf("memory grows: %d, then %d bytes", first, last)
	}
	if late > early+early/5+20 {
		t.Errorf("descriptors grow: %d, then %d", early, late)
	}
}

// sampleProcess reads a process's resident memory in bytes and its open descriptors each second until
// it ends.
func sampleProcess(pid int, ended <-chan error, err *error) (rss, fds []int) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	proc := fmt.Sprintf("/proc/%d", pid)
	for {
		select {
		case *err = <-ended:
			return rss, fds
		case <-tick.C:
		}
		b, e := os.ReadFile(filepath.Join(proc, "status"))
		_, after, ok := strings.Cut(string(b), "VmRSS:")
		var kb int
		if e != nil || !ok {
			continue // it has ended
		}
		if _, e := fmt.Sscan(after, &kb); e != nil {
			continue
		}
		open, e := os.ReadDir(filepath.Join(proc, "fd"))
		if e != nil {
			continue
		}
		rss, fds = append(rss, kb*1024), append(fds, len(open))
	}
}

func highest(v []int) int {
	m := 0
	for _, n := range v {
		m = max(m, n)
	}
	return m
}
