package record

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

func TestLogReadsBackByTheReferenceImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
		var entries []LogEntry
		for i := range rapid.IntRange(1, 4).Draw(t, "entries") {
			h := &Histogram{coarse: rapid.Bool().Draw(t, "coarse")}
			for _, v := range rapid.SliceOfN(durations(), 0, 50).Draw(t, "values") {
				h.Record(v)
				if v == 1000 { // large counts take several bytes
					h.cells.add(h.slot(uint64(v)), 1<<40, h.slots())
					h.count += 1 << 40
				}
			}
			entries = append(entries, LogEntry{Tag: "GET /a,b c", StartSeconds: float64(i), IntervalSeconds: 1, Histogram: h})
		}
		var buf bytes.Buffer
		if err := WriteLog(&buf, start, append(entries, LogEntry{Tag: "nothing"})); err != nil {
			t.Fatal(err)
		}
		r := hdrhistogram.NewHistogramLogReader(&buf)
		for i, e := range entries {
			got, err := r.NextIntervalHistogram()
			if err != nil || got == nil {
				t.Fatalf("entry %d: %v", i, err)
			}
			if got.Tag() != "GET%20/a%2Cb%20c" || got.StartTimeMs() != start.Add(time.Duration(i)*time.Second).UnixMilli() || got.EndTimeMs()-got.StartTimeMs() != 1000 {
				t.Fatalf("entry %d: tag %q, start %d, end %d", i, got.Tag(), got.StartTimeMs(), got.EndTimeMs())
			}
			sameAsReference(t, e.Histogram, got)
		}
		if more, err := r.NextIntervalHistogram(); more != nil || err != nil {
			t.Fatalf("after the last entry: %v, %v", more, err)
		}
	})
}

func sameAsReference(t failer, h *Histogram, ref *hdrhistogram.Histogram) {
	t.Helper()
	if uint64(ref.TotalCount()) != h.Count() {
		t.Fatalf("count %d, want %d", ref.TotalCount(), h.Count())
	}
	bars := map[int64]int64{}
	for _, b := range ref.Distribution() {
		if b.Count > 0 {
			bars[b.From] = b.Count
		}
	}
	for b := range h.Buckets() {
		if bars[int64(b.Lo)] != int64(b.Count) {
			t.Fatalf("bucket %d holds %d, want %d", b.Lo, bars[int64(b.Lo)], b.Count)
		}
	}
}

func TestLogFormat(t *testing.T) {
	h := NewHistogram()
	h.Record(41200 * time.Microsecond)
	var buf bytes.Buffer
	if err := WriteLog(&buf, time.Unix(1700000000, 250e6), []LogEntry{{StartSeconds: 1.5, IntervalSeconds: 60, Histogram: h}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(buf.String(), "\n")
	want := []string{
		"#[Histogram log format version 1.3]",
		"#[BaseTime: 1700000000.250 (seconds since epoch)]",
		"#[StartTime: 1700000000.250 (seconds since epoch), 2023-11-14T22:13:20Z]",
		`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`,
	}
	for i, w := range want {
		if lines[i] != w {
			t.Errorf("line %d is %q, want %q", i+1, lines[i], w)
		}
	}
	if !strings.HasPrefix(lines[4], "1.500,60.000,41.200,HISTFAAA") {
		t.Errorf("the entry is %q", lines[4])
	}
}

func TestZigZagOfFullWidth(t *testing.T) {
	for v, want := range map[int64]int{0: 1, -1: 1, 63: 1, 64: 2, -64: 1, 1 << 20: 4, 1<<63 - 1: 9, -1 << 63: 9} {
		if got := appendZigZag(nil, v); len(got) != want {
			t.Errorf("%d takes %d bytes, want %d", v, len(got), want)
		}
	}
}

type brokenWriter struct{ after int }

var errBroken = errors.New("the disk is full")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.after--; w.after < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestLogReportsWriteErrors(t *testing.T) {
	h := NewHistogram()
	h.Record(1)
	for after := range 2 {
		if err := WriteLog(&brokenWriter{after}, time.Now(), []LogEntry{{Histogram: h}}); !errors.Is(err, errBroken) {
			t.Errorf("after %d writes: %v", after, err)
		}
	}
}
