package httpload

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seatrial/engine"
	"seatrial/record"
	"seatrial/schedule"
)

func mustRun(t testing.TB, run engineFunc, cfg Config) *Result {
	t.Helper()
	r, err := run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// each runs a test for each engine.
func each(t *testing.T, f func(t *testing.T, run engineFunc)) {
	for name, run := range engines {
		t.Run(name, func(t *testing.T) { f(t, ordered(run)) })
	}
}

func TestRefusedConfigurations(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		good := Config{Target: admit(t, "http://127.0.0.1:1", 0), Schedule: every(1, 0), Requests: lines{"GET /"}, Recorder: &notes{}}
		if _, err := run(t.Context(), good); err != nil {
			t.Fatalf("an empty schedule is refused: %v", err)
		}
		none := good
		none.Target = engine.Target{}
		if _, err := run(t.Context(), none); !errors.Is(err, engine.ErrNoTarget) {
			t.Errorf("no target: %v", err)
		}
		for name, spoil := range map[string]func(*Config){
			"scheme":   func(c *Config) { c.Target = admit(t, "ftp://127.0.0.1:1", 0) },
			"schedule": func(c *Config) { c.Schedule = nil },
			"host":     func(c *Config) { c.Host = "a\r\nX: y" },
			"agent":    func(c *Config) { c.UserAgent = "a\r\nX: y" },
			"name":     func(c *Config) { c.Headers = []Header{{"a b", "c"}} },
			"control":  func(c *Config) { c.Headers = []Header{{"A", "hush\nX: y"}} },
			"framing":  func(c *Config) { c.Headers = []Header{{"Content-length", "5"}} },
		} {
			c := good
			spoil(&c)
			if _, err := run(t.Context(), c); err == nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestConnectionRefused(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		_ = l.Close()
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Schedule: every(time.Millisecond, 20), Requests: lines{"GET /"}, Recorder: seen,
			Limits: engine.Limits{MaxConnections: 2}})
		for _, s := range seen.sorted(t, 20) {
			if s.Outcome != record.ConnectRefused || s.Sent != 0 || s.Connect == 0 {
				t.Errorf("%+v", s)
			}
		}
		if r.ConnOpened != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestAddressesTakeTurns: only pinned addresses are used, one after the other; the name is never
// resolved.
func TestAddressesTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var hits [2]atomic.Int64
		var addrs []string
		for i := range hits {
			addrs = append(addrs, rawServer(t, func(c net.Conn, head string) bool {
				if strings.Contains(head, "\r\nHost: no.such.name.invalid\r\n") {
					hits[i].Add(1)
				}
				say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				return false
			}))
		}
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://no.such.name.invalid", 0, addrs...), Schedule: every(2*time.Millisecond, 20), Requests: lines{"GET /"}, Recorder: seen})
		seen.sorted(t, 20)
		if a, b := hits[0].Load(), hits[1].Load(); a != 10 || b != 10 {
			t.Errorf("%d and %d requests, want 10 and 10", a, b)
		}
	})
}

func TestIdleCloseIsSeenAndNothingIsSentTwice(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var got atomic.Int64
		addr := rawServer(t, func(c net.Conn, _ string) bool {
			got.Add(1)
			say(c, fine)
			time.Sleep(5 * time.Millisecond)
			return false // without saying so
		})
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Schedule: every(30*time.Millisecond, 8), Requests: lines{"GET /"}, Recorder: seen})
		for _, s := range seen.sorted(t, 8) {
			if s.Outcome != record.Answered {
				t.Errorf("%+v", s)
			}
		}
		if got.Load() != 8 || r.ConnOpened != 8 || r.Discarded != 0 {
			t.Errorf("%d requests arrived, %+v", got.Load(), r)
		}
	})
}

func TestKeepAliveIsLIFO(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, replies(fine))
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Schedule: every(5*time.Millisecond, 40), Requests: lines{"GET /"}, Recorder: seen})
		got := seen.sorted(t, 40)
		if r.ConnOpened > 5 || got[0].Connect == 0 || got[0].Wait < got[0].Connect {
			t.Errorf("%+v, first sample %+v", r, got[0])
		}
	})
}

