package record

import (
	"iter"
	"math/bits"
	"time"
)

// Histogram is an HdrHistogram-compatible log-linear histogram of nanoseconds (EG-8): 2,048 linear
// sub-buckets, then 1,024 for each doubling, so that a value is known to 3 significant digits; the
// coarse kind has 256 and 128, for 2 digits. The zero value is an empty histogram of 3 digits.
//
// It covers 0 ns to MaxValue (73 minutes). A value outside is recorded at the nearest end and
// counted by Clamped; Max, Min and Mean stay exact. Memory grows with the range that is in use and is
// bounded by the number of buckets, not by the number of values: see counters.
//
// It is not safe for concurrent use.
type Histogram struct {
	coarse  bool
	cells   counters
	count   uint64
	clamped uint64
	min     time.Duration // meaningful when count > 0
	max     time.Duration
	sumHi   uint64 // 128-bit sum of the values, so that the mean is exact
	sumLo   uint64
}

// MaxValue is the largest value that is not clamped.
const MaxValue = time.Duration(1<<42 - 1)

const (
	fineBits   = 11 // log2 of the linear sub-buckets: the first power of two over 2*10^3
	coarseBits = 8  // the same for 2*10^2
	valueBits  = 42
)

// NewHistogram makes an empty histogram of 3 significant digits.
func NewHistogram() *Histogram { return &Histogram{} }

// NewCoarse makes an empty histogram of 2 significant digits, an eighth of the size.
func NewCoarse() *Histogram { return &Histogram{coarse: true} }

// Record counts one value. It allocates only when a value opens a range that was not in use.
func (h *Histogram) Record(d time.Duration) {
	v := d
	if uint64(d) > uint64(MaxValue) { // negative values are huge here
		h.clamped++
		if v = MaxValue; d < 0 {
			v, d = 0, 0
		}
	}
	if h.count == 0 || d < h.min {
		h.min = d
	}
	h.max = max(h.max, d)
	h.count++
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, uint64(d), 0)
	h.sumHi += carry
	h.cells.inc(h.slot(uint64(v)), h.slots())
}

// digitBits is log2 of the number of linear sub-buckets.
func (h *Histogram) digitBits() int {
	if h.coarse {
		return coarseBits
	}
	return fineBits
}

// slots is the number of buckets.
func (h *Histogram) slots() int {
	b := h.digitBits()
	return (valueBits - b + 2) << (b - 1)
}

// slot is the bucket of a value: a doubling has half the sub-buckets, and its lower half would repeat
// the doubling before.
func (h *Histogram) slot(v uint64) int {
	if h.coarse {
		b := bits.Len64(v|(1<<coarseBits-1)) - coarseBits
		return b<<(coarseBits-1) + int(v>>b)
	}
	b := bits.Len64(v|(1<<fineBits-1)) - fineBits
	return b<<(fineBits-1) + int(v>>b)
}

// bounds are the lowest and the highest value that share a bucket.
func (h *Histogram) bounds(slot int) (lo, hi time.Duration) {
	half := 1 << (h.digitBits() - 1)
	b := max(0, slot/half-1)
	lo = time.Duration(slot-b*half) << b
	return lo, lo + 1<<b - 1
}

// Count is the number of values.
func (h *Histogram) Count() uint64 { return h.count }

// Clamped is the number of values outside [0, MaxValue].
func (h *Histogram) Clamped() uint64 { return h.clamped }

// Max is the exact largest value; 0 when there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Min is the exact smallest value; 0 when there is none.
func (h *Histogram) Min() time.Duration { return h.min }

// Mean is the exact sum divided by the count, rounded down; 0 when there is no value.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	q, _ := bits.Div64(h.sumHi, h.sumLo, h.count) // sum <= count*(2^63-1), so the quotient fits
	return time.Duration(q)
}

// Quantile is the nearest-rank quantile num/den (CO-4), e.g. Quantile(95, 100): the value of rank
// ceil(n*num/den), as ValueAtRank gives it. The rank is taken in integers of 128 bits. It is 0 when
// there is no value or den is 0.
func (h *Histogram) Quantile(num, den uint64) time.Duration {
	return h.ValueAtRank(rank(h.count, num, den))
}

// rank is ceil(n*num/den) held to 1..n; 0 when n or den is 0.
func rank(n, num, den uint64) uint64 {
	if n == 0 || den == 0 {
		return 0
	}
	if num >= den {
		return n
	}
	hi, lo := bits.Mul64(n, num)
	q, rem := bits.Div64(hi, lo, den)
	if rem > 0 {
		q++
	}
	return max(1, q)
}

// ValueAtRank is the value of the given rank in ascending order, from 1: the highest value of its
// bucket, but never over Max. It is 0 for rank 0 and Max for a rank over Count.
func (h *Histogram) ValueAtRank(rank uint64) time.Duration {
	if rank == 0 || h.count == 0 {
		return 0
	}
	var seen uint64
	for slot, n := range h.cells.all() {
		if seen += n; seen < rank {
			continue
		}
		if slot == h.slots()-1 {
			return h.max // clamped values stand here
		}
		_, hi := h.bounds(slot)
		return min(hi, h.max)
	}
	return h.max
}

// Bucket is a range of values that the histogram does not tell apart, both ends included.
type Bucket struct {
	Lo, Hi time.Duration
	Count  uint64
}

// Buckets yields the buckets that hold values, in ascending order.
func (h *Histogram) Buckets() iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		for slot, n := range h.cells.all() {
			lo, hi := h.bounds(slot)
			if !yield(Bucket{Lo: lo, Hi: hi, Count: n}) {
				return
			}
		}
	}
}

// Merge adds all values of o, which stays as it is. A fine histogram merges into a coarse one without
// loss beyond the coarse one's own; the other way round is a defect of the caller and panics.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.count == 0 {
		return
	}
	if o.coarse && !h.coarse {
		panic("record: a coarse histogram cannot be merged into a fine one")
	}
	for slot, n := range o.cells.all() {
		if o.coarse != h.coarse {
			lo, _ := o.bounds(slot)
			slot = h.slot(uint64(lo))
		}
		h.cells.add(slot, n, h.slots())
	}
	if h.count == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	h.count += o.count
	h.clamped += o.clamped
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, o.sumLo, 0)
	h.sumHi += o.sumHi + carry
}

// Clone gives an independent copy.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.cells = h.cells.clone()
	return &c
}

// Reset empties the histogram and keeps its memory for what comes next.
func (h *Histogram) Reset() {
	cells := h.cells
	cells.reset()
	*h = Histogram{coarse: h.coarse, cells: cells}
}

// Bytes is the memory that the counters hold.
func (h *Histogram) Bytes() int { return h.cells.bytes() }
