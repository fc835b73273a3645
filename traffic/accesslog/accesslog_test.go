package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
)

// casePath is a file of a published case.
func casePath(t testing.TB, number string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(sharedData, "cases", number+"-*", "access.log"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v %v", number, found, err)
	}
	return found[0]
}

func TestCase01NoRequestLine(t *testing.T) {
	s := openFile(t, casePath(t, "01"))
	got := tally(t, s)
	skips := s.Skipped()
	if got.requests != 1 || got.routes[[2]string{"GET", "/ok"}] != 1 || skips.Reasons["no usable request"] != 4 ||
		skips.Read != 5 || skips.Unparsable != 0 || skips.Format != "combined" || Warning(skips) != "" || s.Err() != nil {
		t.Errorf("%v, %+v, %v", got.routes, skips, s.Err())
	}
}

func TestCase02Dashes(t *testing.T) {
	s := openFile(t, casePath(t, "02"))
	got := tally(t, s)
	skips := s.Skipped()
	if got.requests != 2 || got.classes["none"] != 1 || got.classes["4xx"] != 0 || skips.Parsed != 3 ||
		skips.Reasons["no usable request"] != 1 || skips.Format != "combined" {
		t.Errorf("%v, %+v", got.classes, skips) // tally has checked that 0/14 is no duration
	}
}

func TestCase06MixedOffsets(t *testing.T) {
	got := tally(t, openFile(t, casePath(t, "06")))
	start := time.Date(2024, 10, 27, 0, 59, 58, 0, time.UTC)
	if got.first != start.UnixNano() || got.end != start.Add(5*time.Second).UnixNano() || got.requests != 6 || got.order != 0 {
		t.Errorf("%+v", got)
	}
}

func TestCase08UserNames(t *testing.T) {
	s := openFile(t, casePath(t, "08"))
	got := tally(t, s)
	skips := s.Skipped()
	if got.requests != 4 || got.routes[[2]string{"GET", "/x/4"}] != 1 || skips.Unparsable != 30 || skips.Read != 34 ||
		Warning(skips) != "" || len(skips.First) != traffic.MaxFirst || skips.First[0].Line != 4 {
		t.Errorf("%v, %+v", got.routes, skips)
	}
	if text := fmt.Sprintf("%+v", skips); strings.Contains(text, "first.last") || strings.Contains(text, "Ann") || strings.Contains(text, "garbage") {
		t.Errorf("content in %s", text)
	}
}

// line is a log line around a request.
func line(request string) string {
	return `192.0.2.1 - - [05/Mar/2024:10:00:00 +0000] "` + request + `" 200 5 "-" "c"` + "\n"
}

func TestRequests(t *testing.T) {
	for request, want := range map[string]string{
		"GET / HTTP/1.1":                       "GET /",
		"GET /a?b=c#d HTTP/1.1":                "GET /a",
		"GET /a#d":                             "GET /a",
		"GET /a b HTTP/1.1":                    "GET /a b",
		"GET /a   HTTP/2.0":                    "GET /a",
		"GET ?x HTTP/1.1":                      "GET /",
		"GET http://h.example/a/b?c HTTP/1.1":  "GET /a/b",
		"GET https://user:pw@h.example:8443":   "GET /",
		"GET /r?to=http://h.example/ HTTP/1.1": "GET /r",
		"PROPFIND /dav HTTP/1.1":               "PROPFIND /dav",
		"VERSION-CONTROL /v HTTP/1.1":          "VERSION-CONTROL /v",
		`GET /say\"hi\" HTTP/1.1`:              `GET /say\"hi\"`,
		`GET /x\x22y\\ HTTP/1.1`:               `GET /x\x22y\\`,
		"CONNECT h.example:443 HTTP/1.1":       "CONNECT h.example:443",
		"OPTIONS * HTTP/1.1":                   "OPTIONS *",
		"-":                                    "",
		"":                                     "",
		"GET":                                  "",
		"GET ":                                 "",
		"GET  / HTTP/1.1":                      "",
		"get / HTTP/1.1":                       "",
		"GET / extra":                          "",
		"GET / HTTP/":                          "",
		"GET /\x01 HTTP/1.1":                   "",
		`\x16\x03\x01`:                         "",
		"-GET / HTTP/1.1":                      "",
		"GET /a\x7f HTTP/1.1":                  "",
		"M-SEARCH mailto:someone@h.example HTTP/1.": "M-SEARCH mailto:someone@h.example",
	} {
		s := reading(t, strings.NewReader(line(request)))
		got := ""
		if s.Scan() {
			got = string(s.Event().Method) + " " + string(s.Event().Path)
		}
		if got != want || s.Skipped().Parsed != 1 || s.Scan() || s.Err() != nil {
			t.Errorf("%q: %q, want %q; %+v %v", request, got, want, s.Skipped(), s.Err())
		}
	}
}