func TestQueueWaitsAndExpires(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, func(c net.Conn, head string) bool {
			if strings.Contains(head, "/slow") {
				time.Sleep(100 * time.Millisecond)
			}
			if strings.Contains(head, "/never") {
				return true
			}
			return say(c, fine)
		})
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /slow", "GET /a", "GET /never", "GET /b"}, Recorder: seen,
			Schedule: &dues{at: []time.Duration{0, 10 * time.Millisecond, 200 * time.Millisecond, 210 * time.Millisecond, 220 * time.Millisecond, 900 * time.Millisecond}},
			Limits:   engine.Limits{MaxConnections: 1, Timeout: 400 * time.Millisecond}})
		got := seen.sorted(t, 6)
		if s := got[1]; s.Outcome != record.Answered || s.Wait < 60*time.Millisecond || s.Response() < s.Wait || s.SendDelay() > s.Wait {
			t.Errorf("the one that waited: %+v", s)
		}
		if got[2].Outcome != record.TimedOut {
			t.Errorf("%+v", got[2])
		}
		// These are due 10 and 20 ms after the one that holds the connection until its time-out.
		for _, s := range got[3:5] {
			if s.Outcome != record.Answered || s.Wait < 300*time.Millisecond {
				t.Errorf("%+v", s)
			}
		}
		if got[5].Outcome != record.Answered || r.ConnPeak != 1 || r.ConnLimitHit != 3 {
			t.Errorf("%+v %+v", got[5], r)
		}
	})
}

func TestWaitingUntilTheTimeOutIsUnsent(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, repeats("HTTP/1.1 200 OK\r\n\r\n", "x", time.Millisecond)) // each holds its connection for 300 ms
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen,
			Schedule: &dues{at: make([]time.Duration, 5)}, Limits: engine.Limits{MaxConnections: 1, Timeout: quick}})
		got := seen.sorted(t, 5)
		if got[0].Outcome != record.TimedOut {
			t.Errorf("%+v", got[0])
		}
		for _, s := range got[1:] {
			if s.Outcome != record.UnsentLimit || s.Response() != quick || s.Sent != 0 || s.BytesOut != 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestFirstByteTimeOut(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, func(c net.Conn, head string) bool {
			if strings.Contains(head, "/half") {
				say(c, "HTTP/1.1")
			}
			return true
		})
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /none", "GET /half"}, Recorder: seen, Schedule: every(0, 2),
			Limits: engine.Limits{FirstByte: 100 * time.Millisecond, Timeout: quick}})
		got := seen.sorted(t, 2)
		if got[0].Outcome != record.TimedOutFirst || got[0].Response() < 100*time.Millisecond || got[1].Outcome != record.TimedOut || got[1].FirstByte == 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestStop: after a stop nothing is written or released, what is on its way may drain, and every arrival
// that was released is accounted for.
func TestStop(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var last atomic.Int64
		start := time.Now()
		addr := rawServer(t, func(c net.Conn, head string) bool {
			last.Store(int64(time.Since(start)))
			switch {
			case strings.Contains(head, "/never"):
				return true
			case strings.Contains(head, "/slow"):
				time.Sleep(250 * time.Millisecond)
			}
			return say(c, fine)
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stopped atomic.Int64
		timer := time.AfterFunc(200*time.Millisecond, func() { stopped.Store(int64(time.Since(start))); cancel() })
		defer timer.Stop()
		s := every(5*time.Millisecond, 5000)
		at := append([]time.Duration{0, 100 * time.Millisecond}, make([]time.Duration, 0, 5000)...)
		for _, d := range s.at {
			at = append(at, 100*time.Millisecond+d)
		}
		seen := &notes{}
		r, err := run(ctx, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /never", "GET /slow", "GET /"}, Recorder: seen, Schedule: &dues{at: at},
			StopDrain: 400 * time.Millisecond, Limits: engine.Limits{MaxConnections: 3}, Epoch: start})
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		got := seen.sorted(t, int(r.Released))
		if r.Released < 3 || r.Released > 1000 {
			t.Fatalf("%d arrivals were released in 200 ms of a schedule of 25 s", r.Released)
		}
		if got[0].Outcome != record.Abandoned || got[1].Outcome != record.Answered {
			t.Errorf("%+v\n%+v", got[0], got[1])
		}
		if d := time.Duration(last.Load() - stopped.Load()); d > 100*time.Millisecond {
			t.Errorf("a request arrived %s after the stop", d)
		}
		for _, s := range got[2:] {
			if s.Outcome != record.Answered && s.Outcome != record.UnsentStop {
				t.Fatalf("%+v", s)
			}
		}
		if took > 5*time.Second {
			t.Errorf("the stop took %s", took)
		}
	})
}

