// Package figure writes numbers for people (RE-9): three significant digits, a unit always,
// thousands separated, every percentile with its sample count, every ratio with its interval. It
// imports nothing of the project, so that every page and line writes a number in the same way.
package figure

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Unmeasured stands where a figure is missing; it is never written as zero.
const Unmeasured = "not measured"

// Count writes a whole number with its thousands separated: 12,345.
func Count(n uint64) string { return group(strconv.FormatUint(n, 10)) }

// Counted writes a count with its noun, in the plural unless there is exactly one: "1 request",
// "12,345 requests".
func Counted(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Number writes v with three significant digits and no exponent: 0.0412, 41.2, 12,300. A value that
// is not finite is Unmeasured.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Unmeasured
	}
	if v == 0 {
		return "0"
	}
	// A value below 1e-9 of any unit here is noise; writing it would take a line of zeros.
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	magnitude := int(math.Floor(math.Log10(math.Abs(rounded)) + 1e-12))
	decimals := max(0, 2-magnitude)
	return group(strconv.FormatFloat(rounded, 'f', decimals, 64))
}

// Millis writes a latency given in milliseconds, always in milliseconds, so that the figures of a
// column compare at a glance: "0.412 ms", "41.2 ms", "1,230 ms".
func Millis(ms float64) string { return unit(Number(ms), " ms") }

// Percentile writes a latency in milliseconds with the number of samples it rests on; none is said
// to be unmeasured.
func Percentile(ms float64, samples uint64) string {
	if samples == 0 {
		return Unmeasured
	}
	return Millis(ms) + " (n=" + Count(samples) + ")"
}

// Rate writes requests per second. From 100 on it is a whole number, as it rests on a count:
// "1,204/s", "41.2/s".
func Rate(perSecond float64) string {
	if perSecond >= 100 && !math.IsInf(perSecond, 0) && perSecond < 1e15 {
		return Count(uint64(math.Round(perSecond))) + "/s"
	}
	return unit(Number(perSecond), "/s")
}

// Share writes a share of 0..1 in percent: "1.25%". What is negative was not measured.
func Share(v float64) string {
	if v < 0 {
		return Unmeasured
	}
	return unit(Number(100*v), "%")
}

// Change writes a relative change with its sign: "+25%", "-4.8%", "+0%".
func Change(v float64) string {
	s := Number(100 * v)
	if s == Unmeasured {
		return s
	}
	if !strings.HasPrefix(s, "-") {
		s = "+" + s
	}
	return s + "%"
}

// Interval writes "low to high" of values in one unit, as written by write. An interval without an
// upper bound says so, in place of inventing one.
func Interval(lo, hi float64, unbounded bool, write func(float64) string) string {
	if unbounded {
		return "from " + write(lo) + ", no upper bound"
	}
	return write(lo) + " to " + write(hi)
}

// Duration writes a length of time for people: "412 µs", "41.2 ms", "10 s", "2 min 30 s",
// "1 h 5 min".
func Duration(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", max(-d, 0)
	}
	switch {
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return sign + strconv.FormatInt(int64(d), 10) + " ns"
	case d < time.Millisecond:
		return sign + Number(float64(d)/1e3) + " µs"
	case d < time.Second:
		return sign + Number(float64(d)/1e6) + " ms"
	case d < time.Minute:
		return sign + Number(d.Seconds()) + " s"
	}
	return sign + long(d)
}

func long(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	parts := make([]string, 0, 2)
	if h > 0 {
		parts = append(parts, Count(uint64(h))+" h")
	}
	if m > 0 {
		parts = append(parts, Count(uint64(m))+" min")
	}
	if s > 0 && h == 0 {
		parts = append(parts, Count(uint64(s))+" s")
	}
	return strings.Join(parts, " ")
}

// Bytes writes an amount of data in binary units: "512 B", "41.2 KiB", "1.2 GiB".
func Bytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v := float64(n)
	names := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for i, name := range names {
		v /= 1024
		if v < 1000 || i == len(names)-1 {
			return Number(v) + " " + name
		}
	}
	return ""
}

// unit appends a unit to a figure, and nothing to a missing one.
func unit(s, u string) string {
	if s == Unmeasured {
		return s
	}
	return s + u
}

// group separates the thousands of the whole part and drops the zeros that end a fraction.
func group(s string) string {
	sign, whole, frac := "", s, ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if i := strings.IndexByte(whole, '.'); i >= 0 {
		whole, frac = whole[:i], strings.TrimRight(whole[i+1:], "0")
	}
	var b strings.Builder
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(whole[i])
	}
	if frac != "" {
		b.WriteString("." + frac)
	}
	return sign + b.String()
}
