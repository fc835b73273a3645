package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPace(t *testing.T) {
	for _, c := range []struct {
		pace     string
		recorded time.Duration
		due      time.Duration
		ok       bool
	}{
		{"1", 90 * time.Second, 90 * time.Second, true},
		{"2", 90 * time.Second, 45 * time.Second, true},
		{"0.5", 90 * time.Second, 3 * time.Minute, true},
		{"10s@1 5m@5 1h@10", 10 * time.Second, 10 * time.Second, true},
		{"10s@1 5m@5 1h@10", 15 * time.Second, 11 * time.Second, true},
		{"10s@1 5m@5 1h@10", 10*time.Second + 25*time.Minute, 310 * time.Second, true},
		{"10s@1 5m@5 1h@10", 20*time.Second + 25*time.Minute, 311 * time.Second, true},
		{"10s@1 5m@5", 10*time.Second + 25*time.Minute, 310 * time.Second, false},
		{"10s@1", 10*time.Second - 1, 10*time.Second - 1, true},
		{"10s@1", 10 * time.Second, 10 * time.Second, false},
		{"1", -time.Second, 0, true},
	} {
		p, err := ParsePace(c.pace)
		if err != nil {
			t.Fatal(err)
		}
		if due, ok := p.Due(c.recorded); due != c.due || ok != c.ok {
			t.Errorf("%s: %s is due at %s, %v; want %s, %v", c.pace, c.recorded, due, ok, c.due, c.ok)
		}
	}
	if due, ok := (Pace{}).Due(time.Hour); due != time.Hour || !ok {
		t.Errorf("the zero pace: %s, %v", due, ok)
	}
	for _, bad := range []string{"", " ", "0", "-1", "NaN", "Inf", "1e9", "x", "10s", "10s@", "@2", "10@2", "0s@1", "-5s@1", "10s@0", "10s@1 2", "9000000h@1"} {
		if p, err := ParsePace(bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
}

// TestPaceNeverFalls: whatever the phases are, a later request is never due before an earlier one, and
// none behind the end of the last phase.
func TestPaceNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var words []string
		for range rapid.IntRange(1, 5).Draw(t, "phases") {
			words = append(words, fmt.Sprintf("%s@%g", rapid.Map(rapid.Int64Range(1, int64(time.Hour)), func(n int64) time.Duration { return time.Duration(n) }).Draw(t, "length"),
				rapid.Float64Range(0.001, 1000).Draw(t, "speed")))
		}
		p, err := ParsePace(strings.Join(words, " "))
		if err != nil {
			t.Fatal(err)
		}
		last, open := time.Duration(0), true
		at := time.Duration(0)
		for range 200 {
			at += time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "gap"))
			due, ok := p.Due(at)
			if due < last || due > p.Length() || ok && !open || ok && due >= p.Length() {
				t.Fatalf("%v: %s is due at %s (%v) behind %s (%v), of %s", words, at, due, ok, last, open, p.Length())
			}
			last, open = due, ok
		}
	})
}

func FuzzParsePace(f *testing.F) {
	f.Add("10s@1 5m@5 1h@10")
	f.Add("2.5")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePace(text)
		if err != nil {
			return
		}
		a, _ := p.Due(time.Second)
		if b, _ := p.Due(2 * time.Second); a < 0 || b < a {
			t.Errorf("%q: %s, %s", text, a, b)
		}
	})
}