// TestStopWhileConnecting: what waits in a handshake or in the queue was not sent.
func TestStopWhileConnecting(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) // never shakes hands
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(100*time.Millisecond, cancel)
		defer timer.Stop()
		seen := &notes{}
		if _, err := run(ctx, Config{Target: admit(t, "https://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(0, 3),
			Limits: engine.Limits{MaxConnections: 1}}); err != nil {
			t.Fatal(err)
		}
		for _, s := range seen.sorted(t, 3) {
			if s.Outcome != record.UnsentStop || s.Sent != 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestTLS(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 1 || r.TLS == nil || r.TLS.ServerName != "example.com" {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		}))
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		u, _ := url.Parse(srv.URL)
		base := Config{Target: admit(t, "https://example.com", 0, u.Host), Requests: lines{"GET /"}, TLS: TLS{RootCAs: roots}}
		for name, c := range map[string]struct {
			change func(*Config)
			want   record.Outcome
		}{
			"trusted":    {func(*Config) {}, record.Answered},
			"untrusted":  {func(c *Config) { c.TLS.RootCAs = x509.NewCertPool() }, record.TLSFailed},
			"insecure":   {func(c *Config) { c.TLS = TLS{Insecure: true} }, record.Answered},
			"other name": {func(c *Config) { c.Host = "other.test" }, record.TLSFailed},
		} {
			cfg, seen := base, &notes{}
			cfg.Recorder, cfg.Schedule = seen, every(20*time.Millisecond, 5)
			c.change(&cfg)
			mustRun(t, run, cfg)
			for i, s := range seen.sorted(t, 5) {
				if s.Outcome != c.want || c.want == record.Answered && (s.Status != 200 || s.BytesIn < 100_000) || i == 0 && s.TLS == 0 {
					t.Errorf("%s: %+v", name, s)
				}
			}
		}
	})
}

func TestTLSFailures(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		for name, c := range map[string]struct {
			serve func(net.Conn)
			want  record.Outcome
		}{
			"garbage": {func(c net.Conn) { say(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); _, _ = io.Copy(io.Discard, c) }, record.TLSFailed},
			"close":   {func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, record.TLSFailed},
			"silence": {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, record.TimedOutConnect},
		} {
			addr := listen(t, c.serve)
			seen := &notes{}
			mustRun(t, run, Config{Target: admit(t, "https://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(0, 2),
				Limits: engine.Limits{TLS: 100 * time.Millisecond}})
			for _, s := range seen.sorted(t, 2) {
				if s.Outcome != c.want || s.Sent != 0 || s.TLS == 0 {
					t.Errorf("%s: %+v", name, s)
				}
			}
		}
	})
}

func TestMaxRateIsSharedBySlices(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var mu sync.Mutex
		var at []time.Time
		addr := rawServer(t, func(c net.Conn, _ string) bool {
			mu.Lock()
			at = append(at, time.Now())
			mu.Unlock()
			return say(c, fine)
		})
		target := admit(t, "http://"+addr, 40)
		var wg sync.WaitGroup
		var limited, sent atomic.Uint64
		for range 3 {
			wg.Go(func() {
				seen := &notes{}
				r := mustRun(t, run, Config{Target: target, Requests: lines{"GET /"}, Recorder: seen, Schedule: every(10*time.Millisecond, 120)})
				limited.Add(r.RateLimited)
				for _, s := range seen.sorted(t, 120) {
					switch s.Outcome {
					case record.Answered:
						sent.Add(1)
					case record.UnsentRate:
					default:
						t.Errorf("%+v", s)
					}
				}
			})
		}
		wg.Wait()
		if limited.Load()+sent.Load() != 360 || sent.Load() > 80 || sent.Load() < 40 || int(sent.Load()) != len(at) {
			t.Errorf("%d sent, %d held back, %d arrived", sent.Load(), limited.Load(), len(at))
		}
	})
}

