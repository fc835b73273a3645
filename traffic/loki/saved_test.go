package loki

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/traffic/input"
)

// file is the plain content of a captured file.
func file(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if text, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func openSaved(t testing.TB, stdin io.Reader, paths ...string) *Saved {
	t.Helper()
	set, err := input.Open(paths, stdin, "testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	s, err := Open(set, Unknown)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func savedText(t testing.TB, text string) *Saved { return openSaved(t, strings.NewReader(text), "-") }

func drain(s *Saved) (out []given) {
	for s.Next() {
		out = append(out, given{s.Time(), string(s.Bytes()) + s.Fault()})
	}
	return out
}

func TestEveryCaptureHoldsTheSameLines(t *testing.T) {
	var want []string
	for line := range strings.Lines(string(file(t, "logcli_raw.txt.gz"))) {
		want = append(want, strings.TrimSuffix(line, "\n"))
	}
	slices.Sort(want)
	if len(want) != 400 {
		t.Fatalf("%d lines", len(want))
	}
	for name, c := range map[string]struct {
		format   Format
		n        int
		backward bool
	}{
		"logcli_raw.txt.gz":                        {Raw, 400, false},
		"logcli_raw_batch37.txt.gz":                {Raw, 400, false},
		"logcli_default.txt.gz":                    {Default, 400, false},
		"logcli_default_backward_colour.txt":       {Default, 20, true},
		"logcli_jsonl.txt.gz":                      {JSONL, 400, false},
		"query_range_forward.json.gz":              {QueryRange, 400, false},
		"query_range_backward.json.gz":             {QueryRange, 400, false},
		"query_range_categorized_limit200.json.gz": {QueryRange, 200, false},
		"query_range_empty.json":                   {QueryRange, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSaved(t, nil, name)
			got := drain(s)
			if s.Format() != c.format || len(got) != c.n || s.Err() != nil || s.Backward() != c.backward {
				t.Fatalf("%s, %d entries, backward %v, %v", s.Format(), len(got), s.Backward(), s.Err())
			}
			first := time.Date(2019, 1, 22, 0, 26, 14, 0, time.UTC).UnixNano()
			last := time.Date(2019, 1, 22, 0, 27, 33, 999999999, time.UTC).UnixNano()
			var have []string
			for _, e := range got {
				have = append(have, e.line)
				if c.format != Raw && (e.at < first || e.at > last) {
					t.Errorf("time %d", e.at)
				}
				if _, found := slices.BinarySearch(want, e.line); !found {
					t.Errorf("nobody wrote %q", e.line)
				}
			}
			slices.Sort(have)
			if c.n == 400 && !slices.Equal(have, want) {
				t.Error("other lines")
			}
			if c.format == QueryRange && !inOrder(got) {
				t.Error("out of order")
			}
		})
	}
}

// The server's answers, as they were captured, decode to what encoding/json reads in them.
func TestCapturedAnswersDecodeAsJSONDoes(t *testing.T) {
	for _, name := range []string{"query_range_forward.json.gz", "query_range_backward.json.gz", "query_range_categorized_limit200.json.gz"} {
		text := file(t, name)
		got, err := decodeAll(text)
		if want := byEncodingJSON(t, text); err != nil || len(want) < 200 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d entries of %d, %v", name, len(got), len(want), err)
		}
	}
	_, err := decodeAll(file(t, "query_range_matrix_not_logs.json.gz"))
	if !is[notLogs](err) || !strings.Contains(err.Error(), "matrix") {
		t.Errorf("%v", err)
	}
	r := &refusal{status: 400, words: printable(string(file(t, "error_limit_too_high.txt")), 400)}
	if !tooMany(r) || allowed(r) != 5000 || passing(r) {
		t.Errorf("%v allows %d", r, allowed(r))
	}
}

// decodeAll decodes an answer into entries in the order of the answer.
func decodeAll(text []byte) ([]given, error) {
	var p page
	d := decoder{page: &p}
	d.reset(bytes.NewReader(text), nil)
	err := d.queryRange()
	var out []given
	for i, e := range p.list {
		out = append(out, given{e.at, string(p.line(i)) + e.fault})
	}
	return out, err
}

func byEncodingJSON(t testing.TB, text []byte) (out []given) {
	t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Values [][]any } }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	for _, stream := range answer.Data.Result {
		for _, v := range stream.Values {
			at, err := strconv.ParseInt(v[0].(string), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, given{at, strings.TrimRight(v[1].(string), "\r\n")})
		}
	}
	return out
}

