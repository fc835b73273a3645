package httpload

import (
	"bufio"
	"context"
	"flag"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatrial/engine"
	"seatrial/record"
	"seatrial/schedule"
)

// stallVariable makes this test binary the server of TestStallAtFullSize, in a process of its own: in
// one process the goroutines of both would wait for each other, and the test would measure that.
const stallVariable = "SEATRIAL_TEST_STALL"

// roleVariable makes this test binary another process that a test needs: the name of a role and its
// argument.
const roleVariable = "SEATRIAL_TEST_ROLE"

func TestMain(m *testing.M) {
	if plan := os.Getenv(stallVariable); plan != "" {
		stallServer(plan)
		return
	}
	if name, arg, _ := strings.Cut(os.Getenv(roleVariable), " "); name != "" {
		roles()[name](arg)
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "6") // they wait more than they work
	goleak.VerifyTestMain(m)
}

// engines are what the conformance suite holds to the same behaviour.
var engines = allEngines()

type engineFunc func(context.Context, Config) (*Result, error)

// notes is a Recorder that keeps everything.
type notes struct {
	mu      sync.Mutex
	samples []record.Sample
}

func (n *notes) Add(s *record.Sample) {
	n.mu.Lock()
	n.samples = append(n.samples, *s)
	n.mu.Unlock()
}

// tells is a Recorder that calls back.
type tells struct {
	*notes
	got func(record.Sample)
}

func (r tells) Add(s *record.Sample) {
	r.notes.Add(s)
	r.got(*s)
}

// sorted checks that each of the arrivals has exactly one sample, and gives them in order.
func (n *notes) sorted(t *testing.T, arrivals int) []record.Sample {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	out := slices.Clone(n.samples)
	slices.SortFunc(out, func(a, b record.Sample) int { return int(a.Index) - int(b.Index) })
	if len(out) != arrivals {
		t.Fatalf("%d samples for %d arrivals: %+v", len(out), arrivals, out)
	}
	for i, s := range out {
		if s.Index != uint64(i) || s.Outcome == record.Lost || s.Done < s.Due || s.Sent > s.Done || s.FirstByte > s.Done {
			t.Fatalf("sample %d: %+v", i, s)
		}
	}
	return out
}

// dues is a schedule given by its due times.
type dues struct {
	at   []time.Duration
	next int
}

func (d *dues) Next() (schedule.Arrival, bool) {
	if d.next == len(d.at) {
		return schedule.Arrival{}, false
	}
	d.next++
	return schedule.Arrival{Index: uint64(d.next - 1), Due: d.at[d.next-1]}, true
}

// every gives n arrivals, evenly.
func every(gap time.Duration, n int) *dues {
	d := &dues{}
	for i := range n {
		d.at = append(d.at, time.Duration(i)*gap)
	}
	return d
}

// lines are requests of the form "METHOD /target"; request i is line i, and the last one repeats.
type lines []string

func (l lines) At(i uint64, r *Request) {
	k := min(int(i), len(l)-1)
	method, target, _ := strings.Cut(l[k], " ")
	r.Route, r.Method, r.Target, r.Refuse = uint32(k), method, append(r.Target[:0], target...), method == "REFUSE"
}

func admit(t testing.TB, raw string, maxRate float64, addrs ...string) engine.Target {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(addrs) == 0 {
		addrs = []string{u.Host}
	}
	var ports []netip.AddrPort
	for _, a := range addrs {
		ports = append(ports, netip.MustParseAddrPort(a))
	}
	target, err := engine.Admit(u, ports, maxRate, engine.Proof{Kind: "environment", Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// exchange serves one request, whose head it gets; false closes the connection.
type exchange func(c net.Conn, head string) bool

// rawServer speaks whatever serve says, on raw TCP. It gives its address.
func rawServer(t testing.TB, serve exchange) string {
	t.Helper()
	return listen(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			head, ok := readHead(r)
			if !ok || !serve(c, head) {
				return
			}
		}
	})
}

// listen calls handle for each connection, closes it afterwards, and ends all when the test does.
func listen(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer func() {
					mu.Lock()
					delete(open, c)
					mu.Unlock()
					_ = c.Close()
				}()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

func readHead(r *bufio.Reader) (string, bool) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return b.String(), false
		}
		b.WriteString(line)
		if line == "\r\n" {
			return b.String(), true
		}
	}
}

func say(c net.Conn, s string) bool {
	told.Lock()
	told.Unlock() //nolint:staticcheck // see told
	_, err := c.Write([]byte(s))
	return err == nil
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func allEngines() map[string]engineFunc {
	all := map[string]engineFunc{"portable": Portable}
	if HasLoop {
		all["loop"] = Loop
	}
	return all
}

// told tells the race detector what it cannot see through raw system calls: that what a server noted
// before it answered happened before the engine returned.
var told sync.Mutex

func ordered(run engineFunc) engineFunc {
	return func(ctx context.Context, cfg Config) (*Result, error) {
		r, err := run(ctx, cfg)
		told.Lock()
		defer told.Unlock()
		return r, err
	}
}

// contextAfter ends by itself.
func contextAfter(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