func TestForbiddenRequestsAreNotSent(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var hits atomic.Int64
		addr := listen(t, func(net.Conn) { hits.Add(1) })
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"REFUSE /a", "GET a", "GET /a b"}, Recorder: seen, Schedule: every(0, 3)})
		for _, s := range seen.sorted(t, 3) {
			if s.Outcome != record.UnsentPolicy {
				t.Errorf("%+v", s)
			}
		}
		if hits.Load() != 0 {
			t.Errorf("%d connections were opened", hits.Load())
		}
	})
}

// TestSameSequenceAtAnyLimit: how many connections there are changes nothing of what is sent.
func TestSameSequenceAtAnyLimit(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		var requests lines
		for i := range 200 {
			requests = append(requests, fmt.Sprintf("GET /item/%d", i))
		}
		var before []string
		for _, limit := range []int{1, 4, 64} {
			var mu sync.Mutex
			var targets []string
			addr := rawServer(t, func(c net.Conn, head string) bool {
				line, _, _ := strings.Cut(head, "\r\n")
				mu.Lock()
				targets = append(targets, line)
				mu.Unlock()
				return say(c, fine)
			})
			seen := &notes{}
			mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: requests, Recorder: seen, Schedule: every(500*time.Microsecond, 200), Limits: engine.Limits{MaxConnections: limit}})
			for i, s := range seen.sorted(t, 200) {
				if s.Due != time.Duration(i)*500*time.Microsecond || s.Route != uint32(i) || s.Outcome != record.Answered {
					t.Fatalf("%d connections: %+v", limit, s)
				}
			}
			slices.Sort(targets)
			if before != nil && !slices.Equal(before, targets) {
				t.Errorf("%d connections send another sequence", limit)
			}
			before = targets
		}
	})
}

// TestStallIsMeasuredInFull: a server that stands still for 1/10 of the run and notes when it wrote
// each answer. That less the due time is the truth; its 99th percentile is about 9/10 of the stall, and
// must be read at any connection limit, although with one connection a single request sees the stall.
// Four of them run at once, so 20 ms are allowed from the server's write to the read beside the 1%
// that TestStallAtFullSize holds to.
func TestStallIsMeasuredInFull(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		for _, limit := range []int{1, 4, 64, 1000} {
			t.Run(fmt.Sprint(limit), func(t *testing.T) {
				t.Parallel()
				stall(t, run, limit)
			})
		}
	})
}

func stall(t *testing.T, run engineFunc, limit int) {
	const n, length, slack = 2000, 200 * time.Millisecond, 20 * time.Millisecond
	start := time.Now().Add(20 * time.Millisecond)
	from, to := start.Add(500*time.Millisecond), start.Add(500*time.Millisecond+length)
	wrote := make([]atomic.Int64, n)
	addr := rawServer(t, func(c net.Conn, head string) bool {
		var i int
		_, _ = fmt.Sscanf(head, "GET /%d ", &i)
		if now := time.Now(); now.After(from) && now.Before(to) {
			time.Sleep(to.Sub(now))
		}
		wrote[i].Store(int64(time.Since(start)))
		return say(c, fine)
	})
	var requests lines
	for i := range n {
		requests = append(requests, fmt.Sprintf("GET /%d", i))
	}
	seen := &notes{}
	mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: requests, Recorder: seen, Schedule: every(time.Millisecond, n),
		Epoch: start, Limits: engine.Limits{MaxConnections: limit}})
	var read, truth []time.Duration
	for i, s := range seen.sorted(t, n) {
		if s.Outcome != record.Answered {
			t.Fatalf("%+v", s)
		}
		read, truth = append(read, s.Response()), append(truth, time.Duration(wrote[i].Load())-s.Due)
	}
	slices.Sort(read)
	slices.Sort(truth)
	const rank = n*99/100 - 1
	r, w := read[rank], truth[rank]
	if w < length*17/20 || r < w-w/100 || r > w+w/100+slack {
		t.Errorf("the 99th percentile reads %s, the truth is %s", r, w)
	}
}