func TestLogcliLines(t *testing.T) {
	const second = 1548116774e9
	for text, want := range map[string]given{
		"2019-01-22T00:26:14Z {pod=\"a\"}   the line\n":                                         {second, "the line"},
		"2019-01-22T03:56:14+03:30 {a=\"x } \\\" y\", b=\"\"} {\"json\":1}\n":                   {second, `{"json":1}`},
		"\x1b[34m2019-01-22T00:26:14Z\x1b[0m \x1b[1;92m{pod=\"a\"}\x1b[0m line\n":               {second, "line"},
		"2019-01-22T00:26:14.5Z {} line\n":                                                      {second + 5e8, "line"},
		"2019-01-22T00:26:14Z {\"a.b\"=\"c\"} line\n":                                           {second, "line"},
		"{\"labels\":{},\"line\":\"a\\nb\",\"timestamp\":\"2019-01-22T00:26:14.000000001Z\"}\n": {second + 1, "a\nb"},
		"{\"_msg\":\"m\",\"_stream\":\"{}\",\"_time\":\"2019-01-22T00:26:14Z\",\"x\":\"y\"}\n":  {second, "m"},
		"{\"_stream\":\"{}\",\"_time\":\"2019-01-22T00:26:14Z\"}\n":                             {second, faultNoText},
	} {
		s := savedText(t, text)
		if got := drain(s); len(got) != 1 || got[0] != want || s.Err() != nil {
			t.Errorf("%q gave %v as %s, %v", text, got, s.Format(), s.Err())
		}
	}
}

func TestWhatLogcliSaysOfItselfIsNoEntry(t *testing.T) {
	text := string(file(t, "logcli_raw_noquiet_stderr.txt")) + string(file(t, "logcli_default.txt.gz"))
	s := savedText(t, text)
	if got := drain(s); s.Format() != Default || len(got) != 400 || s.Number() != 402 {
		t.Errorf("%d entries as %s, the last in line %d", len(got), s.Format(), s.Number())
	}
}

func TestWhatIsNotAnEntryIsCountedByItsLine(t *testing.T) {
	s := savedText(t, "2019-01-22T00:26:14Z {} one\n  at two\n\n2019-02-31T00:26:15Z {} three\n")
	var faults []int64
	for s.Next() {
		if s.Fault() != "" {
			faults = append(faults, s.Number())
			if len(s.Bytes()) != 0 {
				t.Errorf("gives %q", s.Bytes())
			}
		}
	}
	if !slices.Equal(faults, []int64{2, 4}) {
		t.Errorf("faults in lines %v", faults)
	}
	s = savedText(t, "{\"labels\":{},\"line\":\"a\",\"timestamp\":\"2019-01-22T00:26:14Z\"}\n{\"labels\":{},\"line\":\"b")
	if got := drain(s); len(got) != 2 || got[1].line != "not an entry in JSON" {
		t.Errorf("%v", got)
	}
}

func TestACutAnswerGivesWhatItHolds(t *testing.T) {
	text := string(file(t, "query_range_forward.json.gz"))
	s := savedText(t, text+"\n"+text[:len(text)/4])
	got := drain(s)
	if n := len(got); n < 450 || n > 550 || got[n-1] != (given{0, errCut.Error()}) || s.Err() != nil {
		t.Errorf("%d entries, last %v, %v", n, got[n-1], s.Err())
	}
	s = openSaved(t, nil, "query_range_matrix_not_logs.json.gz")
	_ = drain(s)
	wantFault(t, s.Err(), fault.TRF002, "query_range_matrix_not_logs.json.gz", "matrix")
}

func TestPlainLogsAreNotTakenForSavedEntries(t *testing.T) {
	for _, head := range []string{
		"", "198.18.0.1 - - [22/Jan/2019:03:56:14 +0330] \"GET / HTTP/1.1\" 200 1\n", `{"time":"2019-01-22T00:26:14Z","msg":"x"}`,
		`{"resourceSpans":[]}`, "2019-01-22T00:26:14Z app1 started\n", `{"data":{"x":1}}`, `{"line":1}`, "{", "2019-01-22T00:26:14Z {\"a\":1}\n",
	} {
		if f := Recognise([]byte(head)); f != Unknown {
			t.Errorf("%q is taken for %s", head, f)
		}
	}
}

