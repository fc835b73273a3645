package otlp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// delimit is a delimited field.
func delimit(number int, b ...[]byte) []byte {
	body := bytes.Join(b, nil)
	out := binary.AppendUvarint(nil, uint64(number)<<3|delimited)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...)
}

// pbAttribute is an attribute of a span: of a string, an int, a bool or a float64.
func pbAttribute(key string, value any) []byte {
	var v []byte
	switch x := value.(type) {
	case string:
		v = delimit(1, []byte(x))
	case bool:
		v = []byte{2<<3 | varint, 0}
		if x {
			v[1] = 1
		}
	case int:
		v = binary.AppendUvarint([]byte{3<<3 | varint}, uint64(x))
	case float64:
		v = binary.LittleEndian.AppendUint64([]byte{4<<3 | fixed64}, math.Float64bits(x))
	}
	return delimit(9, delimit(2, v), delimit(1, []byte(key)))
}

// pbSpan is a span field of a ScopeSpans.
func pbSpan(kind int, start, end uint64, attributes ...[]byte) []byte {
	b := delimit(1, make([]byte, traceIDLen))
	b = append(b, delimit(5, []byte("name"))...)
	b = append(b, 6<<3|varint)
	b = binary.AppendUvarint(b, uint64(kind))
	b = binary.LittleEndian.AppendUint64(append(b, 7<<3|fixed64), start)
	b = binary.LittleEndian.AppendUint64(append(b, 8<<3|fixed64), end)
	return delimit(2, append(b, bytes.Join(attributes, nil)...))
}

// pbGet is a server span of a GET of route.
func pbGet(route string) []byte {
	return pbSpan(2, 1700000000000000000, 1700000000000000005, pbAttribute("http.request.method", "GET"), pbAttribute("http.route", route))
}

func pbMessage(spans ...[]byte) []byte {
	resource := delimit(1, delimit(1, delimit(1, []byte("service.name")), delimit(2, delimit(1, []byte("shop")))))
	return delimit(1, resource, delimit(2, delimit(1, delimit(1, []byte("scope"))), bytes.Join(spans, nil)))
}

func withLength(messages ...[]byte) []byte {
	var out []byte
	for _, m := range messages {
		out = binary.BigEndian.AppendUint32(out, uint32(len(m)))
		out = append(out, m...)
	}
	return out
}

func zstded(t testing.TB, b []byte, options ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

const wantGet = "GET /%s  0 1700000000000000000 5"

func gets(routes ...string) []string {
	var out []string
	for _, r := range routes {
		out = append(out, fmt.Sprintf(wantGet, r))
	}
	return out
}

func TestJSONAndProtobufOfOneCaptureGiveTheSameEvents(t *testing.T) {
	all := func(name string) []string {
		s := reading(t, bytes.NewReader(published(t, name)))
		s.span.replay = true
		out := replayed(s)
		if s.Err() != nil {
			t.Fatalf("%s: %v", name, s.Err())
		}
		return out
	}
	want := all("java_agent_filexporter.jsonl")
	if len(want) != 81 {
		t.Fatalf("%d events", len(want))
	}
	for _, name := range []string{"java_agent_reexported_v0165.jsonl", "java_agent_v0165.pb", "java_agent_v0165_legacy.json.zst.bin",
		"java_agent_v0165_legacy.pb.zst.bin", "java_agent_v0165_native.jsonl.zst", "java_agent_v0165_native.pb.zst"} {
		if got := all(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q\nwant %q", name, got, want)
		}
	}
}

// asJSON gives the same span in JSON as pbSpan of the pairs.
func asJSON(kind int, start, end uint64, pairs []any) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		name, text := "stringValue", fmt.Sprintf("%q", pairs[i+1])
		switch v := pairs[i+1].(type) {
		case int:
			name, text = "intValue", fmt.Sprintf("\"%d\"", v)
		case bool:
			name, text = "boolValue", fmt.Sprint(v)
		case float64:
			name, text = "doubleValue", fmt.Sprint(v)
		}
		list = append(list, fmt.Sprintf(`{"key":%q,"value":{%q:%s}}`, pairs[i], name, text))
	}
	return fmt.Sprintf(`{"kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`, kind, start, end, strings.Join(list, ","))
}

