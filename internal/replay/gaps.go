package replay

import (
	"math"
	"time"
)

// Fidelity is how far the gaps between requests, as sent, are from those that were recorded. Both are
// taken within each of the run's slices, from the time at which a request was due and at which its first
// byte was written.
type Fidelity struct {
	Gaps     uint64  `json:"gaps"`               // that were compared; 0: nothing was
	Distance float64 `json:"kolmogorov_smirnov"` // the largest difference of the two distribution functions, 0..1
}

// gapBins are the bins per factor of two of a gap, from 1 us on.
const (
	gapBins    = 64
	gapDoubles = 36 // up to some 19 hours
)

// gaps counts gaps in bins of about 1% width, as recorded and as sent.
type gaps struct {
	recorded, sent []uint64
	n              uint64
	lastDue        time.Duration
	lastSent       time.Duration // 0: the last one was not sent
}

func newGaps() gaps {
	return gaps{recorded: make([]uint64, gapBins*gapDoubles+1), sent: make([]uint64, gapBins*gapDoubles+1)}
}

// add takes the next request in the order of the recording; sent is 0 when it was not.
func (g *gaps) add(due, sent time.Duration) {
	if sent > 0 && g.lastSent > 0 {
		g.recorded[gapBin(due-g.lastDue)]++
		g.sent[gapBin(sent-g.lastSent)]++
		g.n++
	}
	g.lastDue, g.lastSent = due, sent
}

// gapBin is the bin of a gap; all below 1 us share the first.
func gapBin(d time.Duration) int {
	if d < time.Microsecond {
		return 0
	}
	return min(gapBins*gapDoubles, 1+int(gapBins*math.Log2(float64(d)/float64(time.Microsecond))))
}

func (g *gaps) merge(o gaps) {
	for i := range g.recorded {
		g.recorded[i] += o.recorded[i]
		g.sent[i] += o.sent[i]
	}
	g.n += o.n
}

// fidelity is the two-sample Kolmogorov-Smirnov statistic of the binned gaps.
func (g *gaps) fidelity() Fidelity {
	out := Fidelity{Gaps: g.n}
	if g.n == 0 {
		return out
	}
	var a, b uint64
	for i := range g.recorded {
		a, b = a+g.recorded[i], b+g.sent[i]
		out.Distance = max(out.Distance, math.Abs(float64(a)-float64(b))/float64(g.n))
	}
	return out
}
