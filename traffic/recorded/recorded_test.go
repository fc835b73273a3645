package recorded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"seatrial/traffic"
	"seatrial/traffic/input"
)

type result struct {
	requests []Request
	skips    *traffic.Skips
	err      error
}

func readAll(t interface{ Fatal(...any) }, set *input.Set, format string) result {
	src, err := Open(set, format)
	if err != nil {
		return result{err: err, skips: &traffic.Skips{}}
	}
	var r result
	for src.Scan() {
		q := *src.Request()
		q.Method, q.URL, q.Body = bytes.Clone(q.Method), bytes.Clone(q.URL), bytes.Clone(q.Body)
		q.Client, q.Header = bytes.Clone(q.Client), append([]Field(nil), q.Header...)
		r.requests = append(r.requests, q)
	}
	r.skips, r.err = src.Skipped(), src.Err()
	return r
}

func readFile(t *testing.T, name string) result {
	t.Helper()
	set, err := input.Open([]string{filepath.Join("testdata", name)}, nil, ".")
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, set, "")
}

func readText(t interface{ Fatal(...any) }, text, format string) result {
	set, err := input.Open([]string{"-"}, strings.NewReader(text), ".")
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, set, format)
}

func TestPublishedFilesAgreeWithTruth(t *testing.T) {
	for _, c := range []struct {
		file, format     string
		requests, unfit  int
		refused, reasons string
	}{
		{"ripley.jsonl", "ripley", 5, 0, "[6 no timestamp] [8 not JSON]", ""},
		{"linkerd.jsonl", "linkerd", 2, 0, "", ""},
		{"vegeta.jsonl", "vegeta", 2, 0, "[3 body is not base64]", ""},
		{"vegeta.targets", "vegeta", 4, 0, "", ""},
		{"goreplay_v2_capture.gor", "goreplay", 10, 10, "", "a response"},
		{"case15.gor", "goreplay", 2, 1, "[25 no request line]", "a response"},
		{"har_form.har", "har", 3, 0, "", ""},
		{"har_full.har", "har", 8, 0, "", ""},
		{"har_issue58.har", "har", 2, 0, "", ""},
		{"har_multipart.har", "har", 5, 0, "", ""},
		{"har_postdataconflict.har", "har", 1, 0, "", ""},
		{"har_pseudo_headers.har", "har", 1, 0, "", ""},
		{"newman_folders_v2.json", "postman", 6, 0, "", ""},
		{"newman_sample_v1.json", "postman", 3, 0, "", ""},
		{"newman_sample_v2.json", "postman", 3, 0, "", ""},
		{"p2k6_httpbin_v2.json", "postman", 4, 0, "", ""},
		{"p2k6_urlencoded_v2.json", "postman", 1, 0, "", ""},
		{"perfcascade_redirect_loop.har", "har", 11, 0, "", ""},
	} {
		r := readFile(t, c.file)
		var refused []string
		for _, f := range r.skips.First {
			refused = append(refused, fmt.Sprintf("[%d %s]", f.Line, f.Reason))
		}
		if r.err != nil || len(r.requests) != c.requests || r.skips.Format != c.format || strings.Join(refused, " ") != c.refused {
			t.Errorf("%s: %d requests as %s, refused %v, %v", c.file, len(r.requests), r.skips.Format, refused, r.err)
		}
		if c.reasons != "" && r.skips.Reasons[c.reasons] != int64(c.unfit) {
			t.Errorf("%s: %v", c.file, r.skips.Reasons)
		}
	}
	if r := readFile(t, "k6_script.js"); r.err == nil || !strings.Contains(r.err.Error(), "k6 script") {
		t.Errorf("a program: %v", r.err)
	}
}

func TestBodiesAndHeaders(t *testing.T) {
	gor := readFile(t, "case15.gor").requests
	if len(gor) != 2 || string(gor[1].Body) != "a=1&b=2" || string(gor[0].URL) != "/b?x=a%2520b" || gor[0].UnixNano != 1700000000200000000 {
		t.Fatalf("%+v", gor)
	}
	if v, ok := gor[1].value("transfer-encoding"); ok {
		t.Errorf("framing %s is left", v)
	}
	v := readFile(t, "vegeta.targets").requests
	if want := []Field{{"Content-Type", "application/json"}, {"X-Two", "a"}, {"X-Two", "b"}}; !reflect.DeepEqual(v[1].Header, want) || string(bytes.TrimSpace(v[1].Body)) != `{"sku":"A-1"}` {
		t.Errorf("%+v", v[1])
	}
	h := readFile(t, "har_postdataconflict.har").requests
	if string(h[0].Body) != "foo0=bar0&foo1=bar1" {
		t.Errorf("%s", h[0].Body)
	}
	h = readFile(t, "har_form.har").requests
	if string(h[0].Body) != "field%5B1%5D=value%5B1%5D&field%5B2%5D=value%5B2%5D&field%5B3%5D=value%5B3%5D" {
		t.Errorf("%s", h[0].Body)
	}
	k := readText(t, `[{"method":"POST","url":"http://a/","body":"x","params":{"headers":{"A":"b"}}},"/get"]`, "").requests
	if len(k) != 2 || string(k[0].Body) != "x" || k[0].Header[0] != (Field{"A", "b"}) || string(k[1].Method) != "GET" {
		t.Errorf("%+v", k)
	}
}