// TestSlowAnswersDelayNobody: requests go out when they are due, although none is answered.
func TestSlowAnswersDelayNobody(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, func(c net.Conn, _ string) bool {
			time.Sleep(300 * time.Millisecond)
			return say(c, fine)
		})
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(2*time.Millisecond, 100)})
		for _, s := range seen.sorted(t, 100) {
			if s.Outcome != record.Answered || s.Sent-s.Due > 200*time.Millisecond {
				t.Errorf("%+v", s)
			}
		}
		if r.ConnPeak < 90 || r.ConnLimitHit != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestMemoryOfHostileServers: neither a large nor an endless answer costs memory.
func TestMemoryOfHostileServers(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		piece := bytes.Repeat([]byte("x"), 64<<10)
		for name, c := range map[string]struct {
			serve exchange
			want  record.Outcome
		}{
			"100 MB":          {func(c net.Conn, _ string) bool { return large(c, piece, 100_000_000) }, record.Answered},
			"endless body":    {flood("HTTP/1.1 200 OK\r\n\r\n", piece), record.InvalidResponse},
			"endless headers": {flood("HTTP/1.1 200 OK\r\n", append(append([]byte("A: "), piece[:4000]...), "\r\n"...)), record.InvalidResponse},
			"endless line":    {flood("HTTP/1.1 200 OK\r\nA: ", piece), record.InvalidResponse},
		} {
			addr := rawServer(t, c.serve)
			seen := &notes{}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(0, 2),
				Limits: engine.Limits{MaxBody: 120_000_000, Timeout: 30 * time.Second}})
			runtime.ReadMemStats(&after)
			for _, s := range seen.sorted(t, 2) {
				if s.Outcome != c.want {
					t.Errorf("%s: %+v", name, s)
				}
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
				t.Errorf("%s: %d KiB were allocated", name, used>>10)
			}
		}
	})
}

// flood serves a beginning and then the same bytes until the peer goes away.
func flood(head string, again []byte) exchange {
	return func(c net.Conn, _ string) bool {
		var err error
		for say(c, head); err == nil; {
			_, err = c.Write(again)
		}
		return false
	}
}

func large(c net.Conn, piece []byte, n int) bool {
	ok := say(c, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n))
	for ; ok && n > 0; n -= len(piece) {
		_, err := c.Write(piece[:min(n, len(piece))])
		ok = err == nil
	}
	return ok
}