func TestTimestamps(t *testing.T) {
	for stamp, want := range map[string]string{
		"05/Mar/2024:10:00:00 +0000":     "2024-03-05T10:00:00Z",
		"05/Mar/2024:10:00:00":           "2024-03-05T10:00:00Z",
		"05/Mar/2024:10:00:00.25 -0330":  "2024-03-05T13:30:00.25Z",
		"01/Jan/2024:00:30:00 +0100":     "2023-12-31T23:30:00Z",
		"31/Dec/2016:23:59:60 +0000":     "2017-01-01T00:00:00Z",
		"29/Feb/2024:00:00:00 +1400":     "2024-02-28T10:00:00Z",
		"29/Feb/2023:00:00:00 +0000":     "",
		"00/Jan/2024:00:00:00 +0000":     "",
		"05/Mai/2024:10:00:00 +0000":     "",
		"05/Mar/2024:24:00:00 +0000":     "",
		"05/Mar/2024:10:00:00 0000":      "",
		"05/Mar/2024:10:00:00. +0000":    "",
		"05/Mar/1824:10:00:00 +0000":     "",
		"05/Mar/9999:10:00:00 +0000":     "",
		"2024-03-05T10:00:00Z":           "",
		"05/Mar/2024:10:00:00 +0000 UTC": "",
	} {
		s := reading(t, strings.NewReader(fmt.Sprintf("h - u [%s] \"GET / HTTP/1.1\" 200 1\n", stamp)))
		got := ""
		if s.Scan() {
			got = time.Unix(0, s.Event().UnixNano).UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", stamp, got, want)
		}
	}
}

func TestFormatsAreNamed(t *testing.T) {
	const rest = `[05/Mar/2024:10:00:00 +0000] "GET /a HTTP/1.1" 200 17`
	for text, want := range map[string]string{
		"192.0.2.1 - - " + rest:                                            "common",
		"192.0.2.1 - - " + rest + " 0.004":                                 "common",
		"192.0.2.1 - - " + rest + ` "-" "c"`:                               "combined",
		"192.0.2.1 - - " + rest + ` "-" "c" "x" 1 [up]`:                    "combined",
		"shop.example:443 192.0.2.1 - - " + rest + ` "-" "c"`:              "vhost_combined",
		"shop.example 2001:db8::1 - Ann Example " + rest:                   "vhost_common",
		"192.0.2.1 - [odd] user " + rest:                                   "common",
		"192.0.2.1 - " + rest:                                              "common",
		"192.0.2.1 - - " + rest + "\r\n" + "192.0.2.1 - - " + rest + ` ""`: "common,combined",
	} {
		s := reading(t, strings.NewReader(text))
		n := 0
		for ; s.Scan(); n++ {
			if e := s.Event(); string(e.Path) != "/a" || e.Status != 200 || e.ResponseSize != 17 || e.RequestSize >= 0 {
				t.Errorf("%s: %+v", text, e)
			}
		}
		if got := s.Skipped().Format; got != want || n == 0 || s.Err() != nil {
			t.Errorf("%s: %q, want %q (%d events, %v)", text, got, want, n, s.Err())
		}
	}
}

