package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"seatrial/fault"
)

// spanOf is a server span with the given members behind its kind.
func spanOf(members string) string { return `{"kind":2,` + members + `}` }

// attributesOf is a list of string attributes.
func attributesOf(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, pairs[i], pairs[i+1]))
	}
	return `"attributes":[` + strings.Join(list, ",") + `]`
}

func documentOf(spans ...string) string {
	return `{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"t"},"spans":[` + strings.Join(spans, ",") + `]}]}]}`
}

// get is a document with one GET of route.
func get(route string) string {
	return documentOf(spanOf(`"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000000000005",` +
		attributesOf("http.request.method", "GET", "http.route", route)))
}

// events are the events of a source, as comparable text.
func events(s *Source) []string {
	var out []string
	for s.Scan() {
		e := s.Event()
		out = append(out, fmt.Sprintf("%s %s %s %d %d %d", e.Method, e.Route, e.Path, e.Status, e.UnixNano, int64(e.Duration)))
	}
	return out
}

func TestSpans(t *testing.T) {
	for members, want := range map[string]string{
		attributesOf("http.method", "GET", "http.target", "/a/b?c#d"):                                                                                       "GET  /a/b 0 0 -1",
		attributesOf("http.method", "GET", "http.url", "https://h.example?x"):                                                                               "GET  / 0 0 -1",
		attributesOf("http.method", "GET", "http.route", "/r", "http.url", "http://h/a", "url.path", "/p"):                                                  "GET /r /p 0 0 -1",
		attributesOf("http.method", "GET", "url.full", "http://h/a", "http.target", "/t"):                                                                   "GET  /t 0 0 -1",
		attributesOf("http.request.method", "", "http.method", "put", "http.route", "/r"):                                                                   "PUT /r  0 0 -1",
		attributesOf("http.method", "GET", "http.route", "/old", "http.route", "/new"):                                                                      "GET /new  0 0 -1",
		attributesOf("http.request.method", "_OTHER", "http.request.method_original", "PURGE", "http.route", "/"):                                           "PURGE /  0 0 -1",
		attributesOf("http.method", "GET", "http.route", "/r", "http.status_code", "404"):                                                                   "GET /r  404 0 -1",
		attributesOf("http.request.method", "_OTHER", "http.route", "/"):                                                                                    "no usable method",
		attributesOf("http.method", "GET / HTTP/1.1", "http.route", "/"):                                                                                    "no usable method",
		attributesOf("http.method", "GET"):                                                                                                                  "no route and no path",
		attributesOf("http.method", "GET", "http.route", "/a\nHost: x"):                                                                                     "control character in the path",
		attributesOf("http.method", "POST", "http.route", "/r", "rpc.system", "grpc"):                                                                       "not HTTP (rpc)",
		attributesOf("messaging.system", "kafka"):                                                                                                           "not HTTP (messaging)",
		attributesOf("faas.trigger", "timer"):                                                                                                               "not HTTP (faas)",
		attributesOf("name", "x"):                                                                                                                           "not HTTP",
		`"attributes":[{"value":{"stringValue":"GET"},"key":"http.method"},{"value":{"stringValue":"/r"},"key":"http.route"}]`:                              "GET /r  0 0 -1",
		`"attributes":[{"key":"http.method","value":{"string_value":"GET"}},{"key":"http.route","value":{"stringValue":"\/r\u002fs\n"}}]`:                   "control character in the path",
		`"attributes":[{"k\u0065y":"http.method","value":{"stringValue":"G\u0045T"}},{"key":"http.route","value":{"stringValue":"\/r\u00e9\ud83d\ude00"}}]`: "GET /ré😀  0 0 -1",
		`"attributes":[{"key":"http.method","value":{"stringValue":"GET"}},{"key":"http.route","value":{"stringValue":"/r"}},{"key":"http.response.status_code","value":{"doubleValue":503.0}}]`: "GET /r  503 0 -1",
		`"start_time_unix_nano":1700000000000000001,"end_time_unix_nano":1.7000000000000000e18,` + attributesOf("http.method", "GET", "http.route", "/r"):                                        "GET /r  0 1700000000000000001 -1",
		`"startTimeUnixNano":"9223372036854775808","endTimeUnixNano":-5,` + attributesOf("http.method", "GET", "http.route", "/r"):                                                               "GET /r  0 0 -1",
		`"startTimeUnixNano":{"low":-5,"high":0},"endTimeUnixNano":{"high":1,"low":1,"unsigned":true},` + attributesOf("http.method", "GET", "http.route", "/r"):                                 "GET /r  0 4294967291 6",
		`"startTimeUnixNano":{"low":"x"},"endTimeUnixNano":[],"events":[{"a":[[],{},1.5e3,null,true]}],` + attributesOf("http.method", "GET", "http.route", "/r"):                                "GET /r  0 0 -1",
		`"attributes":null`:           "not HTTP",
		`"kind":{"a":1},"links":null`: "unknown kind",
		`"kind":null`:                 "unspecified kind",
	} {
		s := reading(t, strings.NewReader(documentOf(spanOf(members))))
		got := strings.Join(events(s), "; ")
		for name, n := range s.Skipped().Reasons {
			got += strings.Repeat(name, int(n))
		}
		if got != want || s.Err() != nil || s.Skipped().Parsed != 1 {
			t.Errorf("%s\ngives %q, want %q (%v, %+v)", members, got, want, s.Err(), s.Skipped())
		}
	}
}