func TestTimesAreThoseOfThePackageTime(t *testing.T) {
	for _, s := range []string{"2019-01-22T00:26:14Z", "2019-01-22T00:26:14.123456789+03:30", "2024-02-29T23:59:59.1-11:00", "1970-01-01T00:00:00Z"} {
		want, err := time.Parse(time.RFC3339Nano, s)
		if got, ok := instant([]byte(s)); err != nil || !ok || got != want.UnixNano() {
			t.Errorf("%s: %d", s, got)
		}
	}
	for _, s := range []string{"", "2019-01-22", "2019-02-29T00:00:00Z", "2019-13-01T00:00:00Z", "2019-01-22T24:00:00Z", "2019-01-22T00:00:00", "2019-01-22T00:00:00+1", "0001-01-01T00:00:00Z"} {
		if at, ok := instant([]byte(s)); ok {
			t.Errorf("%q is %d", s, at)
		}
	}
	b := []byte("2019-01-22T00:26:14.5+03:30")
	if n := testing.AllocsPerRun(100, func() { _, _ = instant(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSavedLinesDoNotAllocate(t *testing.T) {
	for _, name := range []string{"logcli_default.txt.gz", "logcli_jsonl.txt.gz"} {
		s := openSaved(t, bytes.NewReader(bytes.Repeat(file(t, name), 3)), "-")
		for range 400 { // the buffers have their size
			s.Next()
		}
		if n := testing.AllocsPerRun(700, func() {
			if !s.Next() || s.Fault() != "" {
				t.Fatal("too short")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations for each line", name, n)
		}
	}
}

func FuzzQueryRange(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"resultType":"streams","result":[{"stream":{"a":"b"},"values":[["1","l\n\u00e9\ud83d\ude00",{"structuredMetadata":{}}]]}]}}`))
	f.Add([]byte(`{"data":{"result":[{"metric":{},"values":[[1,"2"]]}]}}`))
	f.Add(file(f, "query_range_empty.json"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := decodeAll(text)
		var answer struct {
			Data struct {
				Result []struct{ Values [][]any }
			}
		}
		if err != nil || json.Unmarshal(text, &answer) != nil {
			return
		}
		n := 0
		for _, stream := range answer.Data.Result {
			n += len(stream.Values)
		}
		if !bytes.Contains(text, []byte(`"data"`)) || bytes.Count(text, []byte("data")) > 1 || bytes.Count(text, []byte("result")) > 1+bytes.Count(text, []byte("resultType")) ||
			bytes.Count(text, []byte("values")) != len(answer.Data.Result) || bytes.Contains(text, []byte(`\`)) {
			return // keys that stand twice, which the two read differently
		}
		if n != len(got) {
			t.Errorf("%d entries, %d by encoding/json: %s", len(got), n, text)
		}
	})
}

func FuzzSaved(f *testing.F) {
	f.Add([]byte("2019-01-22T00:26:14Z {pod=\"a\"}   the line\n\x1b[34mx\x1b[0m\n"))
	f.Add([]byte(`{"labels":{},"line":"a","timestamp":"2019-01-22T00:26:14Z"}` + "\n"))
	f.Add([]byte(`{"_msg":"m","_time":"2019-01-22T00:26:14Z"}` + "\n"))
	f.Add([]byte(`{"status":"success","data":{"resultType":"streams","result":[]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for format := Unknown; format <= Rows; format++ {
			set, err := input.Open([]string{"-"}, bytes.NewReader(text), ".")
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(set, format)
			if err != nil {
				continue // compressed in a way that is not read
			}
			for s.Next() {
				if s.Fault() != "" && s.Bytes() != nil && s.Fault() != faultNoText && len(s.Bytes()) > 0 {
					t.Errorf("%s gives %q with the fault %s", s.Format(), s.Bytes(), s.Fault())
				}
			}
			_ = set.Close()
		}
	})
}

func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"_msg":"m","_time":"2019-01-22T00:26:14Z"}` + "\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p page
		d := decoder{page: &p}
		d.reset(bytes.NewReader(text), nil)
		if err := d.rows(); err == nil && len(p.list) == 0 && len(bytes.TrimSpace(text)) > 0 {
			t.Errorf("nothing was made of %q, and nothing said", text)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := file(b, "query_range_categorized_limit200.json.gz")
	var p page
	d := decoder{page: &p}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		p.reset()
		d.reset(bytes.NewReader(text), nil)
		if err := d.queryRange(); err != nil || len(p.list) != 200 {
			b.Fatal(err)
		}
	}
}

// Both kinds give lines in the form that a reader of access logs takes.
var _, _ interface {
	Next() bool
	Bytes() []byte
	Fault() string
	Number() int64
	Input() string
	Err() error
	Time() int64
} = (*Reader)(nil), (*Saved)(nil)
