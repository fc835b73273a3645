package httpload

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/engine"
)

// monotonic is the clock that two processes of one machine share, in nanoseconds. The wall clock will
// not do: while it is being corrected it may run half a percent fast, which is 50 ms in this test.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// stallServer stands still from..to (monotonic nanoseconds, in its environment) and notes when
// it wrote each answer. It prints its address, and all the times when its input ends.
func stallServer(plan string) {
	var from, to, n int64
	if _, err := fmt.Sscanf(plan, "%d %d %d", &from, &to, &n); err != nil {
		panic(err)
	}
	wrote := make([]int64, n)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go stallConn(c, from, to, wrote)
		}
	}()
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = binary.Write(os.Stdout, binary.LittleEndian, wrote)
}

func stallConn(c net.Conn, from, to int64, wrote []int64) {
	defer func() { _ = c.Close() }()
	answer := []byte(fine)
	for r := bufio.NewReader(c); ; {
		head, ok := readHead(r)
		if !ok {
			return
		}
		target, _, _ := strings.Cut(strings.TrimPrefix(head, "GET /"), " ")
		i, err := strconv.Atoi(target)
		if err != nil {
			return
		}
		if now := monotonic(); now >= from && now < to {
			time.Sleep(time.Duration(to - now))
		}
		wrote[i] = monotonic()
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// TestStallAtFullSize: a server that stands still for 1 s in 10 s at 1,000/s. The 99th percentile of
// the response time is read within 1% of the truth at any connection limit, although with one
// connection a single request sees the stall. Its shorter brother is TestStallIsMeasuredInFull.
func TestStallAtFullSize(t *testing.T) {
	limits := []int{64}
	if os.Getenv("SEATRIAL_LONG") == "1" {
		limits = []int{1, 4, 64, 1000}
	}
	each(t, func(t *testing.T, run engineFunc) {
		for _, limit := range limits {
			t.Run(fmt.Sprint(limit), func(t *testing.T) { stallFull(t, run, limit) })
		}
	})
}

func stallFull(t *testing.T, run engineFunc, limit int) {
	const n = 10_000
	start := time.Now().Add(500 * time.Millisecond)
	zero := monotonic() + int64(time.Until(start))
	from := zero + int64(4*time.Second)
	server := exec.Command(os.Args[0])
	// On two cores a server that takes both when the stall ends would keep the generator from reading.
	server.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("%s=%d %d %d", stallVariable, from, from+int64(time.Second), n))
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(out)
	addr, err := answers.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var requests lines
	for i := range n {
		requests = append(requests, fmt.Sprintf("GET /%d", i))
	}
	seen := &notes{}
	if _, err := run(context.Background(), Config{Target: admit(t, "http://"+strings.TrimSpace(addr), 0), Requests: requests, Recorder: seen,
		Schedule: every(time.Millisecond, n), Epoch: start, Limits: engine.Limits{MaxConnections: limit}}); err != nil {
		t.Fatal(err)
	}
	wrote := make([]int64, n)
	var read sync.WaitGroup
	read.Go(func() { err = binary.Read(answers, binary.LittleEndian, wrote) })
	_ = in.Close()
	read.Wait()
	if e := server.Wait(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	var got, truth []time.Duration
	for i, s := range seen.sorted(t, n) {
		got = append(got, s.Response())
		truth = append(truth, time.Duration(wrote[i]-zero)-s.Due)
	}
	slices.Sort(got)
	slices.Sort(truth)
	const rank = n*99/100 - 1
	r, w := got[rank], truth[rank]
	t.Logf("p99 reads %s, the truth is %s (%+.2f%%)", r, w, 100*float64(r-w)/float64(w))
	if w < 850*time.Millisecond || r < w-w/100 || r > w+w/100 {
		t.Errorf("the 99th percentile reads %s, the truth is %s", r, w)
	}
}
