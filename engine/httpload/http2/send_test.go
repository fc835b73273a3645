package http2

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// written takes everything that the connection wants to write.
func written(c *Conn) []byte {
	var all []byte
	for out := c.Out(); len(out) > 0; out = c.Out() {
		all = append(all, out...)
		c.Advance(len(out))
	}
	return all
}

// wrote reads requests as a server does.
func wrote(t *testing.T, out []byte) (heads []string, bodies map[uint32]int, ended map[uint32]bool) {
	t.Helper()
	fr := xhttp2.NewFramer(nil, bytes.NewReader(out))
	fr.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	bodies, ended = map[uint32]int{}, map[uint32]bool{}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return heads, bodies, ended
		}
		switch f := f.(type) {
		case *xhttp2.MetaHeadersFrame:
			var words []string
			for _, h := range f.Fields {
				words = append(words, h.Name+"="+h.Value)
				if h.Sensitive {
					words = append(words, "(secret)")
				}
			}
			heads = append(heads, strings.Join(words, " "))
			ended[f.StreamID] = f.StreamEnded()
		case *xhttp2.DataFrame:
			bodies[f.StreamID] += len(f.Data())
			ended[f.StreamID] = f.StreamEnded()
		}
	}
}

func TestGreeting(t *testing.T) {
	out := small(t).Conn(nil).Out()
	rest, found := bytes.CutPrefix(out, []byte(xhttp2.ClientPreface))
	if !found {
		t.Fatalf("begins with %q", out)
	}
	fr := xhttp2.NewFramer(nil, bytes.NewReader(rest))
	f, err := fr.ReadFrame()
	s, ok := f.(*xhttp2.SettingsFrame)
	if err != nil || !ok {
		t.Fatalf("then %v, %v", f, err)
	}
	for id, want := range map[xhttp2.SettingID]uint32{xhttp2.SettingEnablePush: 0, xhttp2.SettingInitialWindowSize: 65535,
		xhttp2.SettingMaxHeaderListSize: 1024} {
		if v, ok := s.Value(id); !ok || v != want {
			t.Errorf("%v is %d", id, v)
		}
	}
	f, err = fr.ReadFrame()
	if w, ok := f.(*xhttp2.WindowUpdateFrame); err != nil || !ok || w.StreamID != 0 || w.Increment != 1<<20-65535 {
		t.Errorf("then %v, %v", f, err)
	}
}

func TestRequestsOnTheWire(t *testing.T) {
	const always = ":scheme=http :authority=shop.test "
	const fixed = " user-agent=seatrial x-run=7"
	for _, c := range []struct {
		r    Request
		want string
	}{
		{get(1), ":method=GET " + always + ":path=/" + fixed},
		{Request{Method: "HEAD", Target: []byte("/a?b=c&d=%20")}, ":method=HEAD " + always + ":path=/a?b=c&d=%20" + fixed},
		{Request{Method: "OPTIONS", Target: []byte("*")}, ":method=OPTIONS " + always + ":path=*" + fixed},
		{Request{Method: "POST", Target: []byte("/")}, ":method=POST " + always + ":path=/" + fixed + " content-length=0"},
		{Request{Method: "PATCH", Target: []byte("/"), Body: []byte("abc")}, ":method=PATCH " + always + ":path=/" + fixed + " content-length=3"},
		{Request{Method: "GET", Target: []byte("/"), Fields: []Field{{"X-Trace", []byte("ü 1")}, {"Authorization", []byte("Bearer s")}, {"TE", []byte("trailers")}}},
			":method=GET " + always + ":path=/" + fixed + " x-trace=ü 1 authorization=Bearer s (secret) te=trailers"},
		{Request{Method: "GET", Target: []byte("/" + strings.Repeat("p", 500)), Fields: []Field{{"x", bytes.Repeat([]byte("v"), 40_000)}}},
			":method=GET " + always + ":path=/" + strings.Repeat("p", 500) + fixed + " x=" + strings.Repeat("v", 40_000)},
	} {
		k := client(t, nil).Conn(nil)
		k.Advance(len(k.Out()))
		id := open(t, k, c.r)
		heads, bodies, ended := wrote(t, written(k))
		if len(heads) != 1 || heads[0] != c.want || bodies[id] != len(c.r.Body) || !ended[id] {
			t.Errorf("%.200s\nwant %.200s\nbody %d, ended %v", heads, c.want, bodies[id], ended[id])
		}
	}
}

