package figure_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seatrial/report/figure"
)

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{figure.Count(0), "0"},
		{figure.Count(999), "999"},
		{figure.Count(12345), "12,345"},
		{figure.Count(math.MaxUint64), "18,446,744,073,709,551,615"},
		{figure.Counted(1, "request"), "1 request"},
		{figure.Counted(1200, "request"), "1,200 requests"},
		{figure.Number(0), "0"},
		{figure.Number(0.00041234), "0.000412"},
		{figure.Number(9.999), "10"},
		{figure.Number(99.96), "100"},
		{figure.Number(0.1), "0.1"},
		{figure.Number(-12345), "-12,300"},
		{figure.Number(1e-12), "0"},
		{figure.Number(math.NaN()), "not measured"},
		{figure.Millis(41.2), "41.2 ms"},
		{figure.Millis(0.4121), "0.412 ms"},
		{figure.Millis(1234), "1,230 ms"},
		{figure.Millis(math.Inf(1)), "not measured"},
		{figure.Percentile(41.24, 12345), "41.2 ms (n=12,345)"},
		{figure.Percentile(0, 0), "not measured"},
		{figure.Rate(1204), "1,204/s"},
		{figure.Rate(41.24), "41.2/s"},
		{figure.Rate(0), "0/s"},
		{figure.Share(0.0125), "1.25%"},
		{figure.Share(-1), "not measured"},
		{figure.Change(0.25), "+25%"},
		{figure.Change(-0.048), "-4.8%"},
		{figure.Change(0), "+0%"},
		{figure.Interval(1.5, 2.25, false, figure.Millis), "1.5 ms to 2.25 ms"},
		{figure.Interval(1.5, 0, true, figure.Millis), "from 1.5 ms, no upper bound"},
		{figure.Duration(0), "0 s"},
		{figure.Duration(412 * time.Nanosecond), "412 ns"},
		{figure.Duration(412 * time.Microsecond), "412 µs"},
		{figure.Duration(41200 * time.Microsecond), "41.2 ms"},
		{figure.Duration(10 * time.Second), "10 s"},
		{figure.Duration(150 * time.Second), "2 min 30 s"},
		{figure.Duration(3900 * time.Second), "1 h 5 min"},
		{figure.Duration(-time.Second), "-1 s"},
		{figure.Bytes(512), "512 B"},
		{figure.Bytes(42189), "41.2 KiB"},
		{figure.Bytes(1288490189), "1.2 GiB"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// A figure reads back to within its third digit, whatever its size.
func TestNumberKeepsThreeDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-8, 1e15).Draw(t, "v")
		s := figure.Number(v)
		back, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		if err != nil {
			t.Fatalf("%g is written %q: %v", v, s, err)
		}
		if rel := math.Abs(back-v) / v; rel > 0.005000001 {
			t.Fatalf("%g is written %q, off by %g", v, s, rel)
		}
		digits := strings.Trim(strings.NewReplacer(",", "", ".", "").Replace(s), "0")
		if len(digits) > 3 {
			t.Fatalf("%g is written %q, with more than three digits", v, s)
		}
	})
}
