package httpload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"seatrial/engine"
	"seatrial/record"
	"seatrial/schedule"
)

// roles are what this test binary can be besides: see roleVariable.
func roles() map[string]func(string) {
	return map[string]func(string){
		"soak-server":  func(string) { soakServer() },
		"soak-load":    soakLoad,
		"two-server":   func(string) { twoServer() },
		"truth-server": truthServer,
		"truth-load":   truthLoad,
	}
}

const (
	soakRate   = 2000
	soakConns  = 1000
	soakRoutes = 100
)

// soakServer answers each request half a second late, so that soakRate keeps soakConns connections in
// use.
func soakServer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				answer := []byte(fine)
				for r := bufio.NewReaderSize(c, 1024); ; {
					if _, ok := readHead(r); !ok {
						return
					}
					time.Sleep(490 * time.Millisecond)
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// spreadRoutes spreads requests over soakRoutes routes.
type spreadRoutes struct{}

func (spreadRoutes) At(i uint64, r *Request) {
	r.Route, r.Method, r.Target = uint32(i%soakRoutes), "GET", append(r.Target[:0], "/item"...)
}

// soakLoad is the generator: engine and recorder, and nothing else.
func soakLoad(arg string) {
	var addr string
	var length time.Duration
	if _, err := fmt.Sscan(arg, &addr, (*int64)(&length)); err != nil {
		panic(err)
	}
	var t testing.T
	open, err := schedule.New(schedule.Open{Kind: schedule.Poisson, Rate: soakRate, Duration: length, Seed: 1})
	if err != nil {
		panic(err)
	}
	rc := record.Config{Routes: soakRoutes, End: length + time.Minute}
	shard := record.NewShard(rc)
	_, err = Loop(context.Background(), Config{Target: admit(&t, "http://"+addr, 0), Schedule: open, Requests: spreadRoutes{}, Recorder: shard,
		UserAgent: "seatrial/test", Limits: engine.Limits{MaxConnections: 4 * soakConns}})
	if err != nil {
		panic(err)
	}
	tally := shard.Tally()
	var answered, errs uint64
	for i := range tally.Routes {
		answered += tally.Routes[i].Account.Answered
		errs += tally.Routes[i].Errors()
	}
	runtime.GC()
	fmt.Println(answered, errs, pprof.Lookup("goroutine").Count())
}