func TestDamageIsOneLine(t *testing.T) {
	good := get("/g")
	for name, c := range map[string]struct {
		bad  string
		kept int // of what stands in the bad line itself
	}{
		"garbage":           {"garbage", 0},
		"scalar":            {"12", 0},
		"cut in a key":      {good[:9], 0},
		"cut in a list":     {good[:18], 0},
		"cut after a comma": {`{"resourceSpans":[{"resource":{},`, 0},
		"cut in a span":     {good[:len(good)-20], 0},
		"cut at its end":    {good[:len(good)-1], 0},
		"comma at the end":  {strings.Replace(good, `]}]}]}`, `,]}]}]}`, 1), 0},
		"no colon":          {`{"a" 1}`, 0},
		"no comma":          {`{"a":1 "b":2}`, 0},
		"bad number":        {`{"a":01}`, 0},
		"bad literal":       {`{"a":nil}`, 0},
		"bad escape":        {`{"a":"\x"}`, 0},
		"control character": {"{\"a\":\"\x01\"}", 0},
		"too deep":          {strings.Repeat("[", 1000) + strings.Repeat("]", 1000), 0},
		"too deep inside":   {`{"a":` + strings.Repeat(`{"b":`, 1000), 0},
		"something behind":  {good + " garbage", 1},
		"list of scalars":   {"[1]", 0},
	} {
		for _, reader := range []func(io.Reader) io.Reader{nil, iotest.OneByteReader} {
			var r io.Reader = strings.NewReader(good + "\n" + c.bad + "\n" + good + "\n\n" + good + "\n" + c.bad)
			if reader != nil {
				r = reader(r)
			}
			s := reading(t, r)
			got := events(s)
			k := s.Skipped()
			if len(got) != 3+2*c.kept || k.Unparsable != 2 || s.Err() != nil || len(k.First) != 2 || k.First[0].Line != 2 || k.First[1].Line != 6 {
				t.Errorf("%s: %d events, %+v, %v", name, len(got), k, s.Err())
			}
		}
	}
}

func TestShapesOfAFile(t *testing.T) {
	a, b := get("/a"), get("/b")
	pretty := strings.NewReplacer("{", "{\n  ", "[", "[\n", ",", ",\r\n\t", "}", "\n}").Replace(a)
	for name, text := range map[string]string{
		"lines":                      a + "\n" + b,
		"behind each other":          a + b,
		"pretty":                     pretty + "\n" + pretty,
		"padded":                     strings.Repeat("\x00", 4096) + a + "\n" + strings.Repeat("\x00", 3) + b + "\x00\x00",
		"byte order mark":            "\xef\xbb\xbf" + a + b,
		"a list":                     "[" + a + ",\n" + b + "]",
		"a list of lists":            "[[" + a + "],[],\n[" + b + "]]",
		"resource at the top":        strings.TrimSuffix(strings.TrimPrefix(a, `{"resourceSpans":[`), "]}") + b,
		"null list and other things": `{"x":[1,{"y":null}],"resourceSpans":null,"batches":[` + strings.TrimPrefix(a, `{"resourceSpans":[`) + b,
	} {
		for _, reader := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
			s := reading(t, reader(strings.NewReader(text)))
			if got := events(s); len(got) != 2 || s.Err() != nil || s.Skipped().Unparsable != 0 {
				t.Errorf("%s: %q, %+v, %v", name, got, s.Skipped(), s.Err())
			}
		}
	}
}

