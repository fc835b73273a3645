package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"seatrial/evidence"
	"seatrial/report/figure"
)

// replayed says what became of a recording, and how faithfully it was sent.
func replayed(run *evidence.Run) []pair {
	r := run.Replay
	if r == nil {
		return nil
	}
	c := r.Counts
	out := []pair{{"recording", fmt.Sprintf("%s at pace %s, %s sent", figure.Counted(c.Records, "request"), r.Pace, figure.Count(c.Sent))}}
	if r.Loops > 1 {
		out[0].Value += fmt.Sprintf(", in %d loops", r.Loops)
	}
	for _, why := range slices.SortedFunc(maps.Keys(c.Withheld), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Withheld[b], c.Withheld[a]), cmp.Compare(a, b))
	}) {
		out = append(out, pair{"held back", fmt.Sprintf("%s: %s", figure.Counted(c.Withheld[why], "request"), why)})
	}
	for _, x := range []struct {
		n    uint64
		what string
	}{{c.Untimed, "without a time, and left out"}, {c.Late, "too far out of order to be put in their place, and sent at once"},
		{c.Spread, "with the time of others, and spread over the unit of the clock"}, {c.Starved, "due before the source had given them"}} {
		if x.n > 0 {
			out = append(out, pair{"records", figure.Count(x.n) + " " + x.what})
		}
	}
	if f := r.Fidelity; f.Gaps > 0 {
		out = append(out, pair{"fidelity", fmt.Sprintf("Kolmogorov-Smirnov distance %.3f between %s as recorded and as sent", f.Distance, figure.Counted(f.Gaps, "gap"))})
	}
	return out
}