// TestSecretsOfAllRequests: what every request carries is marked as well.
func TestSecretsOfAllRequests(t *testing.T) {
	c := client(t, func(c *Config) { c.Fields = []Field{{"Cookie", []byte("a=b")}, {"accept", nil}} }).Conn(nil)
	c.Advance(len(c.Out()))
	open(t, c, get(1))
	heads, _, _ := wrote(t, written(c))
	if want := ":method=GET :scheme=http :authority=shop.test :path=/ cookie=a=b (secret) accept="; heads[0] != want {
		t.Errorf("%s\nwant %s", heads[0], want)
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	c := client(t, nil).Conn(nil)
	before := len(c.Out())
	for _, r := range []Request{
		{Method: "", Target: []byte("/")}, {Method: "G T", Target: []byte("/")}, {Method: "CONNECT", Target: []byte("/")},
		{Method: "GET"}, {Method: "GET", Target: []byte("a")}, {Method: "GET", Target: []byte("*")},
		{Method: "GET", Target: []byte("/a b")}, {Method: "GET", Target: []byte("/\r\n")}, {Method: "GET", Target: []byte("/\xc3")},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"a b", nil}}}, {Method: "GET", Target: []byte("/"), Fields: []Field{{":path", nil}}},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"", nil}}}, {Method: "GET", Target: []byte("/"), Fields: []Field{{"a", []byte("b\r\nc: d")}}},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"Host", []byte("other")}}}, {Method: "GET", Target: []byte("/"), Fields: []Field{{"Connection", nil}}},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"Content-Length", []byte("1")}}}, {Method: "GET", Target: []byte("/"), Fields: []Field{{"te", []byte("gzip")}}},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"Transfer-Encoding", nil}}}, {Method: "GET", Target: []byte("/"), Fields: []Field{{"upgrade", nil}}},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"keep-alive", nil}}}, {Method: "GET", Target: []byte("/"), Fields: []Field{{"proxy-connection", nil}}},
		{Method: "GET", Target: []byte("/"), Fields: []Field{{"Expect", []byte("100-continue")}}},
	} {
		if _, err := c.Open(&r); !errors.Is(err, ErrRequest) || len(c.Out()) != before || c.InFlight() != 0 {
			t.Errorf("%s %q %v: %v", r.Method, r.Target, r.Fields, err)
		}
	}
	if id := open(t, c, get(1)); id != 1 {
		t.Errorf("the first stream is %d", id)
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := NewClient(Config{Scheme: "ftp", Authority: "a b", Fields: []Field{{"Host", []byte("secret")}, {"x", []byte("\n")}}})
	if err == nil {
		t.Fatal("taken")
	}
	for _, part := range []string{"ftp", "a b", "Host", `"x"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %s", err, part)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("%v tells a value", err)
	}
}

// pair is a connection and the server that it talks to, both greeted.
func pair(t *testing.T, k *Client, settings ...xhttp2.Setting) (*Conn, *server) {
	t.Helper()
	c, s := k.Conn(nil), newServer()
	must(s.WriteSettings(settings...))
	receive(t, c, s)
	written(c)
	return c, s
}

// receive feeds what the server wrote.
func receive(t *testing.T, c *Conn, s *server) string {
	t.Helper()
	events, err := c.Feed(s.buf.Bytes(), nil)
	s.buf.Reset()
	if err != nil {
		t.Fatal(err)
	}
	return tell(events)
}

func TestHowManyStreams(t *testing.T) {
	c := client(t, func(c *Config) { c.Streams = 200 }).Conn(nil)
	opens := func() (n int) {
		for ; c.CanOpen(); n++ {
			open(t, c, get(0))
		}
		return n
	}
	if n := opens(); n != earlyStreams || c.Greeted() {
		t.Errorf("%d before the settings of the peer", n)
	}
	s := newServer()
	must(s.WriteSettings(xhttp2.Setting{ID: settingStreams, Val: 3}))
	receive(t, c, s)
	r := get(0)
	if _, err := c.Open(&r); !errors.Is(err, ErrBusy) || c.Draining() || !c.Greeted() {
		t.Errorf("beyond the peer's limit: %v", err)
	}
	must(s.WriteSettings(xhttp2.Setting{ID: settingStreams, Val: 120}))
	receive(t, c, s)
	if n := opens(); n != 20 {
		t.Errorf("%d after the limit was raised", n)
	}
	must(s.WriteSettings(xhttp2.Setting{ID: settingStreams, Val: 1000}))
	receive(t, c, s)
	if n := opens(); n != 80 || c.InFlight() != 200 {
		t.Errorf("%d within our own limit", n)
	}
	must(s.WriteGoAway(399, 0, nil))
	receive(t, c, s)
	if _, err := c.Open(&r); !errors.Is(err, ErrDraining) || !c.Draining() || c.InFlight() != 200 {
		t.Errorf("after GOAWAY: %v", err)
	}
}

func TestPeerWithoutALimitOfStreams(t *testing.T) {
	c, _ := pair(t, client(t, func(c *Config) { c.Streams = 300 }))
	for c.CanOpen() {
		open(t, c, get(0))
	}
	if c.InFlight() != 300 {
		t.Errorf("%d streams", c.InFlight())
	}
}

func TestNumbersOfStreamsRunOut(t *testing.T) {
	c, s := pair(t, client(t, nil))
	c.next = maxStream
	if id := open(t, c, get(7)); id != maxStream {
		t.Fatalf("the last stream is %d", id)
	}
	if c.CanOpen() || !c.Draining() {
		t.Error("another one may be opened")
	}
	s.headers(maxStream, true, ok)
	if got := receive(t, c, s); got != "first 2147483647; headers 2147483647 200; end 2147483647 200 body 0" {
		t.Error(got)
	}
}

// TestBodies holds what is sent to the peer's windows, and to the bound of our own output.
func TestBodies(t *testing.T) {
	c, s := pair(t, client(t, nil), xhttp2.Setting{ID: settingWindow, Val: 20_000})
	post := func(n int) Request { return Request{Method: "POST", Target: []byte("/"), Body: make([]byte, n)} }
	for _, n := range []int{15_000, 50_000, 30_000, 20_000} {
		open(t, c, post(n))
	}
	got := map[uint32]int{}
	ended := map[uint32]bool{}
	step := func(what, want string) {
		t.Helper()
		_, bodies, ends := wrote(t, written(c))
		for id, n := range bodies {
			got[id] += n
			ended[id] = ends[id]
		}
		words := ""
		for id := uint32(1); id <= 7; id += 2 {
			words += fmt.Sprintf("%d %v ", got[id], ended[id])
		}
		if strings.TrimSpace(words) != want {
			t.Errorf("%s: %s\nwant %s", what, words, want)
		}
	}
	step("windows of streams, then of the connection", "15000 true 20000 false 16384 false 14151 false")
	must(s.WriteWindowUpdate(3, 5_000))
	receive(t, c, s)
	step("the connection is shut", "15000 true 20000 false 16384 false 14151 false")
	must(s.WriteWindowUpdate(0, 100_000))
	receive(t, c, s)
	step("it opens", "15000 true 25000 false 20000 false 20000 true")
	must(s.WriteSettings(xhttp2.Setting{ID: settingWindow, Val: 10_000})) // the windows are 10,000 below zero
	must(s.WriteWindowUpdate(5, 10_001))
	receive(t, c, s)
	step("the setting shrinks", "15000 true 25000 false 20001 false 20000 true")
	must(s.WriteSettings(xhttp2.Setting{ID: settingWindow, Val: 19_999}))
	receive(t, c, s)
	step("the setting grows", "15000 true 25000 false 30000 true 20000 true")
	must(s.WriteRSTStream(3, 2))
	must(s.WriteWindowUpdate(3, 50_000))
	if told := receive(t, c, s); told != "reset 3 INTERNAL_ERROR" {
		t.Error(told)
	}
	step("the stream is reset", "15000 true 25000 false 30000 true 20000 true")
}

func TestOutputIsBounded(t *testing.T) {
	c, s := pair(t, client(t, nil), xhttp2.Setting{ID: settingWindow, Val: 1 << 30})
	must(s.WriteWindowUpdate(0, 1<<30))
	receive(t, c, s)
	written(c)
	for range 10 {
		open(t, c, Request{Method: "POST", Target: []byte("/"), Body: make([]byte, 1<<20)})
	}
	total := 0
	for out := c.Out(); len(out) > 0; out = c.Out() {
		if len(out) > maxQueue+maxFrame+2000 {
			t.Fatalf("%d bytes wait", len(out))
		}
		n := min(len(out), 30_000) // a socket that takes a part
		total += n
		c.Advance(n)
	}
	if total < 10<<20 || total > 10<<20+20_000 || cap(c.out) > 4*maxQueue {
		t.Errorf("%d bytes in all, buffer %d", total, cap(c.out))
	}
	r := Request{Method: "GET", Target: []byte("/"), Fields: []Field{{"x", make([]byte, 0)}}}
	r.Fields[0].Value = bytes.Repeat([]byte("v"), 50_000)
	n := 0
	for ; c.CanOpen(); n++ {
		open(t, c, r)
	}
	if len(c.Out()) > maxBacklog+60_000 {
		t.Errorf("%d requests of 50 KB wait for a peer that does not read", n)
	}
	for range 2 * maxBacklog / 17 { // and asks for answers
		s.headers(1, false, ":status: 103")
		must(s.WritePing(false, [8]byte{}))
	}
	_, err := c.Feed(s.buf.Bytes(), nil)
	var broke *ConnError
	if !errors.As(err, &broke) || broke.Code != EnhanceYourCalm {
		t.Errorf("%v", err)
	}
}

// TestRepliesAreBounded: a peer that pays for its questions with data and never reads the answers.
func TestRepliesAreBounded(t *testing.T) {
	c, s := pair(t, client(t, nil))
	open(t, c, get(1))
	s.headers(1, false, ok)
	var err error
	for range 2 * maxBacklog / (17 * 10) * 2 {
		must(s.WriteData(1, false, []byte("x")))
		for range 10 {
			must(s.WritePing(false, [8]byte{}))
		}
		if _, err = c.Feed(s.buf.Bytes(), nil); err != nil {
			break
		}
		s.buf.Reset()
	}
	var broke *ConnError
	if !errors.As(err, &broke) || broke.Code != EnhanceYourCalm || len(c.Out()) > 2*maxBacklog+100 {
		t.Errorf("%v with %d bytes", err, len(c.Out()))
	}
}

// TestWindows: what is read is given back, so that no response stalls.
func TestWindows(t *testing.T) {
	c, s := pair(t, client(t, func(c *Config) { c.Window, c.ConnWindow = 1, 200_000 })) // raised to 65,535
	open(t, c, get(1))
	s.headers(1, false, ok)
	given := map[uint32]int{0: 200_000, 1: 65_535}
	for range 100 {
		must(s.WriteData(1, false, make([]byte, 10_000)))
		given[0] -= 10_000
		given[1] -= 10_000
		receive(t, c, s)
		for _, w := range strings.Split(sent(t, c), "; ") {
			var id uint32
			var n int
			if _, err := fmt.Sscanf(w, "WINDOW %d %d", &id, &n); err == nil {
				given[id] += n
			}
		}
		c.Advance(len(c.Out()))
		if given[0] < 90_000 || given[0] > 200_000 || given[1] < 20_000 || given[1] > 65_535 {
			t.Fatalf("windows %v", given)
		}
	}
	must(s.WriteData(1, true, nil))
	if told := receive(t, c, s); told != "end 1 200 body 1000000" {
		t.Error(told)
	}
}

// TestWindowsToTheByte: what was allowed may be sent at once, and not a byte more.
func TestWindowsToTheByte(t *testing.T) {
	for over := range 2 {
		c, s := pair(t, client(t, func(c *Config) { c.Window, c.ConnWindow = 65_535, 100_000 }))
		open(t, c, get(1))
		s.headers(1, false, ok)
		for _, n := range []int{16384, 16384, 16384, 16383 + over} {
			must(s.WriteData(1, false, make([]byte, n)))
		}
		want := "first 1; headers 1 200"
		if over > 0 {
			want += "; invalid 1: " + ErrWindow.Error()
		}
		if told := receive(t, c, s); told != want {
			t.Errorf("%d over the window of a stream: %s", over, told)
		}
		c, s = pair(t, client(t, func(c *Config) { c.Window, c.ConnWindow = 100_000, 65_535 }))
		open(t, c, get(1))
		s.headers(1, false, ok)
		for _, n := range []int{16384, 16384, 16384, 16383 + over} {
			must(s.WriteData(1, false, make([]byte, n)))
		}
		_, err := c.Feed(s.buf.Bytes(), nil)
		var broke *ConnError
		if errors.As(err, &broke) != (over > 0) || over > 0 && broke.Code != FlowControlError {
			t.Errorf("%d over the window of the connection: %v", over, err)
		}
	}
}

// TestWindowOfAnEndedStream: no window is given back for a response that has ended, but that of the
// connection is, also for what comes after it was cancelled.
func TestWindowOfAnEndedStream(t *testing.T) {
	c, s := pair(t, client(t, func(c *Config) { c.ConnWindow = 65_535 }))
	id := open(t, c, get(1))
	written(c)
	s.headers(id, false, ok)
	must(s.WriteData(id, false, make([]byte, 16384)))
	receive(t, c, s)
	c.Cancel(id)
	c.Cancel(id) // once is enough
	if got := sent(t, c); got != "RST 1 CANCEL" || !c.Idle() {
		t.Errorf("sent %s", got)
	}
	written(c)
	for range 3 {
		must(s.WriteData(id, false, make([]byte, 16384-1)))
	}
	if told := receive(t, c, s); told != "" {
		t.Error(told)
	}
	if got := sent(t, c); got != "WINDOW 0 65533" {
		t.Errorf("sent %s", got)
	}
}

// TestCancelInTheMiddle: the rest of a frame, and a header block that changes the table, are read on.
func TestCancelInTheMiddle(t *testing.T) {
	c, s := pair(t, client(t, nil))
	one, two := open(t, c, get(1)), open(t, c, get(2))
	s.headers(one, false, ok)
	must(s.WriteData(one, false, []byte("0123456789")))
	s.headers(one, true, "x-late: entered into the table")
	s.headers(two, true, ok, "x-late: entered into the table")
	all := bytes.Clone(s.buf.Bytes())
	for cut := range len(all) {
		c, _ := pair(t, client(t, nil))
		open(t, c, get(1))
		open(t, c, get(2))
		events, err := c.Feed(all[:cut], nil)
		if err == nil {
			c.Cancel(one)
			events, err = c.Feed(all[cut:], events)
		}
		var rest []Event
		for _, e := range events {
			if e.Stream == two {
				rest = append(rest, e)
			}
		}
		// A stream that the peer has not ended when it was cancelled may go on.
		if err != nil || tell(rest) != "first 3; headers 3 200; end 3 200 body 0" {
			t.Fatalf("cut at %d: %s, %v", cut, tell(events), err)
		}
	}
}

// TestTableOfThePeer: a peer that wants a smaller table must be told that it is (RFC 7541, 4.2), once.
func TestTableOfThePeer(t *testing.T) {
	c, s := pair(t, client(t, nil), xhttp2.Setting{ID: settingTable, Val: 0})
	dec := hpack.NewDecoder(tableSize, nil)
	dec.SetAllowedMaxDynamicTableSize(0)
	for i := range 3 {
		bad := Request{Method: "GET", Target: []byte("no")}
		if _, err := c.Open(&bad); !errors.Is(err, ErrRequest) {
			t.Fatal(err)
		}
		open(t, c, get(1))
		block := written(c)[headerLen:]
		if (block[0] == 0x20) != (i == 0) {
			t.Errorf("block %d begins with %x", i, block[0])
		}
		if _, err := dec.DecodeFull(block); err != nil {
			t.Error(err)
		}
		must(s.WriteSettings(xhttp2.Setting{ID: settingTable, Val: uint32(100 * i)}))
		receive(t, c, s)
		written(c)
	}
	c, _ = pair(t, client(t, nil), xhttp2.Setting{ID: settingTable, Val: 65536})
	open(t, c, get(1))
	if block := written(c)[headerLen:]; block[0] == 0x20 {
		t.Error("a larger table is none of our business")
	}
}

func TestClose(t *testing.T) {
	c, s := pair(t, client(t, nil))
	open(t, c, get(1))
	open(t, c, get(2))
	written(c)
	open(t, c, get(3))
	c.Advance(len(c.Out()) - 1) // all but a byte of its header block
	s.headers(3, false, ok)
	events, err := c.Feed(s.buf.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	events = c.Close(events[:0])
	if got := tell(events); got != "broken 1; broken 3; refused 5 NO_ERROR" || !c.Idle() || c.CanOpen() {
		t.Errorf("%s, in flight %d", got, c.InFlight())
	}
	if events[0].BytesIn != 0 || events[1].BytesIn == 0 || events[1].Status != 200 || events[1].Tag != 2 {
		t.Errorf("%+v", events)
	}
	if got := c.Close(nil); len(got) != 0 {
		t.Errorf("told twice: %s", tell(got))
	}
}

func TestShutdown(t *testing.T) {
	c, s := pair(t, client(t, nil))
	open(t, c, get(1))
	written(c)
	c.Shutdown()
	c.Shutdown()
	if got := sent(t, c); got != "GOAWAY NO_ERROR" || !c.Draining() {
		t.Errorf("sent %s", got)
	}
	s.headers(1, true, ok)
	if told := receive(t, c, s); told != "first 1; headers 1 200; end 1 200 body 0" {
		t.Error(told)
	}
}

func TestCodesHaveNames(t *testing.T) {
	for c := NoError; c <= HTTP11Required; c++ {
		if c.String() != xhttp2.ErrCode(c).String() {
			t.Errorf("%v is %v", xhttp2.ErrCode(c), c)
		}
	}
	if Code(99).String() != "0x63" {
		t.Errorf("%v", Code(99))
	}
	if err := (&ConnError{FlowControlError, "too much"}).Error(); err != "http2: too much (FLOW_CONTROL_ERROR)" {
		t.Error(err)
	}
}