func TestAnySpanIsTheSameInBothEncodings(t *testing.T) {
	keys := []string{"http.request.method", "http.method", "http.request.method_original", "http.route", "url.path", "http.target",
		"url.full", "http.url", "http.response.status_code", "http.status_code", "rpc.system", "messaging.system", "faas.trigger",
		"user_agent.original", "http.user_agent", "url.query", "client.address", "net.peer.ip", "other"}
	values := []any{"GET", "post", "_OTHER", "/", "/a/7?q=1#f", "http://h.example/x?y", "seatrial/1.0", "192.0.2.7", "", "500", 200, 0, 404.0, true}
	rapid.Check(t, func(rt *rapid.T) {
		var pb [][]byte
		var js []string
		for range rapid.IntRange(1, 4).Draw(rt, "spans") {
			kind := rapid.SampledFrom([]int{2, 2, 2, 2, 0, 1, 3, 4, 5, 6, 99}).Draw(rt, "kind")
			start := rapid.SampledFrom([]uint64{0, 5, 1700000000000000000, math.MaxInt64, math.MaxUint64}).Draw(rt, "start")
			end := rapid.SampledFrom([]uint64{0, 4, 5, 1700000000000000009}).Draw(rt, "end")
			pairs := []any{"http.method", "GET", "url.path", "/p"}
			var attributes [][]byte
			for range rapid.IntRange(0, 6).Draw(rt, "attributes") {
				pairs = append(pairs, rapid.SampledFrom(keys).Draw(rt, "key"), rapid.SampledFrom(values).Draw(rt, "value"))
			}
			for i := 0; i < len(pairs); i += 2 {
				attributes = append(attributes, pbAttribute(pairs[i].(string), pairs[i+1]))
			}
			pb = append(pb, pbSpan(kind, start, end, attributes...))
			js = append(js, asJSON(kind, start, end, pairs))
		}
		a, b := reading(t, strings.NewReader(documentOf(js...))), reading(t, bytes.NewReader(pbMessage(pb...)))
		a.span.replay, b.span.replay = true, true
		if x, y := replayed(a), replayed(b); !slices.Equal(x, y) {
			rt.Fatalf("JSON %q\nprotobuf %q", x, y)
		}
		if a.Counts() != b.Counts() || fmt.Sprint(a.Skipped().Reasons, a.Skipped().Notes) != fmt.Sprint(b.Skipped().Reasons, b.Skipped().Notes) {
			rt.Fatalf("JSON %+v %+v\nprotobuf %+v %+v", a.Counts(), a.Skipped(), b.Counts(), b.Skipped())
		}
	})
}

// replayed are the events of a source, as comparable text, with what a replay needs.
func replayed(s *Source) []string {
	var out []string
	for s.Scan() {
		e := s.Event()
		out = append(out, fmt.Sprintf("%s %s %s?%s %s %d %d %d", e.Method, e.Route, e.Path, e.Query, e.Client, e.Status, e.UnixNano, int64(e.Duration)))
	}
	return out
}