func TestUnparsableLinesAreNamedNotShown(t *testing.T) {
	text := "\n# a comment\nsecret\nsecret - - x\nh - - [secret] \"GET / HTTP/1.1\" 200 1\n" +
		"h - - [05/Mar/2024:10:00:00 +0000] secret\nh - - [05/Mar/2024:10:00:00 +0000] \"GET / HTTP/1.1\" secret\n" +
		"h - - [05/Mar/2024:10:00:00 +0000] \"GET /secret\n \t\n" + line("GET /ok HTTP/1.1")
	s := reading(t, strings.NewReader(text))
	got := tally(t, s)
	skips := s.Skipped()
	if got.requests != 1 || skips.Blank != 2 || skips.Comment != 1 || skips.Unparsable != 6 || skips.Read != 7 {
		t.Errorf("%d requests, %+v", got.requests, skips)
	}
	for i, f := range skips.First {
		if f.Line != int64(i+3) || f.Input != "-" || f.Reason == "" || strings.Contains(f.Reason, "secret") {
			t.Errorf("First[%d] = %+v", i, f)
		}
	}
}

func TestNothingParsed(t *testing.T) {
	for text, word := range map[string]string{
		"":                                  "is empty",
		"garbage\n":                         "combined",
		`{"status":200}` + "\n":             "JSON",
		"#Fields: date time cs-method\nx y": "W3C",
	} {
		s := reading(t, strings.NewReader(text))
		if s.Scan() {
			t.Fatalf("%q gives an event", text)
		}
		e, ok := fault.As(s.Err())
		if !ok || e.Code != fault.TRF002 || !strings.Contains(e.Message+e.Next, word) || text != "" && !strings.Contains(e.Message, "common") {
			t.Errorf("%q: %v", text, s.Err())
		}
	}
}

