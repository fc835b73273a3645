package schedule

import (
	"math"
	"time"
)

// A Poisson process over time cut into blocks: counts of disjoint blocks are independent, and given
// its count a block's arrivals are uniform order statistics. So each block can be drawn alone, from a
// generator keyed by (seed, block), and what all blocks together give is exactly one Poisson process.
// Under bursty arrivals the intensity of each second is itself a draw, keyed by (seed, second).

// blockMean is the number of arrivals that a block holds on average, at most.
const blockMean = 2048

// blocks is the cut of a run into blocks.
type blocks struct {
	open      Open
	per       uint64 // nanoseconds of a block (Poisson), of a segment (bursty)
	n         uint64 // blocks
	perSecond uint64 // bursty: blocks in each second
	shape     float64
}

func newBlocks(o Open) blocks {
	b := blocks{open: o}
	total := uint64(o.Duration)
	if o.Kind == Bursty && o.Dispersion > 1 {
		b.perSecond = uint64(math.Ceil(o.Rate / blockMean))
		// Counts with a gamma intensity of mean m and shape a have variance m + m*m/a, so that their
		// index of dispersion is 1 + m/a.
		b.shape = o.Rate / (o.Dispersion - 1)
		seconds, rest := total/uint64(time.Second), total%uint64(time.Second)
		b.n = seconds * b.perSecond
		if rest > 0 {
			b.n += b.perSecond
		}
		return b
	}
	b.per = uint64(min(max(1, math.Floor(blockMean*1e9/o.Rate)), float64(total)))
	b.n = (total + b.per - 1) / b.per
	return b
}

// span gives where block k begins, its length in nanoseconds, which may be 0, and its mean count.
func (b *blocks) span(k uint64) (start, length uint64, mean float64) {
	total := uint64(b.open.Duration)
	if b.perSecond == 0 {
		start = k * b.per
		length = min(b.per, total-start)
		return start, length, float64(b.open.Rate*float64(length)) / 1e9
	}
	second, part := k/b.perSecond, k%b.perSecond
	base := second * uint64(time.Second)
	start = base + mulDiv(part, uint64(time.Second), b.perSecond)
	end := min(base+mulDiv(part+1, uint64(time.Second), b.perSecond), total)
	if start >= end {
		return total, 0, 0
	}
	length = end - start
	g := newSource(b.open.Seed, forGamma, second)
	rate := float64(b.open.Rate * g.gamma(b.shape))
	return start, length, float64(rate*float64(length)) / 1e9
}

// count is the number of arrivals of block k.
func (b *blocks) count(k uint64) uint64 {
	_, _, mean := b.span(k)
	s := newSource(b.open.Seed, forArrivals, k)
	return s.poisson(mean)
}

// block is one block that is being walked. The order statistics of n uniform times are the partial
// sums of n+1 exponential gaps over their total (Devroye 1986, V.3.1): the gaps are drawn twice, once
// for the total and once to walk, so that no block has to be kept.
type block struct {
	rng    source
	left   uint64  // arrivals to come
	start  uint64  // ns
	length float64 // ns
	total  float64 // sum of all gaps
	sum    float64 // of the gaps so far
}

func (b *blocks) draw(k uint64) block {
	start, length, mean := b.span(k)
	x := block{rng: newSource(b.open.Seed, forArrivals, k), start: start, length: float64(length)}
	x.left = x.rng.poisson(mean)
	if x.left == 0 {
		return x
	}
	ahead := x.rng
	for range x.left + 1 {
		x.total += ahead.exponential()
	}
	return x
}

// next gives the due time of the next arrival of the block; left must be over 0.
func (x *block) next() time.Duration {
	x.left--
	x.sum += x.rng.exponential()
	at := int64(float64(x.length * (x.sum / x.total)))
	return time.Duration(x.start) + time.Duration(min(at, int64(x.length)-1))
}
