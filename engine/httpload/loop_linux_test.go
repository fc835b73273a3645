package httpload

import (
	"crypto"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatrial/engine"
	"seatrial/record"
)

// plainServer answers each request head with fine and allocates nothing while it does.
func plainServer(t testing.TB) string {
	answer := []byte(fine)
	return listen(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		for ended := 0; ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			for _, b := range buf[:n] {
				switch {
				case b == '\n' && ended%2 == 1, b == '\r' && ended%2 == 0:
					ended++
				default:
					ended = 0
				}
				if ended == 4 {
					ended = 0
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}
		}
	})
}

// probes calls at when request number i is asked for, in order.
type probes struct {
	at map[uint64]func()
}

func (p probes) At(i uint64, r *Request) {
	if f := p.at[i]; f != nil {
		delete(p.at, i)
		f()
	}
	r.Route, r.Method, r.Target = 0, "GET", append(r.Target[:0], "/item"...)
}

// TestLoopAllocatesNothing counts the objects of 10,000 requests in steady state, server included.
func TestLoopAllocatesNothing(t *testing.T) {
	var before, after runtime.MemStats
	const from, to = 5000, 15000
	p := probes{map[uint64]func(){from: func() { runtime.ReadMemStats(&before) }, to: func() { runtime.ReadMemStats(&after) }}}
	shard := record.NewShard(record.Config{Routes: 1, End: time.Minute})
	mustRun(t, Loop, Config{Target: admit(t, "http://"+plainServer(t), 0), Requests: p, Recorder: shard, UserAgent: "seatrial/test", Trace: 0.5,
		Schedule: every(50*time.Microsecond, to+1000), Limits: engine.Limits{MaxConnections: 16, Timeout: 30 * time.Second}})
	if got := shard.Tally().Routes[0].Account.Answered; got != to+1000 {
		t.Fatalf("%d answered", got)
	}
	// Other goroutines of the test binary may allocate now and then; one object in a hundred requests
	// would be the engine's.
	if n := after.Mallocs - before.Mallocs; n > (to-from)/100 {
		t.Errorf("%d objects for %d requests", n, to-from)
	}
}

// TestLoopLeavesNothingOpen: no descriptor outlives a run, whatever it met.
func TestLoopLeavesNothingOpen(t *testing.T) {
	addr := rawServer(t, func(c net.Conn, head string) bool { return say(c, fine) })
	open := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(d)
	}
	run := func(url string) {
		mustRun(t, Loop, Config{Target: admit(t, url, 0), Requests: lines{"GET /"}, Recorder: &notes{}, Schedule: every(time.Millisecond, 50),
			Limits: engine.Limits{Timeout: 200 * time.Millisecond}})
	}
	run("http://" + addr)
	before := open()
	run("http://" + addr)
	run("https://" + addr)       // no handshake comes about
	run("http://127.0.0.1:1")    // refused
	if n := open(); n > before { // the server's own ends may still be closing, never more than before
		time.Sleep(200 * time.Millisecond)
		if n = open(); n > before {
			t.Errorf("%d descriptors before, %d after", before, n)
		}
	}
}

