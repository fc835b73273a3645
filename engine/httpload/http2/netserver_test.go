package http2

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// sum is what both sides compare of a body.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}

// pattern gives the bytes of a body.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// serveAsked answers what the query asks for, and tells in its headers what it was asked.
func serveAsked(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	n := func(name string) int { v, _ := strconv.Atoi(q.Get(name)); return v }
	if n("early") == 0 {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("X-Sum", sum(body))
	}
	w.Header().Set("X-Asked", r.Method+" "+r.Host+" "+r.URL.String()+" "+r.Header.Get("X-Mine"))
	w.Header().Set("X-Length", r.Header.Get("Content-Length"))
	for i := range n("fields") {
		w.Header().Add("X-F"+strconv.Itoa(i%7), strings.Repeat(strconv.Itoa(i), 1+i*13%400))
	}
	for range n("interim") {
		w.WriteHeader(http.StatusEarlyHints)
	}
	size := n("size")
	if q.Get("length") != "" {
		w.Header().Set("Content-Length", strconv.Itoa(size))
	}
	w.WriteHeader(n("status"))
	body := pattern(size, uint64(size))
	for len(body) > 0 {
		k := min(len(body), 1+n("piece"))
		if _, err := w.Write(body[:k]); err != nil {
			return
		}
		if body = body[k:]; q.Get("flush") != "" {
			w.(http.Flusher).Flush()
		}
	}
	if q.Get("trailer") != "" {
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	}
}

// asked makes request i of a test, as a pure function of (seed, i).
func asked(seed uint64, i int) Request {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	sizes := []int{0, 1, 100, 16384, 16385, 70_000, 300_000}
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	q := url.Values{}
	set := func(name string, v int) {
		if v > 0 {
			q.Set(name, strconv.Itoa(v))
		}
	}
	set("status", pick(200, 200, 200, 201, 404, 500))
	set("size", max(0, pick(sizes...)-r.IntN(2)))
	set("piece", pick(100, 5000, 100_000))
	set("fields", pick(0, 3, 40, 120))
	set("interim", pick(0, 0, 2))
	set("length", pick(0, 1))
	set("flush", pick(0, 0, 1))
	set("trailer", pick(0, 0, 1))
	method := []string{"GET", "GET", "POST", "PUT", "HEAD", "DELETE"}[r.IntN(6)]
	req := Request{Tag: uint32(i), Method: method, Target: []byte("/asked?" + q.Encode()),
		Fields: []Field{{"X-Mine", []byte(strings.Repeat("m", pick(0, 1, 50, 20_000)))}}}
	if method == "POST" || method == "PUT" {
		req.Body = pattern(pick(sizes...), uint64(i))
	}
	return req
}

// seen is what one side observed of an answer.
type seen struct {
	status int
	body   []byte
	fields map[string][]string
}

// collector keeps everything, which an engine does not.
type collector map[uint32]*seen

func (c collector) at(tag uint32) *seen {
	if c[tag] == nil {
		c[tag] = &seen{fields: map[string][]string{}}
	}
	return c[tag]
}

// Field implements Observer.
func (c collector) Field(tag uint32, name, value []byte) {
	f := c.at(tag).fields
	f[string(name)] = append(f[string(name)], string(value))
}

// Data implements Observer.
func (c collector) Data(tag uint32, b []byte) { c.at(tag).body = append(c.at(tag).body, b...) }

// inbox reads a connection without ever making the peer wait.
type inbox struct {
	mu   sync.Mutex
	more *sync.Cond
	data []byte
	err  error
}

func newInbox(nc net.Conn) *inbox {
	in := &inbox{}
	in.more = sync.NewCond(&in.mu)
	go func() {
		buf := make([]byte, 32<<10)
		for in.err == nil {
			n, err := nc.Read(buf)
			in.mu.Lock()
			in.data, in.err = append(in.data, buf[:n]...), err
			in.more.Signal()
			in.mu.Unlock()
		}
	}()
	return in
}

func (in *inbox) next() ([]byte, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.data) == 0 && in.err == nil {
		in.more.Wait()
	}
	b := in.data
	in.data = nil
	if len(b) > 0 {
		return b, nil
	}
	return nil, in.err
}

// drive sends n requests over a connection and gives how each ended.
func drive(t *testing.T, nc net.Conn, c *Conn, n int, request func(i int) Request) []Event {
	t.Helper()
	in := newInbox(nc)
	ends := make([]Event, n)
	var events []Event
	flush := func() {
		for out := c.Out(); len(out) > 0; out = c.Out() {
			k, err := nc.Write(out)
			if err != nil {
				t.Fatalf("write: %v", err)
			}
			c.Advance(k)
		}
	}
	flush()
	for opened, done := 0, 0; done < n; {
		b, err := in.next()
		if err != nil {
			t.Fatalf("read: %v after %d of %d", err, done, n)
		}
		if events, err = c.Feed(b, events[:0]); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			switch e.Kind {
			case FirstByte, Headers:
			case GoAway:
				t.Fatal(told(e))
			default:
				ends[e.Tag] = e
				done++
			}
		}
		for ; opened < n && c.CanOpen(); opened++ {
			r := request(opened)
			open(t, c, r)
		}
		flush()
	}
	return ends
}

