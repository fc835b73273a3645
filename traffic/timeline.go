package traffic

import (
	"cmp"
	"slices"
)

// timelineCells bounds a timeline. A window of up to 1,048,576 cells of the finest width (twelve days
// of seconds) is counted at that width; a longer one at the least power of two times it that fits.
const timelineCells = 1 << 20

// timeline counts in cells of equal width that lie on a fixed grid. When the span outgrows the cells,
// the width doubles and neighbours merge, so that its content depends only on what was added.
type timeline struct {
	ceil   bool // cells are instants and an addition goes to the next one, not to the cell it lies in
	shift  uint // a cell covers 1<<shift units
	base   int64
	counts []int64
	lo, hi int64 // first and last cell used, in the present width
	used   bool
}

func (t *timeline) cell(unit int64) int64 {
	if t.ceil {
		return -(-unit >> t.shift)
	}
	return unit >> t.shift
}

func (t *timeline) add(unit int64, n int64) {
	c := t.cell(unit)
	if !t.used {
		t.used, t.lo, t.hi, t.base = true, c, c, c
		t.counts = append(t.counts[:0], 0)
	}
	if c < t.lo || c > t.hi {
		c = t.widen(unit)
	}
	t.counts[c-t.base] += n
}

// widen makes room for a cell outside lo..hi and returns the cell's number.
func (t *timeline) widen(unit int64) int64 {
	for {
		c := t.cell(unit)
		lo, hi := min(t.lo, c), max(t.hi, c)
		if hi-lo < timelineCells {
			t.lo, t.hi = lo, hi
			t.grow()
			return c
		}
		t.double()
	}
}

// grow makes counts cover lo..hi, with room to spare so that growing is rare.
func (t *timeline) grow() {
	end := t.base + int64(len(t.counts))
	if t.lo >= t.base && t.hi < end {
		return
	}
	spare := min(int64(timelineCells), t.hi-t.lo+64)
	base, last := t.base, end-1
	if t.lo < base {
		base = t.lo - spare
	}
	if t.hi > last {
		last = t.hi + spare
	}
	counts := make([]int64, last-base+1)
	copy(counts[t.base-base:], t.counts)
	t.base, t.counts = base, counts
}

func (t *timeline) double() {
	old, base, lo, hi := t.counts, t.base, t.lo, t.hi
	half := func(c int64) int64 {
		if t.ceil {
			return -(-c >> 1)
		}
		return c >> 1
	}
	t.shift++
	t.lo, t.hi = half(lo), half(hi)
	t.base = t.lo
	t.counts = make([]int64, t.hi-t.lo+1)
	for c := lo; c <= hi; c++ {
		t.counts[half(c)-t.base] += old[c-base]
	}
}

// cells gives the used part, first cell first.
func (t *timeline) cells() []int64 {
	if !t.used {
		return nil
	}
	return t.counts[t.lo-t.base : t.hi-t.base+1]
}

// dispersion is the variance over the mean of the counts per cell: 1 for Poisson arrivals, 0 when
// there are fewer than two cells. The width is one second unless the window is longer than twelve
// days; then it is the width of the cells.
func (t *timeline) dispersion() float64 {
	cells := t.cells()
	if len(cells) < 2 {
		return 0
	}
	var sum float64
	for _, c := range cells {
		sum += float64(c)
	}
	mean := sum / float64(len(cells))
	var squares float64
	for _, c := range cells {
		squares += float64((float64(c) - mean) * (float64(c) - mean))
	}
	return squares / float64(len(cells)-1) / mean
}

// maxCurve bounds the rate curve of a profile: a day of minutes.
const maxCurve = 1440

// curve sums the cells of one second or more into buckets of one minute from the start of the
// window, or of the least power of two times a minute that gives at most maxCurve of them.
func (t *timeline) curve() (perBucket []uint64, bucketSeconds float64) {
	cells := t.cells()
	if len(cells) == 0 {
		return nil, 0
	}
	width, bucket := int64(1)<<t.shift, int64(60)
	for (int64(len(cells))*width+bucket-1)/bucket > maxCurve {
		bucket *= 2
	}
	perBucket = make([]uint64, (int64(len(cells)-1)*width)/bucket+1)
	for i, c := range cells {
		perBucket[int64(i)*width/bucket] += uint64(c)
	}
	return perBucket, float64(bucket)
}

// maxGaps is how many gaps a profile names, the longest.
const maxGaps = 20

// silence is a stretch without arrivals, in whatever unit the finder counts.
type silence struct{ from, length int64 }

// exactStamps is how many timestamps are kept to find gaps exactly.
const exactStamps = 1 << 16