func TestFramings(t *testing.T) {
	a, b := pbMessage(pbGet("/a")), pbMessage(pbGet("/b"))
	ja, jb := []byte(get("/a")), []byte(get("/b"))
	old := delimit(1, delimit(1000, pbGet("/a"), pbGet("/b")))
	backwards := delimit(1, delimit(3, []byte("https://schema.example")), delimit(2, pbGet("/a"), pbGet("/b")), delimit(1))
	for name, c := range map[string]struct {
		text   []byte
		format string
	}{
		"one message":                {pbMessage(pbGet("/a"), pbGet("/b")), "otlp-proto"},
		"messages behind each other": {slices.Concat(a, b), "otlp-proto"},
		"old scope spans":            {old, "otlp-proto"},
		"fields backwards":           {backwards, "otlp-proto"},
		"lengths":                    {withLength(a, b), "otlp-proto length-prefixed"},
		"lengths and empty messages": {withLength(a, nil, nil, b, nil), "otlp-proto length-prefixed"},
		"padding before lengths":     {append(make([]byte, 4097), withLength(a, b)...), "otlp-proto length-prefixed"},
		"padding among lengths":      {slices.Concat(withLength(a), make([]byte, 4097), withLength(b), make([]byte, 11)), "otlp-proto length-prefixed"},
		"lengths before JSON":        {withLength(ja, jb), "otlp-json length-prefixed"},
		"lengths before zstd":        {withLength(zstded(t, a), zstded(t, b)), "otlp-proto length-prefixed zstd"},
		"JSON in zstd":               {withLength(zstded(t, ja), zstded(t, jb)), "otlp-json length-prefixed zstd"},
		"JSON lines in zstd":         {withLength(zstded(t, slices.Concat(ja, []byte("\n"), jb, []byte("\n")))), "otlp-json length-prefixed zstd"},
		"zstd over all":              {zstded(t, withLength(a, b)), "otlp-proto length-prefixed"},
		"zstd over one":              {zstded(t, slices.Concat(a, b)), "otlp-proto"},
		"all sorts":                  {withLength(a, jb), "otlp-proto length-prefixed,otlp-json length-prefixed"},
	} {
		for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
			s := reading(t, reader(bytes.NewReader(c.text)))
			got := events(s)
			if k := s.Skipped(); !slices.Equal(got, gets("a", "b")) || s.Err() != nil || k.Unparsable != 0 || k.Format != c.format {
				t.Errorf("%s: %q, %+v, %v", name, got, k, s.Err())
			}
		}
		if !strings.HasPrefix(name, "zstd over") && !Binary(c.text[:min(len(c.text), 4096)]) && !strings.HasPrefix(name, "padding before") {
			t.Errorf("%s is not known to be binary", name)
		}
	}
	for _, text := range []string{"", get("/a"), "\n\n" + get("/a"), "\n{\n\n\t\"resourceSpans\":[]}", "192.0.2.1 - - [x] \"GET /\" 200 1", "\x00\x00\x00\x00" + get("/a")} {
		if Binary([]byte(text)) {
			t.Errorf("%.20q is taken for binary", text)
		}
	}
}

// Damage costs the message it is in, and no other, whatever the length says.
func TestDamagedMessages(t *testing.T) {
	a, b, c := pbMessage(pbGet("/a")), pbMessage(pbGet("/bb"), pbGet("/bb")), pbMessage(pbGet("/c"))
	z := func(m []byte) []byte { return zstded(t, m) }
	length := func(m []byte, n uint32) []byte {
		out := withLength(m)
		binary.BigEndian.PutUint32(out, n)
		return out
	}
	spoiled := func(m []byte, at int) []byte {
		m = bytes.Clone(m)
		m[at] ^= 0xff
		return m
	}
	for name, text := range map[string][]byte{
		"length too large":        slices.Concat(withLength(a), length(b, uint32(len(b))+100), withLength(c)),
		"length far too large":    slices.Concat(withLength(a), length(b, 0xfffffff0), withLength(c)),
		"length too small":        slices.Concat(withLength(a), length(b, 20), withLength(c)),
		"length of one":           slices.Concat(withLength(a), length(b, 1), withLength(c)),
		"spoiled":                 withLength(a, spoiled(b, bytes.LastIndex(b, []byte("/bb"))-1), c),
		"spoiled at its start":    withLength(a, spoiled(b, 0), c),
		"spoiled in the middle":   withLength(a, spoiled(b, len(b)/2+2), c),
		"nothing but bytes":       withLength(a, bytes.Repeat([]byte{0xff}, 1000), c),
		"spoiled JSON":            withLength([]byte(get("/a")), []byte(get("/bb")[:40]), []byte(get("/c"))),
		"JSON length too large":   slices.Concat(withLength([]byte(get("/a"))), length([]byte(get("/bb")[:50]), 500), withLength([]byte(get("/c")))),
		"spoiled zstd":            withLength(z(a), spoiled(z(b), 12), z(c)),
		"zstd of nonsense":        withLength(z(a), z([]byte("\xff\xff\xff")), z(c)),
		"zstd length too small":   slices.Concat(withLength(z(a)), length(z(b), 20), withLength(z(c))),
		"zstd length too large":   slices.Concat(withLength(z(a)), length(z(b), 0x00ffffff), withLength(z(c))),
		"cut in a message":        slices.Concat(withLength(a, c), withLength(b)[:len(b)-3]),
		"cut in a length":         slices.Concat(withLength(a, c), []byte{0, 0, 1}),
		"cut behind a length":     slices.Concat(withLength(a, c), []byte{0, 0, 1, 7}),
		"cut at a field's border": slices.Concat(withLength(a, c), length(pbMessage(), 100)),
		"cut in zstd":             slices.Concat(withLength(z(a), z(c)), withLength(z(b))[:len(z(b))-3]),
		"starts within a message": slices.Concat(withLength(b)[9:], withLength(a, c)),
	} {
		for _, reader := range []func(io.Reader) io.Reader{nil, iotest.OneByteReader} {
			var r io.Reader = bytes.NewReader(text)
			if reader != nil {
				r = reader(r)
			}
			s := reading(t, r)
			got := events(s)
			k := s.Skipped()
			if !slices.Equal(got, gets("a", "c")) || s.Err() != nil || k.Unparsable != 1 || k.Parsed != 2 || len(k.First) != 1 {
				t.Errorf("%s: %q, %+v, %v", name, got, k, s.Err())
			}
		}
	}
}