// byNetHTTP sends the same request by an implementation that is not ours.
func byNetHTTP(t *testing.T, base string, hc *http.Client, r *Request) *seen {
	t.Helper()
	req, err := http.NewRequest(r.Method, base+string(r.Target), strings.NewReader(string(r.Body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.test"
	req.Header.Set("X-Mine", string(r.Fields[0].Value))
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.ProtoMajor != 2 {
		t.Fatalf("%v over %s", err, resp.Proto)
	}
	s := &seen{status: resp.StatusCode, body: body, fields: map[string][]string{}}
	for name, values := range resp.Header {
		s.fields[strings.ToLower(name)] = values
	}
	return s
}

// TestAgainstNetHTTP asks a server of the standard library for all kinds of answers, on one
// connection, and compares each with what the standard library's client sees of it.
func TestAgainstNetHTTP(t *testing.T) {
	const n = 50
	for _, c := range []struct {
		name    string
		tls     bool
		streams int
		seed    uint64
	}{
		{"h2c, one at a time", false, 1, 1},
		{"h2c", false, 20, 2},
		{"h2c, all at once", false, n, 3},
		{"TLS", true, 40, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(http.HandlerFunc(serveAsked))
			srv.Config.ErrorLog = log.New(io.Discard, "", 0)
			srv.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 65536, MaxReceiveBufferPerConnection: 100_000}
			both := new(http.Protocols)
			both.SetUnencryptedHTTP2(true)
			tr := &http.Transport{Protocols: both}
			if c.tls {
				srv.EnableHTTP2 = true
				srv.StartTLS()
				tr = srv.Client().Transport.(*http.Transport)
			} else {
				srv.Config.Protocols = both
				srv.Start()
			}
			defer srv.Close()
			hc := &http.Client{Transport: tr}
			defer tr.CloseIdleConnections()
			nc := dial(t, srv)
			defer func() { _ = nc.Close() }()
			saw := collector{}
			conn := client(t, func(k *Config) { k.Streams, k.Window, k.MaxHeader = c.streams, 70_000, 1<<20 }).Conn(saw)
			ends := drive(t, nc, conn, n, func(i int) Request { return asked(c.seed, i) })
			for i, e := range ends {
				r := asked(c.seed, i)
				compare(t, &r, e, saw.at(uint32(i)), byNetHTTP(t, srv.URL, hc, &r))
			}
			if !conn.Idle() {
				t.Errorf("%d are still in flight", conn.InFlight())
			}
		})
	}
}

func dial(t *testing.T, srv *httptest.Server) net.Conn {
	t.Helper()
	addr := srv.Listener.Addr().String()
	if srv.TLS == nil {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	nc, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

func compare(t *testing.T, r *Request, e Event, ours, theirs *seen) {
	t.Helper()
	what := fmt.Sprintf("%s %s with %d bytes", r.Method, r.Target, len(r.Body))
	if e.Kind != End || int(e.Status) != theirs.status || e.Body != int64(len(theirs.body)) {
		t.Fatalf("%s: %s; want status %d and %d bytes", what, told(e), theirs.status, len(theirs.body))
	}
	if sum(ours.body) != sum(theirs.body) {
		t.Errorf("%s: the bodies differ", what)
	}
	if e.BytesIn <= e.Body || e.BytesOut <= int64(len(r.Body)) {
		t.Errorf("%s: %d bytes in, %d out", what, e.BytesIn, e.BytesOut)
	}
	if got := ours.fields["x-sum"]; len(got) != 1 || got[0] != sum(r.Body) {
		t.Errorf("%s: the server read a body with the sum %q", what, got)
	}
	delete(ours.fields, "date")
	delete(theirs.fields, "date")
	if !maps.EqualFunc(ours.fields, theirs.fields, slices.Equal) {
		t.Errorf("%s: fields differ:\n%.300v\n%.300v", what, ours.fields, theirs.fields)
	}
}

// TestEarlyAnswer: a server that answers without reading the body has answered.
func TestEarlyAnswer(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(serveAsked))
	srv.Config.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 65536, MaxReceiveBufferPerConnection: 65536}
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()
	nc := dial(t, srv)
	defer func() { _ = nc.Close() }()
	conn := client(t, func(k *Config) { k.Streams = 2 }).Conn(nil)
	for i, e := range drive(t, nc, conn, 20, func(i int) Request {
		return Request{Tag: uint32(i), Method: "POST", Target: []byte("/?early=1&status=413&size=3"), Body: make([]byte, 200_000)}
	}) {
		if told(e) != fmt.Sprintf("end %d 413 body 3", 2*i+1) {
			t.Errorf("request %d: %s", i, told(e))
		}
	}
}
