package httpload

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"seatrial/engine"
	"seatrial/record"
)

// twoServer speaks HTTP/2 with prior knowledge, and HTTP/1.1, until its input ends.
func twoServer() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte("fine"))
	}), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// child runs a role in a process of its own and gives the first line that it prints.
func child(t testing.TB, role string) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// laden is probes with a body, a field and an expectation.
type laden struct {
	probes
	fields []Field
	body   []byte
	expect *Expect
}

func (l laden) At(i uint64, r *Request) {
	l.probes.At(i, r)
	r.Method, r.Fields, r.Body, r.Expect = "POST", l.fields, l.body, l.expect
}

// TestLoopAllocatesNothingWithBodies counts the objects of 10,000 requests in steady state, over both
// versions of HTTP that the loop speaks, with bodies, fields and expectations; the server is another
// process.
func TestLoopAllocatesNothingWithBodies(t *testing.T) {
	addr := child(t, "two-server")
	expect, err := NewExpect(Expectation{Status: []int{200}, Fields: []FieldExpect{{Name: "Content-Length", Equals: "4"}}, Contains: []string{"in"}, MaxBytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []Version{HTTP1, HTTP2Prior} {
		var before, after runtime.MemStats
		const from, to = 5000, 15000
		p := laden{probes{map[uint64]func(){from: func() { runtime.ReadMemStats(&before) }, to: func() { runtime.ReadMemStats(&after) }}},
			[]Field{{Name: "X-Own", Value: []byte("one")}}, []byte(strings.Repeat("b", 500)), expect}
		shard := record.NewShard(record.Config{Routes: 1, End: time.Minute})
		mustRun(t, Loop, Config{Target: admit(t, "http://"+addr, 0), HTTP: v, Requests: p, Recorder: shard, UserAgent: "seatrial/test", Trace: 0.5,
			Schedule: every(100*time.Microsecond, to+1000), Limits: engine.Limits{MaxConnections: 16, Timeout: 30 * time.Second}, Connections: Connections{Streams: 16}})
		if got := shard.Tally().Routes[0].Account.Answered; got != to+1000 {
			t.Fatalf("HTTP/%s: %d answered", v, got)
		}
		// A busy machine brings new peaks: more streams at once, times that open a range of a histogram.
		if n := after.Mallocs - before.Mallocs; n > (to-from)/20 {
			t.Errorf("HTTP/%s: %d objects for %d requests", v, n, to-from)
		}
	}
}