func TestOldAndNewSpellingOfOneListCountOnce(t *testing.T) {
	list := `[{"spans":[` + spanOf(attributesOf("http.method", "GET", "http.route", "/r")) + `]}]`
	s := reading(t, strings.NewReader(`{"resourceSpans":[{"scopeSpans":`+list+`,"instrumentationLibrarySpans":`+list+`}]}`))
	if got := events(s); len(got) != 1 || s.Counts().Spans != 1 {
		t.Errorf("%q", got)
	}
}

func TestBinaryThatIsNotRead(t *testing.T) {
	for _, text := range []string{"\x0a\x03\x0a\x02\x12\x00", "\x7fELF\x02\x01\x01", "PAR1\x15\x04\x15\x10"} {
		s := reading(t, strings.NewReader(text))
		if got := events(s); len(got) > 0 {
			t.Fatalf("%q gives %q", text, got)
		}
		if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF002 || !strings.Contains(e.Message, "binary format") {
			t.Errorf("%q: %v", text, s.Err())
		}
	}
}

func TestNothingParsed(t *testing.T) {
	for text, word := range map[string]string{"": "holds no document", "\n\x00 \n": "holds no document", "a\nb\n": "JSON Lines"} {
		s := reading(t, strings.NewReader(text))
		if got := events(s); len(got) > 0 {
			t.Fatalf("%q", got)
		}
		if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF002 || !strings.Contains(e.Message, word) {
			t.Errorf("%q: %v", text, s.Err())
		}
	}
}

func TestReadErrorIsTold(t *testing.T) {
	text := get("/a") + "\n" + get("/b")[:50]
	s := reading(t, io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("the disk is gone"))))
	got := events(s)
	if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF001 || !strings.Contains(e.Message, "the disk is gone") || len(got) != 1 {
		t.Errorf("%q, %v", got, s.Err())
	}
}

// huge is one document of n spans, made as it is read.
type huge struct {
	spans   int
	pending []byte
	state   int
}