// TestLoopBesideGarbageCollection: collections that begin every 10 ms come to their end in between,
// although the loop waits in calls that the runtime does not know of, and every request is answered.
func TestLoopBesideGarbageCollection(t *testing.T) {
	for _, procs := range []int{runtime.GOMAXPROCS(0), 1} {
		old := runtime.GOMAXPROCS(procs)
		var stop atomic.Bool
		done := make(chan uint32)
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		go func() {
			n := uint32(0)
			for ; !stop.Load(); n++ {
				runtime.GC()
				time.Sleep(10 * time.Millisecond)
			}
			done <- n
		}()
		seen := &notes{}
		mustRun(t, Loop, Config{Target: admit(t, "http://"+plainServer(t), 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(500*time.Microsecond, 2000)})
		stop.Store(true)
		n := <-done
		runtime.GOMAXPROCS(old)
		for _, s := range seen.sorted(t, 2000) {
			if s.Outcome != record.Answered {
				t.Fatalf("%+v", s)
			}
		}
		if n < 5 {
			t.Errorf("only %d collections in a second with GOMAXPROCS %d", n, procs)
		}
	}
}

// TestDeadlines compares the lists with a plain slice, whatever is added and removed in between.
func TestDeadlines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list deadlines
		entries := make([]deadline, 8)
		type kept struct{ at, i int }
		var want []kept
		now := 0
		drop := func(i int) { want = slices.DeleteFunc(want, func(k kept) bool { return k.i == i }) }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i := rapid.IntRange(0, 7).Draw(t, "entry")
				now += rapid.IntRange(0, 3).Draw(t, "later")
				list.add(&entries[i], time.Duration(now+10))
				drop(i)
				want = append(want, kept{now + 10, i})
			},
			"remove": func(t *rapid.T) {
				i := rapid.IntRange(0, 7).Draw(t, "entry")
				entries[i].remove()
				drop(i)
			},
			"pass": func(t *rapid.T) {
				now += rapid.IntRange(0, 12).Draw(t, "time")
				for d := list.due(time.Duration(now)); d != nil; d = list.due(time.Duration(now)) {
					if len(want) == 0 || want[0].at > now || d != &entries[want[0].i] {
						t.Fatalf("at %d: got one due at %d, want %v", now, d.at, want)
					}
					want = want[1:]
				}
			},
			"": func(t *rapid.T) {
				if len(want) > 0 && want[0].at <= now {
					return // not yet taken out
				}
				first := list.earliest(1 << 40)
				if len(want) == 0 && first != 1<<40 || len(want) > 0 && first != time.Duration(want[0].at) {
					t.Fatalf("the earliest is %d, want %v", first, want)
				}
			},
		})
	})
}

// BenchmarkLoop is what one request costs, over 64 connections; the server's share is in it.
func BenchmarkLoop(b *testing.B) {
	addr := plainServer(b)
	b.ReportAllocs()
	mustRun(b, Loop, Config{Target: admit(b, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: discard{}, Schedule: every(0, b.N),
		Limits: engine.Limits{MaxConnections: 64, Timeout: time.Hour}})
}

// gated is a private key whose first signature waits until the gate is open.
type gated struct {
	crypto.Signer
	first *atomic.Bool
	gate  chan struct{}
}

func (g gated) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if g.first.CompareAndSwap(false, true) {
		<-g.gate
	}
	return g.Signer.Sign(random, digest, opts)
}

// TestSlowSignature: while a signature is being made for one connection the others go on, and one whose
// time is over meanwhile is given up.
func TestSlowSignature(t *testing.T) {
	cert := selfSigned(t, "127.0.0.1", time.Hour)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		limit time.Duration
		open  bool // the gate opens with the first request that is answered; otherwise with the first that is not
	}{{10 * time.Second, true}, {300 * time.Millisecond, false}} {
		own, gate, once := cert, make(chan struct{}), sync.Once{}
		own.PrivateKey = gated{cert.PrivateKey.(crypto.Signer), &atomic.Bool{}, gate}
		seen := tells{&notes{}, func(s record.Sample) {
			if (s.Outcome == record.Answered) == c.open {
				once.Do(func() { close(gate) })
			}
		}}
		mustRun(t, Loop, Config{Target: admit(t, srv.URL, 0), TLS: TLS{Insecure: true, Certificates: []tls.Certificate{own}}, Requests: lines{"GET /"}, Recorder: seen,
			Schedule: every(2*time.Millisecond, 5), Connections: Connections{Fresh: 1}, Limits: engine.Limits{TLS: c.limit, Timeout: 20 * time.Second}})
		answered := 0
		for _, s := range seen.sorted(t, 5) {
			switch s.Outcome {
			case record.Answered:
				answered++
			case record.TimedOutConnect, record.UnsentLate: // the latter on a busy machine
			default:
				t.Errorf("with a limit of %s: %+v", c.limit, s)
			}
		}
		if c.open != (answered == 5) {
			t.Errorf("with a limit of %s: %d were answered", c.limit, answered)
		}
	}
}