func TestFormatNames(t *testing.T) {
	for _, good := range append(Formats(), "") {
		if err := CheckFormat(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, word := range map[string]string{
		"combinde": "combinde", `$remote_addr [$time_local] $status`: "no request", `%h %l %u %t %>s %b`: "no request",
		`$request$status`: "next to each other", "%h %{%A}t %r": "the time", "%r %Q": "not known", "%r %{x": "ends within",
		"%r %{min}T": "s, ms and us",
	} {
		set, err := input.Open([]string{casePath(t, "01")}, nil, ".")
		if err != nil {
			t.Fatal(err)
		}
		s := New(set, Config{Format: bad})
		if s.Scan() {
			t.Fatalf("%q reads", bad)
		}
		if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF004 || !strings.Contains(e.Message, word) ||
			bad == "combinde" && !strings.Contains(e.Message, "vhost_combined") {
			t.Errorf("%q: %v", bad, s.Err())
		}
	}
}

func TestWarningIsLoudOverFivePercent(t *testing.T) {
	for _, c := range []struct {
		good, bad int64
		loud      bool
	}{{95, 5, false}, {94, 6, true}, {0, 99, false}, {0, 100, true}, {9499, 501, true}, {9500, 500, false}} {
		if got := Warning(&traffic.Skips{Parsed: c.good, Unparsable: c.bad}); (got != "") != c.loud {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestOverlongLineIsOneUnparsableLine(t *testing.T) {
	long := line("GET /" + strings.Repeat("x", 3<<20) + " HTTP/1.1")
	s := reading(t, strings.NewReader(line("GET /a HTTP/1.1")+long+line("GET /b HTTP/1.1")))
	got := tally(t, s)
	if skips := s.Skipped(); got.requests != 2 || skips.Unparsable != 1 || skips.First[0].Line != 2 || len(skips.Notes) != 1 {
		t.Errorf("%v %+v", got.routes, s.Skipped())
	}
}

// failing gives what it holds, and then an error.
type failing struct{ r io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the disk is gone")
	}
	return n, err
}

func TestReadErrorIsTold(t *testing.T) {
	s := reading(t, failing{strings.NewReader(line("GET /a HTTP/1.1") + "half a li")})
	got := tally(t, s)
	if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF001 || !strings.Contains(e.Message, "the disk is gone") || got.requests != 1 {
		t.Errorf("%d requests, %v", got.requests, s.Err())
	}
}

// eventsOf are the events of a source, as comparable text.
func eventsOf(s *Source) []string {
	var out []string
	for s.Scan() {
		e := s.Event()
		out = append(out, fmt.Sprint(e.UnixNano, string(e.Method), string(e.Path), e.Status, e.ResponseSize))
	}
	return out
}

func TestSplittingAFileChangesNothing(t *testing.T) {
	text, err := os.ReadFile(casePath(t, "08"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(filepath.Join(sharedData, "access", "nginx_odd_http_versions.log"))
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.SplitAfter(append(text, more...), []byte("\n"))
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom(all), 1, 20).Draw(rt, "lines")
		for i, l := range lines { // a last line may lack its end
			lines[i] = append(bytes.TrimSuffix(slices.Clone(l), []byte("\n")), '\n')
		}
		cut := rapid.IntRange(0, len(lines)).Draw(rt, "cut")
		whole := fromText(t, string(bytes.Join(lines, nil)))
		parts := fromText(t, string(bytes.Join(lines[:cut], nil)), string(bytes.Join(lines[cut:], nil)))
		if a, b := eventsOf(whole), eventsOf(parts); !slices.Equal(a, b) {
			rt.Fatalf("whole %v, in parts %v", a, b)
		}
		a, b := whole.Skipped(), parts.Skipped()
		if a.Parsed != b.Parsed || a.Unparsable != b.Unparsable || a.Blank != b.Blank {
			rt.Fatalf("whole %+v, in parts %+v", a, b)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, number := range []string{"01", "02", "06", "08"} {
		text, err := os.ReadFile(casePath(f, number))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`a b [[[[[05/Mar/2024:10:00:00 +0000] "\" 200 1`))
	f.Add([]byte("a b [05/Mar/2024:10:00:00 +0000] \"\\\\\" - -"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := reading(t, bytes.NewReader(text))
		var events int64
		for ; s.Scan(); events++ {
			e := s.Event()
			if len(e.Method) == 0 || len(e.Path) == 0 || bytes.ContainsAny(e.Path, "?#\r\n") || e.Duration >= 0 || e.Status < 0 || e.Status > 999 {
				t.Fatalf("event %+v", e)
			}
		}
		k := s.Skipped()
		if k.Parsed != events+k.Reasons["no usable request"] || k.Read != k.Parsed+k.Unparsable || (s.Err() == nil) != (k.Parsed > 0) {
			t.Fatalf("%d events, %+v, %v", events, k, s.Err())
		}
		lines := int64(bytes.Count(text, []byte("\n")))
		if n := k.Read + k.Blank + k.Comment; n != lines && n != lines+1 {
			t.Fatalf("%d of %d lines are accounted for", n, lines)
		}
	})
}

// endless gives the same text again and again, n bytes in all.
type endless struct {
	text []byte
	at   int
	left int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	e.left -= int64(n)
	return n, nil
}

// sampleOf is the text of a published log.
func sampleOf(t testing.TB, name string) []byte {
	t.Helper()
	set, err := input.Open([]string{filepath.Join(sharedData, "access", name)}, nil, ".")
	if err != nil || !set.Next() {
		t.Fatal(err)
	}
	text, err := io.ReadAll(set)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.TrimSuffix(text, []byte("\n")), '\n')
}

func sample(t testing.TB) []byte {
	t.Helper()
	return sampleOf(t, "apache_combined_10k.log.gz")
}

func TestNoAllocationPerLine(t *testing.T) {
	s := reading(t, &endless{text: sample(t), left: 1 << 40})
	for range 20_000 { // past the growth of buffers
		if !s.Scan() {
			t.Fatal(s.Err())
		}
	}
	if n := testing.AllocsPerRun(20_000, func() { s.Scan() }); n != 0 {
		t.Errorf("%v allocations per line", n)
	}
}

func BenchmarkScan(b *testing.B) {
	text := sample(b)
	size := int64(len(text)) * 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		s := reading(b, &endless{text: text, left: size})
		for s.Scan() {
		}
		if s.Err() != nil {
			b.Fatal(s.Err())
		}
	}
}