func (h *huge) Read(p []byte) (int, error) {
	for len(h.pending) == 0 {
		one := spanOf(`"pad":"` + strings.Repeat("x", 900) + `",` + attributesOf("http.method", "GET", "http.route", "/r"))
		switch {
		case h.state == 0:
			h.pending = []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[` + one)
		case h.state < h.spans:
			h.pending = []byte("," + one)
		case h.state == h.spans:
			h.pending = []byte(`]}]}]}`)
		default:
			return 0, io.EOF
		}
		h.state++
	}
	n := copy(p, h.pending)
	h.pending = h.pending[n:]
	return n, nil
}

func TestOneHugeDocumentIsNotHeld(t *testing.T) {
	const spans = 40_000
	s := reading(t, &huge{spans: spans})
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	n := 0
	for ; s.Scan(); n++ {
		if n%10_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(now.HeapAlloc, before.HeapAlloc))
		}
	}
	if n != spans || s.Err() != nil || s.Counts().Documents != 1 || s.Counts().HTTPServer != spans {
		t.Errorf("%d events, %+v, %v", n, s.Counts(), s.Err())
	}
	if most > 16<<20 {
		t.Errorf("%d bytes are held of a document of 40 MB", most)
	}
}

func TestDamageBehindWhatWasGivenOut(t *testing.T) {
	s := reading(t, io.MultiReader(io.LimitReader(&huge{spans: 1 << 30}, 30<<20), strings.NewReader("\n"+get("/a"))))
	got := events(s)
	k := s.Skipped()
	if len(got) < maxHeld || got[len(got)-1] != "GET /a  0 1700000000000000000 5" || k.Unparsable != 1 || k.Parsed != 1 ||
		k.Notes["damaged document of which the first spans were taken"] != 1 || s.Counts().HTTPServer != int64(len(got)) {
		t.Errorf("%d events, %+v, %+v", len(got), k, s.Counts())
	}
}

func TestLongTextsArePassedOver(t *testing.T) {
	long := strings.Repeat(`x\n`, 2<<20)
	members := `"name":"` + long + `",` + attributesOf("http.method", "GET", "http.route", "/r")
	url := `{"key":"url.full","value":{"stringValue":"` + long + `"}}`
	s := reading(t, strings.NewReader(documentOf(spanOf(strings.Replace(members, `[`, `[`+url+`,`, 1)))))
	if got := events(s); !slices.Equal(got, []string{"GET /r  0 0 -1"}) || s.Err() != nil {
		t.Errorf("%.200q, %v", got, s.Err())
	}
	if len(s.in.buf) > 4*maxString {
		t.Errorf("the buffer grew to %d bytes", len(s.in.buf))
	}
}

// pieces are lines of the published cases, and some that are damaged.
func pieces(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, number := range []string{"10", "11", "12", "13"} {
		text, err := os.ReadFile(casePath(t, number, "traces.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return append(all, "", "garbage", `{"resourceSpans":[`, `{"resourceLogs":[]}`, get("/a")+get("/b"), get("/c")[:100])
}

func TestSplittingAFileChangesNothing(t *testing.T) {
	all := pieces(t)
	dir := t.TempDir()
	write := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(all), 1, 12).Draw(rt, "lines")
		cut := rapid.IntRange(0, len(lines)).Draw(rt, "cut")
		whole := openFiles(t, write("whole", lines))
		parts := openFiles(t, write("a", lines[:cut]), write("b", lines[cut:]))
		if a, b := events(whole), events(parts); !slices.Equal(a, b) {
			rt.Fatalf("whole %q\nin parts %q", a, b)
		}
		if a, b := whole.Counts(), parts.Counts(); a != b {
			rt.Fatalf("whole %+v\nin parts %+v", a, b)
		}
		if a, b := whole.Skipped(), parts.Skipped(); !reflect.DeepEqual(a.Reasons, b.Reasons) || !reflect.DeepEqual(a.Notes, b.Notes) {
			rt.Fatalf("whole %+v\nin parts %+v", a, b)
		}
	})
}

func FuzzScan(f *testing.F) {
	for _, p := range pieces(f) {
		f.Add([]byte(p))
	}
	f.Add([]byte("\x00\x00\x00\x00" + get("/a") + "\n[" + get("/b") + "]"))
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"\u0032","startTimeUnixNano":{"low":1,"high":-1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole := reading(t, bytes.NewReader(text))
		var n int64
		for ; whole.Scan(); n++ {
			e := whole.Event()
			if len(e.Method) == 0 || len(e.Path)+len(e.Route) == 0 || bytes.ContainsAny(e.Path, "?#\r\n\x00") || e.UnixNano < 0 ||
				e.Duration < -1 || e.Duration > math.MaxInt64-1 || e.Status > 999 {
				t.Fatalf("event %+v", e)
			}
		}
		c := whole.Counts()
		if n != c.HTTPServer-c.Routeless-c.Own || c.ByKind.Server != c.HTTPServer+c.NotHTTP {
			t.Fatalf("%d events, %+v", n, c)
		}
		slow := reading(t, iotest.OneByteReader(bytes.NewReader(text)))
		for slow.Scan() {
		}
		if slow.Counts() != c || (slow.Err() == nil) != (whole.Err() == nil) {
			t.Fatalf("byte by byte %+v (%v), at once %+v (%v)", slow.Counts(), slow.Err(), c, whole.Err())
		}
	})
}

func TestAllocationsDoNotGrowWithSpans(t *testing.T) {
	text := published(t, "node_express_semconv_old.jsonl")
	r := bytes.NewReader(nil)
	allocs := testing.AllocsPerRun(3, func() {
		r.Reset(text)
		s := reading(t, r)
		for s.Scan() {
		}
	})
	if allocs > 100 { // of 4,754 spans
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkScan(b *testing.B) {
	for _, name := range []string{"node_express_semconv_old.jsonl", "java_agent_filexporter.jsonl"} {
		text := published(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
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

// JSON that is no trace export is refused as such: a profile of nothing is not what was asked for.
func TestForeignJSONIsRefused(t *testing.T) {
	for text, word := range map[string]string{
		`{"level":"info","request":{"uri":"/a"}}` + "\n" + `{"level":"info"}`: "document without spans: 2",
		`{"resourceLogs":[]}` + "\nx\n" + `{"resourceMetrics":[]}`:            "document of metrics: 1",
	} {
		s := reading(t, strings.NewReader(text))
		if got := events(s); len(got) > 0 {
			t.Fatalf("%q", got)
		}
		e, ok := fault.As(s.Err())
		if !ok || e.Code != fault.TRF002 || !strings.Contains(e.Message, "no traces") || !strings.Contains(e.Detail, word) {
			t.Errorf("%q: %+v", text, s.Err())
		}
	}
	s := reading(t, strings.NewReader(`{"resourceMetrics":[]}{"resourceSpans":[{"scopeSpans":[]}]}`))
	if got := events(s); len(got) > 0 || s.Err() != nil {
		t.Errorf("an export without spans gives %q, %v", got, s.Err())
	}
}
