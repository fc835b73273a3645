package httpload

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"seatrial/engine"
	"seatrial/record"
)

// moody is a server that does with each connection and request whatever a random number says. It speaks
// HTTP/1.1 and HTTP/2 with prior knowledge.
type moody struct {
	mu   sync.Mutex
	r    *rand.Rand
	mood int // 0: fine; the larger, the worse

	open, most int
}

func (m *moody) roll(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.r.IntN(n)
}

func (m *moody) bad() bool { return m.roll(10) < m.mood }

func (m *moody) handle(t testing.TB, c net.Conn) {
	m.mu.Lock()
	m.open++
	m.most = max(m.most, m.open)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.open--
		m.mu.Unlock()
	}()
	if m.bad() && m.roll(4) == 0 {
		return // before anything was said
	}
	b := bufio.NewReader(c)
	first, err := b.Peek(3)
	if err != nil {
		return
	}
	if bytes.Equal(first, []byte("PRI")) {
		settings := []http2.Setting{}
		if m.bad() {
			settings = append(settings, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(m.roll(4))})
		}
		serveFrames(t, &peeked{c, b}, settings, m.two)
		return
	}
	for {
		if _, ok := readHead(b); !ok || !m.one(c) {
			return
		}
	}
}

// peeked is a connection of which a part was read ahead.
type peeked struct {
	net.Conn
	r io.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

func (m *moody) one(c net.Conn) bool {
	if !m.bad() {
		return say(c, fine)
	}
	switch m.roll(8) {
	case 0:
		return false
	case 1:
		say(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
		return false
	case 2:
		return say(c, "nonsense\r\n\r\n")
	case 3:
		time.Sleep(time.Duration(m.roll(60)) * time.Millisecond)
		return say(c, fine)
	case 4:
		say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
		return false
	case 5:
		return say(c, fine+fine)
	case 6:
		_ = c.(*net.TCPConn).SetLinger(0)
		return false
	}
	return true // and no answer
}

func (m *moody) two(f *framed, a asked) bool {
	if !m.bad() {
		f.fine(a.stream)
		return true
	}
	switch m.roll(9) {
	case 0:
		return false
	case 1:
		_ = f.WriteRSTStream(a.stream, http2.ErrCodeRefusedStream)
	case 2:
		_ = f.WriteGoAway(a.stream, http2.ErrCodeNo, nil)
		f.fine(a.stream)
	case 3:
		_ = f.WriteGoAway(max(a.stream, 2)-2, http2.ErrCodeNo, nil)
	case 4:
		f.headers(a.stream, false, ":status", "200")
	case 5:
		f.headers(a.stream, true, "no", "status")
	case 6:
		time.Sleep(time.Duration(m.roll(30)) * time.Millisecond)
		f.fine(a.stream)
	case 7:
		_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(1 + m.roll(5))})
		f.fine(a.stream)
	}
	return true // mostly without an answer
}

// TestStress: whatever a server does and wherever the run is stopped, each released arrival has one
// sample, each connection arrival one end, the limit of connections holds, and the run ends.
func TestStress(t *testing.T) {
	rounds := 12
	if os.Getenv("SEATRIAL_LONG") != "" {
		rounds = 300
	}
	for name, run := range engines {
		for _, v := range []Version{HTTPAuto, HTTP2Prior} {
			t.Run(fmt.Sprintf("%s/%s", name, v), func(t *testing.T) {
				t.Parallel()
				for seed := range rounds {
					stress(t, uint64(seed), v, ordered(run))
				}
			})
		}
	}
}

func stress(t *testing.T, seed uint64, v Version, run engineFunc) {
	r := rand.New(rand.NewPCG(seed, 9))
	m := &moody{r: rand.New(rand.NewPCG(seed, 10)), mood: r.IntN(8)}
	addr := listen(t, func(c net.Conn) { m.handle(t, c) })
	n := 20 + r.IntN(200)
	limit := 1 + r.IntN(12)
	maxRate := 0.0
	if r.IntN(4) == 0 {
		maxRate = 200
	}
	k := Connections{Fresh: oneOf(r, 0, 0, 0.3, 1), Streams: oneOf(r, 0, 1, 3)}
	arrivals := 0
	if r.IntN(3) == 0 {
		arrivals = 1 + r.IntN(60)
		k.Arrivals = every(time.Duration(1+r.IntN(5))*time.Millisecond, arrivals)
	}
	limits := engine.Limits{MaxConnections: limit, Timeout: time.Duration(30+r.IntN(120)) * time.Millisecond}
	if r.IntN(2) == 0 {
		limits.FirstByte = limits.Timeout / 2
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stopped := r.IntN(3) == 0
	if stopped {
		timer := time.AfterFunc(time.Duration(r.IntN(200))*time.Millisecond, stop)
		defer timer.Stop()
	}
	cfg := Config{Target: admit(t, "http://"+addr, maxRate), HTTP: v, Connections: k, Requests: lines{"GET /"}, Recorder: &notes{}, Limits: limits, Seed: seed,
		Schedule: every(time.Duration(r.IntN(2000))*time.Microsecond, n), StopDrain: time.Duration(r.IntN(2)) * 20 * time.Millisecond}
	begun := time.Now()
	result, err := run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	what := fmt.Sprintf("seed %d: %d requests, limit %d, mood %d, %+v, stopped %v", seed, n, limit, m.mood, k, stopped)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("%s: took %s", what, took)
	}
	got := cfg.Recorder.(*notes).sorted(t, int(result.Released))
	if !stopped && int(result.Released) != n {
		t.Errorf("%s: %d released", what, result.Released)
	}
	good := 0
	for _, s := range got {
		if s.Outcome == record.Answered {
			good++
		}
		if s.Outcome == record.Abandoned && !stopped || s.Outcome == record.UnsentStop && !stopped || s.Outcome == record.TLSFailed {
			t.Errorf("%s: %+v", what, s)
		}
	}
	if m.mood == 0 && !stopped && maxRate == 0 && good < n/2 {
		t.Errorf("%s: only %d of %d answered by a server in its best mood: %+v", what, good, n, got[len(got)-1])
	}
	if a := result.Arrivals; a.Balanced(uint64(arrivals), stopped) != nil {
		t.Errorf("%s: %v", what, a.Balanced(uint64(arrivals), stopped))
	}
	if result.ConnPeak > limit {
		t.Errorf("%s: %d connections", what, result.ConnPeak)
	}
}