// stampSilences finds the gaps longer than ten times the median gap among exact timestamps. known is
// false when that median is 0, as it is in a busy log whose times are whole seconds: then cells tell
// more.
func stampSilences(stamps []int64) (gaps []silence, known bool) {
	if len(stamps) < 3 {
		return nil, true
	}
	slices.Sort(stamps)
	lengths := make([]int64, len(stamps)-1)
	for i := range lengths {
		lengths[i] = stamps[i+1] - stamps[i]
	}
	sorted := slices.Clone(lengths)
	slices.Sort(sorted)
	median := sorted[(len(sorted)-1)/2]
	if median == 0 {
		return nil, false
	}
	for i, l := range lengths {
		if l/10 > median || l/10 == median && l%10 > 0 {
			gaps = append(gaps, silence{stamps[i], l})
		}
	}
	return longest(gaps), true
}

// longest keeps maxGaps of them, in order of time.
func longest(all []silence) []silence {
	slices.SortFunc(all, func(a, b silence) int {
		return cmp.Or(cmp.Compare(b.length, a.length), cmp.Compare(a.from, b.from))
	})
	all = all[:min(len(all), maxGaps)]
	slices.SortFunc(all, func(a, b silence) int { return cmp.Compare(a.from, b.from) })
	return all
}

// silences finds the gaps longer than ten times the median gap, in cells. Times are known to one cell: c
// arrivals in a cell count as c-1 gaps of width/c, and only a gap that leaves a whole cell empty can
// be named.
func (t *timeline) silences() []silence {
	cells := t.cells()
	var gaps []weighted
	var all []silence
	last := int64(-1)
	for i, c := range cells {
		if c == 0 {
			continue
		}
		if last >= 0 {
			d := int64(i) - last
			gaps = append(gaps, weighted{float64(d), 1})
			if d >= 2 {
				all = append(all, silence{t.lo + last, d})
			}
		}
		if c > 1 {
			gaps = append(gaps, weighted{1 / float64(c), c - 1})
		}
		last = int64(i)
	}
	median := weightedMedian(gaps)
	return longest(slices.DeleteFunc(all, func(s silence) bool { return float64(s.length) <= 10*median }))
}

type weighted struct {
	value float64
	n     int64
}

func weightedMedian(w []weighted) float64 {
	slices.SortFunc(w, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	var total, seen int64
	for _, x := range w {
		total += x.n
	}
	for _, x := range w {
		if seen += x.n; 2*seen >= total {
			return x.value
		}
	}
	return 0
}

// overlap counts how many requests were in flight at once. Up to exactIntervals it sweeps all end
// points; beyond, it samples at the instants of a grid, 1 ms apart at best and 1,048,576 of them at
// most, which can only miss short peaks, never invent one.
type overlap struct {
	starts, ends []int64
	grid         *timeline // +1 at a start, -1 at an end, both moved to the next instant
}

const (
	exactIntervals = 1 << 18
	gridUnit       = 1_000_000 // ns
)

// add records one request in flight over [start, end) nanoseconds.
func (o *overlap) add(start, end int64) {
	if end <= start {
		end = start + 1 // it was there for an instant
	}
	if o.grid == nil && len(o.starts) < exactIntervals {
		o.starts, o.ends = append(o.starts, start), append(o.ends, end)
		return
	}
	o.toGrid()
	o.mark(start, end)
}

func (o *overlap) mark(start, end int64) {
	o.grid.add(ceilDiv(start, gridUnit), 1)
	o.grid.add(ceilDiv(end, gridUnit), -1)
}

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// peak is the greatest number in flight; 0 when no duration was known.
func (o *overlap) peak() int {
	var now, top int64
	if o.grid != nil {
		for _, c := range o.grid.cells() {
			now += c
			top = max(top, now)
		}
		return int(max(top, 1))
	}
	slices.Sort(o.starts)
	slices.Sort(o.ends)
	e := 0
	for i, s := range o.starts {
		for o.ends[e] <= s {
			e++
		}
		top = max(top, int64(i+1-e))
	}
	return int(top)
}

// merge adds what o counted.
func (t *timeline) merge(o *timeline) {
	if !o.used {
		return
	}
	if !t.used {
		*t = *o
		return
	}
	for t.shift < o.shift {
		t.double()
	}
	for c := o.lo; c <= o.hi; c++ {
		if n := o.counts[c-o.base]; n != 0 || c == o.lo || c == o.hi {
			t.add(c<<o.shift, n)
		}
	}
}

// merge adds what o saw in flight.
func (o *overlap) merge(p *overlap) {
	if o.grid == nil && p.grid == nil && len(o.starts)+len(p.starts) <= exactIntervals {
		o.starts, o.ends = append(o.starts, p.starts...), append(o.ends, p.ends...)
		return
	}
	o.toGrid()
	p.toGrid()
	o.grid.merge(p.grid)
}

func (o *overlap) toGrid() {
	if o.grid != nil {
		return
	}
	o.grid = &timeline{ceil: true}
	for i := range o.starts {
		o.mark(o.starts[i], o.ends[i])
	}
	o.starts, o.ends = nil, nil
}