func TestCutMessageAlone(t *testing.T) {
	whole := pbMessage(pbGet("/a"), pbGet("/b"))
	for size := 8; size < len(whole); size++ {
		s := reading(t, bytes.NewReader(whole[:size]))
		if got := events(s); len(got) != 0 || s.Err() == nil || s.Skipped().Unparsable > 1 {
			t.Fatalf("cut at %d: %q, %+v, %v", size, got, s.Skipped(), s.Err())
		}
	}
}

func TestZstdWindowsAreBounded(t *testing.T) {
	var wide bytes.Buffer
	w, err := zstd.NewWriter(&wide, zstd.WithWindowSize(64<<20), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(pbMessage(pbGet("/bb"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil { // without a known size, the window is what the frame declares
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a := zstded(t, pbMessage(pbGet("/a")))
	s := reading(t, bytes.NewReader(withLength(a, wide.Bytes(), a)))
	got := events(s)
	if k := s.Skipped(); !slices.Equal(got, gets("a", "a")) || k.Unparsable != 1 || !strings.Contains(k.First[0].Reason, "window") || k.First[0].Line != 2 {
		t.Errorf("%q, %+v, %v", got, k, s.Err())
	}
}

func TestOtherSignalsInProtobuf(t *testing.T) {
	logTime := binary.LittleEndian.AppendUint64([]byte{1<<3 | fixed64}, 1700000000000000000)
	records := delimit(1, delimit(1), delimit(2, delimit(2, logTime, delimit(5, delimit(1, []byte("hi"))))))
	metric := delimit(1, delimit(1), delimit(2, delimit(2, delimit(1, []byte("http.server.request.duration")), delimit(9, []byte("")))))
	s := reading(t, bytes.NewReader(withLength(records, metric, pbMessage(pbGet("/a")))))
	got := events(s)
	if k := s.Skipped(); !slices.Equal(got, gets("a")) || k.Notes["document of logs"] != 1 || k.Notes["document of metrics"] != 1 ||
		s.Counts().Spanless != 2 || s.Counts().Spans != 1 {
		t.Errorf("%q, %+v, %+v", got, k, s.Counts())
	}
	s = reading(t, bytes.NewReader(withLength(records)))
	if got := events(s); len(got) != 0 || s.Err() == nil || !strings.Contains(s.Err().Error(), "no traces") {
		t.Errorf("%q, %v", got, s.Err())
	}
}

func TestLongFieldsOfAMessage(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	span := pbSpan(2, 5, 7, pbAttribute("http.request.method", "GET"), pbAttribute("http.route", "/r"), pbAttribute("url.full", long),
		pbAttribute("url.path", "/kept"), pbAttribute("url.path", long), delimit(5, []byte(long)), delimit(11, delimit(2, []byte(long))))
	s := reading(t, bytes.NewReader(pbMessage(span, pbGet("/b"))))
	got := events(s)
	if want := append([]string{"GET /r  0 5 2"}, gets("b")...); !slices.Equal(got, want) || s.Err() != nil {
		t.Errorf("%.200q, %v", got, s.Err())
	}
	if len(s.in.buf) > 2*readBuffer {
		t.Errorf("the buffer grew to %d bytes", len(s.in.buf))
	}
}

// repeated gives one text over and over.
type repeated struct {
	text []byte
	at   int
	left int // how many times more
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.left > 0 {
		c := copy(p[n:], r.text[r.at:])
		n += c
		if r.at += c; r.at == len(r.text) {
			r.at, r.left = 0, r.left-1
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Memory and allocations depend on nothing that grows with the input.
func TestMemoryIsFlatAndSpansAllocateNothing(t *testing.T) {
	for _, name := range []string{"node_express_semconv_old.jsonl", "java_agent_v0165.pb", "java_agent_v0165_legacy.pb.zst.bin"} {
		text := published(t, name)
		measureOnce := func(times int) (mallocs, held uint64, spans int64) {
			s := reading(t, &repeated{text: text, left: times})
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for n := 0; s.Scan(); n++ {
				if n%2000 == 1999 {
					runtime.ReadMemStats(&now)
					held = max(held, now.HeapInuse-min(now.HeapInuse, before.HeapInuse))
				}
			}
			runtime.ReadMemStats(&now)
			if s.Err() != nil {
				t.Fatalf("%s: %v", name, s.Err())
			}
			return now.Mallocs - before.Mallocs, held, s.Counts().Spans
		}
		few, _, some := measureOnce(20)
		many, held, all := measureOnce(60)
		// a message that is its own zstd frame may cost its decoder a few allocations
		messages := uint64(0)
		if strings.Contains(name, "zst") {
			messages = 40 * 8 * 4
		}
		if extra := many - min(many, few); extra > messages+200 || all < some*2 {
			t.Errorf("%s: %d allocations for %d spans, %d for %d", name, few, some, many, all)
		}
		if held > 16<<20 {
			t.Errorf("%s: %d bytes of heap in use", name, held)
		}
	}
}

func FuzzProtobuf(f *testing.F) {
	f.Add(pbMessage(pbGet("/a"), pbSpan(3, 1, 2), pbSpan(99, 0, 0, pbAttribute("http.method", 7))))
	f.Add(slices.Concat([]byte{0x0a, 0x00, 0x12, 0x01, 0x00}, pbMessage(pbGet("/é?x=1"))))
	f.Add(delimit(1, delimit(1000, pbGet("/a")), delimit(2, pbGet("/b"))))
	f.Fuzz(func(t *testing.T, text []byte) { scanBothWays(t, withLength(text), text) })
}

func FuzzFraming(f *testing.F) {
	a := pbMessage(pbGet("/a"))
	f.Add(withLength(a, a))
	f.Add(a)
	f.Add(withLength(zstded(f, a), zstded(f, []byte(get("/b")))))
	f.Add(slices.Concat(make([]byte, 9), withLength(a)[:30], withLength([]byte(get("/c")), a)))
	f.Add([]byte("\n{\n\n\t\"resourceSpans\":[]}"))
	f.Fuzz(func(t *testing.T, text []byte) { scanBothWays(t, text) })
}

// scanBothWays reads each text at once and byte by byte, which must give the same.
func scanBothWays(t *testing.T, texts ...[]byte) {
	for _, text := range texts {
		whole, slow := reading(t, bytes.NewReader(text)), reading(t, iotest.OneByteReader(bytes.NewReader(text)))
		a, b := events(whole), events(slow)
		c := whole.Counts()
		if !slices.Equal(a, b) || slow.Counts() != c || (slow.Err() == nil) != (whole.Err() == nil) {
			t.Fatalf("byte by byte %q %+v (%v), at once %q %+v (%v)", b, slow.Counts(), slow.Err(), a, c, whole.Err())
		}
		if int64(len(a)) != c.HTTPServer-c.Routeless-c.Own || c.ByKind.Server != c.HTTPServer+c.NotHTTP {
			t.Fatalf("%d events, %+v", len(a), c)
		}
	}
}

func BenchmarkProtobuf(b *testing.B) {
	for _, name := range []string{"java_agent_v0165.pb", "java_agent_v0165_legacy.pb.zst.bin"} {
		text := published(b, name)
		plain := len(published(b, "java_agent_v0165.pb"))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(plain))
			b.ReportAllocs()
			for b.Loop() {
				s := reading(b, bytes.NewReader(text))
				for s.Scan() {
				}
				if s.Err() != nil {
					b.Fatal(s.Err())
				}
			}
		})
	}
}
