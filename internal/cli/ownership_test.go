package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seatrial/judge"
)

// SA-1: the service ends in the middle of a run and another program takes its port. The sending stops
// within moments, nothing passes, and the cause says why.
func TestPortTakenOverInTheMiddle(t *testing.T) {
	b := newBench(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = free.Close()
	b.write("seatrial.yaml", fmt.Sprintf(`version: 1
services:
  shop:
    run: "timeout -s KILL 3 %s --addr 127.0.0.1:%s"
    port: %s
    health: /healthz
load:
  rate: 100/s
  duration: 20s
  warmup: 0s
  safe_routes: ["GET /api/products"]
  thresholds: {error_rate: 1}
`, b.shop, port, port))
	// The other program: it binds the port as soon as it is free, and answers everything.
	var foreign atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { foreign.Add(1) })}
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for seen := false; ctx.Err() == nil; {
			c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
			if err == nil {
				_ = c.Close()
				seen = true
			} else if seen { // it was there, and is gone
				if l, err := net.Listen("tcp", addr); err == nil {
					go func() { _ = srv.Serve(l) }()
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	exit, r, _ := b.run("run")
	stop()
	<-taken
	_ = srv.Close()
	if r.Verdict == judge.Pass || exit == 0 || !strings.Contains(fmt.Sprint(r.Causes), "LOD-001") {
		t.Errorf("exit %d, %s: %s", exit, r.Verdict, r.Sentence)
	}
	if n := foreign.Load(); n > 400 { // a look each second at 100/s, and twice as much on a busy machine
		t.Errorf("the other program served %d requests", n)
	}
	if r.StoppedAfter == 0 || r.StoppedAfter > 10 {
		t.Errorf("sending went on until %.1f s", r.StoppedAfter)
	}
}
