package recorded

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"seatrial/traffic"
	"seatrial/traffic/input"
)

// repeated gives one text again and again, up to left bytes.
type repeated struct {
	text string
	at   int
	left int64
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) && r.left > 0 {
		k := copy(p[n:min(len(p), n+int(min(r.left, 1<<20)))], r.text[r.at:])
		n, r.at, r.left = n+k, (r.at+k)%len(r.text), r.left-int64(k)
	}
	return n, nil
}

func open(t testing.TB, r io.Reader, format string) Source {
	t.Helper()
	set, err := input.Open([]string{"-"}, r, ".")
	if err != nil {
		t.Fatal(err)
	}
	src, err := Open(set, format)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

const sample = `{"url":"http://shop.example/search?q=caf%C3%A9","method":"GET","timestamp":"2024-03-05T10:00:00.250Z","headers":{"Accept":"text/html","X-Two":["a","b"]},"body":"{\"sku\":\"A-1\"}"}` + "\n"

// A request that is like those before it costs no memory.
func TestLinesAllocateNothing(t *testing.T) {
	src := open(t, &repeated{text: sample, left: int64(len(sample)) * 4000}, "ripley")
	for range 100 {
		src.Scan()
	}
	if n := testing.AllocsPerRun(2000, func() {
		if !src.Scan() {
			t.Fatal(src.Err())
		}
	}); n != 0 {
		t.Errorf("%v allocations for each request", n)
	}
}

// A line, and a GoReplay record, of 1 GB are refused without being held.
func TestHugeRecordsAreNotHeld(t *testing.T) {
	const size = 1 << 30
	record := "1 a 1700000000000000000 0\nPOST / HTTP/1.1\r\n\r\n"
	for format, text := range map[string]string{"ripley": `{"url":"`, "goreplay": record} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rest := &repeated{text: strings.Repeat("x", 1<<16), left: size}
		src := open(t, io.MultiReader(strings.NewReader(text), rest), format)
		got := src.Scan()
		runtime.ReadMemStats(&after)
		s := src.Skipped()
		if got || rest.left != 0 || s.Unparsable != 1 || !strings.Contains(s.First[0].Reason, "longer than") {
			t.Errorf("%s: %v %+v", format, got, s)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%s: %d MiB were allocated", format, used>>20)
		}
	}
}

type someEvents struct {
	all []traffic.Event
	n   int
}

func (s *someEvents) Scan() bool              { s.n++; return s.n <= len(s.all) }
func (s *someEvents) Event() *traffic.Event   { return &s.all[s.n-1] }
func (s *someEvents) Skipped() *traffic.Skips { return &traffic.Skips{Format: "combined", Parsed: 3} }
func (s *someEvents) Err() error              { return nil }

func TestEventsAreRequests(t *testing.T) {
	src := FromEvents(&someEvents{all: []traffic.Event{
		{UnixNano: 5, Method: []byte("POST"), Path: []byte("/a"), Query: []byte("b=%20c"), Client: []byte("192.0.2.1"), RequestSize: 7},
		{Method: []byte("GET"), Route: []byte("/only/{route}")},
		{Method: []byte("GET"), Path: []byte("/d")},
	}})
	var got []string
	for src.Scan() {
		q := src.Request()
		got = append(got, string(q.Method)+" "+string(q.URL)+" "+string(q.Client))
	}
	s := src.Skipped()
	if strings.Join(got, ",") != "POST /a?b=%20c 192.0.2.1,GET /d " || s.Reasons["no path"] != 1 || s.Notes[noteNoBody] != 1 || s.Format != "combined" {
		t.Errorf("%q %+v", got, s)
	}
}

func BenchmarkRipley(b *testing.B) {
	b.SetBytes(int64(len(sample)))
	b.ReportAllocs()
	src := open(b, &repeated{text: sample, left: int64(len(sample)) << 40}, "ripley")
	for b.Loop() {
		if !src.Scan() {
			b.Fatal(src.Err())
		}
	}
}