// TestPortsAndDescriptorsAreCountedApart: what this machine lacks is not the target's doing.
func TestPortsAndDescriptorsAreCountedApart(t *testing.T) {
	p, err := newPortable(Config{Target: admit(t, "http://127.0.0.1:1", 0), Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(p, true)
	for err, want := range map[error]record.Outcome{syscall.EMFILE: record.ConnectFailed, syscall.EADDRNOTAVAIL: record.ConnectFailed, syscall.ECONNREFUSED: record.ConnectRefused,
		syscall.EHOSTUNREACH: record.ConnectFailed} {
		if got := c.dialFailed(&net.OpError{Op: "dial", Err: err}); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
	if r := p.result(); r.FDExhausted != 1 || r.PortsExhausted != 1 {
		t.Errorf("%+v", r)
	}
	p.undial()
}

func TestResultAddsUp(t *testing.T) {
	var h engine.Health
	r := &Result{ConnPeak: 1, ConnOpened: 2, ConnLimitHit: 3, PortsExhausted: 4, FDExhausted: 5, RateLimited: 6, BytesIn: 7, BytesOut: 8}
	r.AddTo(&h)
	r.AddTo(&h)
	if h.ConnPeak != 2 || h.ConnOpened != 4 || h.ConnLimitHit != 6 || h.PortsExhausted != 8 || h.FDExhausted != 10 || h.RateLimited != 12 || h.BytesIn != 14 || h.BytesOut != 16 {
		t.Errorf("%+v", h)
	}
}

// BenchmarkPortable is what one request costs, over 64 connections; the server's share is in it.
func BenchmarkPortable(b *testing.B) {
	addr := listen(b, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			for n := 0; ; {
				line, err := r.ReadSlice('\n')
				if err != nil {
					return
				}
				if n++; len(line) == 2 {
					break
				}
			}
			if !say(c, fine) {
				return
			}
		}
	})
	b.ReportAllocs()
	mustRun(b, Portable, Config{Target: admit(b, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: discard{}, Schedule: every(0, b.N),
		Limits: engine.Limits{MaxConnections: 64, Timeout: time.Hour}})
}

type discard struct{}

func (discard) Add(*record.Sample) {}

// TestAnswerBeforeTheRequest: what a server says before it is asked is not taken for an answer. A server
// that is quick enough cannot be told from one that answers, since its bytes come right behind the
// request; then the true answer is left over, and the connection is given up and counted.
func TestAnswerBeforeTheRequest(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := listen(t, func(c net.Conn) {
			say(c, fine)
			r := bufio.NewReader(c)
			for _, ok := readHead(r); ok; _, ok = readHead(r) {
				say(c, "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n")
			}
		})
		seen := &notes{}
		r := mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(20*time.Millisecond, 20)})
		fooled, invalid := uint64(0), uint64(0)
		for _, s := range seen.sorted(t, 20) {
			switch {
			case s.Outcome == record.Answered && s.Status == 200:
				fooled++
			case s.Outcome == record.InvalidResponse:
				invalid++
			default:
				t.Errorf("%+v", s)
			}
		}
		if r.Discarded < fooled+invalid-1 { // the last one's true answer may come after the end
			t.Errorf("%d answers were not asked for, %d requests were refused, %d connections were discarded", fooled, invalid, r.Discarded)
		}
	})
}

// TestClosedBeforeTheRequest: a connection that the peer closed at once is a reset, not an answer.
func TestClosedBeforeTheRequest(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := listen(t, func(net.Conn) {})
		seen := &notes{}
		mustRun(t, run, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: every(10*time.Millisecond, 10)})
		for _, s := range seen.sorted(t, 10) {
			if s.Outcome != record.Reset {
				t.Errorf("%+v", s)
			}
		}
	})
}

// fed is a schedule that does not know its arrivals before they are given.
type fed struct {
	given chan schedule.Arrival // closed at the end
	asked atomic.Int64
}

func (f *fed) Next() (schedule.Arrival, bool) {
	f.asked.Add(1)
	select {
	case a, ok := <-f.given:
		return a, ok
	default:
		return schedule.Arrival{Index: schedule.Later}, true
	}
}

// TestScheduleFedWhileItRuns: a schedule that knows nothing for a while holds up neither what is on its way
// nor a stop, and nothing is sent in its name.
func TestScheduleFedWhileItRuns(t *testing.T) {
	each(t, func(t *testing.T, run engineFunc) {
		addr := rawServer(t, func(c net.Conn, _ string) bool { return say(c, fine) })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &fed{given: make(chan schedule.Arrival, 1)}
		told := make(chan struct{}, 3)
		seen := tells{&notes{}, func(record.Sample) { told <- struct{}{} }}
		done := make(chan *Result, 1)
		go func() {
			r, err := run(ctx, Config{Target: admit(t, "http://"+addr, 0), Requests: lines{"GET /"}, Recorder: seen, Schedule: f})
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		for i := range 3 { // each is answered before the next is known
			f.given <- schedule.Arrival{Index: uint64(i)}
			<-told
		}
		for now := f.asked.Load(); f.asked.Load() < now+3; {
			runtime.Gosched()
		}
		cancel()
		if r := <-done; r == nil || r.Released != 3 {
			t.Errorf("%+v", r)
		}
		for _, s := range seen.sorted(t, 3) {
			if s.Outcome != record.Answered {
				t.Errorf("%+v", s)
			}
		}
	})
}