func TestPostman(t *testing.T) {
	p := readFile(t, "p2k6_httpbin_v2.json").requests
	if string(p[3].URL) != "http://httpbin.org/status/201" || string(p[2].Body) != "somekey=somevalue" {
		t.Errorf("%s %s", p[3].URL, p[2].Body)
	}
	g := readText(t, `{"item":[{"request":{"url":"http://a/","method":"POST","body":{"mode":"graphql","graphql":{"query":"{ a(b: \"c\") }","variables":"{\"d\":1}"}}}}]}`, "postman").requests
	if len(g) != 1 || string(g[0].Body) != `{"query":"{ a(b: \"c\") }","variables":{"d":1}}` {
		t.Errorf("%+v", g)
	}
	r := readText(t, `{"variable":[{"key":"h","value":"http://{{n}}"},{"key":"n","value":"a"},{"key":"loop","value":"{{loop}}"}],"item":[
{"request":"{{h}}/x"},{"request":{"url":"{{gone}}/","auth":{"type":"basic"}}},{"request":"{{loop}}"}]}`, "postman")
	if len(r.requests) != 1 || string(r.requests[0].URL) != "http://a/x" || len(r.skips.First) != 2 ||
		!strings.Contains(r.skips.First[0].Reason, "{{gone}}") || r.skips.Notes[noteAuth] != 1 {
		t.Errorf("%+v %v", r.requests, r.skips)
	}
}

func TestHostileLines(t *testing.T) {
	line := func(member string) string { return `{"timestamp":"2024-03-05T10:00:00Z",` + member + "}" }
	for what, c := range map[string]struct{ line, why string }{
		"deep":      {line(`"url":"/","x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300)), tooDeep},
		"surrogate": {line(`"url":"/\ud800"`), halfPair},
		"injection": {line(`"url":"/","headers":{"A":"b\r\nC: d"}`), control},
		"name":      {line(`"url":"/","headers":{"A\r\nB":"c"}`), control},
		"nul":       {line(`"url":"/\u0000"`), "a space or control character in the URL"},
		"raw nul":   {"\x00\x00{}", notJSON},
		"long":      {line(`"url":"/","body":"` + strings.Repeat("x", 2<<20) + `"`), "line longer than 1 MiB"},
	} {
		r := readText(t, c.line+"\n"+line(`"url":"http://u:p@h/x#f"`), "ripley")
		if len(r.requests) != 1 || len(r.skips.First) != 1 || r.skips.First[0].Reason != c.why || r.skips.First[0].Line != 1 {
			t.Errorf("%s: %d requests, %v, %v", what, len(r.requests), r.skips.First, r.err)
			continue
		}
		if string(r.requests[0].URL) != "http://h/x" || r.skips.Notes[noteUser] != 1 {
			t.Errorf("%s: %s %v", what, r.requests[0].URL, r.skips.Notes)
		}
	}
	record := "1 a 1700000000000000000 0\nPOST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n"
	r := readText(t, record+strings.Repeat("x", 3<<20)+separator+record+"123456789"+separator, "")
	if len(r.requests) != 1 || len(r.skips.First) != 1 || string(r.requests[0].Body) != "123456789" {
		t.Errorf("%d requests, %v, %v", len(r.requests), r.skips.First, r.err)
	}
}

func TestBodyFileStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "in")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"secret": "s", "in/t": "POST http://a/\n@../secret\n\nGET http://a/\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := input.Open([]string{filepath.Join(inner, "t")}, nil, ".")
	if err != nil {
		t.Fatal(err)
	}
	if r := readAll(t, set, ""); len(r.requests) != 1 || len(r.skips.First) != 1 || !strings.Contains(r.skips.First[0].Reason, "outside") {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Request{Line: 1, Method: []byte(rapid.StringMatching(`[A-BD-Z]{1,8}`).Draw(t, "method")),
			URL:      []byte("/" + rapid.StringMatching(`[!-"$-~é]{0,20}`).Draw(t, "url")),
			UnixNano: rapid.Int64Range(0, 4e18).Draw(t, "at"), Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body")}
		if len(q.Body) == 0 {
			q.Body = nil
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
			q.Header = append(q.Header, Field{fmt.Sprintf("X-%d", i/2), rapid.StringMatching(`[!-~é]{0,9}`).Draw(t, "value")})
		}
		var out bytes.Buffer
		if err := NewWriter(&out).Write(&q); err != nil {
			t.Fatal(err)
		}
		r := readText(t, out.String(), "ripley")
		if len(r.requests) != 1 || !reflect.DeepEqual(r.requests[0], q) {
			t.Fatalf("%+v\n%+v\n%s%v", q, r.requests, out.String(), r.skips.First)
		}
	})
}

func FuzzFormats(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i := range Formats() {
			f.Add(i, string(text))
		}
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		all := Formats()
		r := readText(t, text, all[uint(i)%uint(len(all))])
		for _, q := range r.requests {
			if q.URL == nil || hasControl(string(q.URL)) || !isToken(q.Method) {
				t.Fatalf("%+v", q)
			}
			for _, h := range q.Header {
				if hasControl(h.Value) || !isTokenText(h.Name) {
					t.Fatalf("%+v", h)
				}
			}
		}
		if s := r.skips; s.Read != s.Parsed+s.Unparsable || int64(len(r.requests)) > s.Parsed {
			t.Fatalf("%+v", s)
		}
	})
}
