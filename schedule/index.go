package schedule

import "time"

// Index gives any arrival of an open run without those before it. Before an arrival can be found it
// must be known how many arrivals earlier blocks hold, and for that each block's count is drawn once,
// when the index is made: 50 ns for 2,048 arrivals. The sums are kept for every stride-th block only,
// at most 4,096 of them, so that an index takes 32 KiB for any run and a look-up redraws fewer than
// stride counts. (The other way, splitting a total binomially down a tree, needs no table, but an exact
// binomial draw for each level of each look-up.)
//
// An Index is read-only once made and safe for concurrent use.
type Index struct {
	open   Open
	blocks blocks
	stride uint64
	before []uint64 // arrivals before block i*stride
	count  uint64
	even   uint64 // > 0: this many arrivals evenly over the duration, for AtLeast
}

const maxBefore = 4096

// NewIndex makes the index of an open run, or gives every problem of its plan.
func NewIndex(o Open) (*Index, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	x := &Index{open: o}
	if o.Kind == Even {
		x.count = evenCount(o)
	} else {
		x.sum()
	}
	if x.count < o.AtLeast {
		x.even, x.count = o.AtLeast, o.AtLeast
	}
	return x, nil
}

func (x *Index) sum() {
	x.blocks = newBlocks(x.open)
	x.stride = 1
	for x.blocks.n > x.stride*maxBefore {
		x.stride *= 2
	}
	for k := range x.blocks.n {
		if k%x.stride == 0 {
			x.before = append(x.before, x.count)
		}
		x.count += x.blocks.count(k)
	}
}

// Count is the number of arrivals of the whole run.
func (x *Index) Count() uint64 { return x.count }

// At gives arrival i; false when the run has no such arrival.
func (x *Index) At(i uint64) (Arrival, bool) { return x.Seek(i).Next() }

// Seek gives the schedule from arrival i on.
func (x *Index) Seek(i uint64) Schedule {
	switch {
	case x.even > 0:
		return &spread{next: min(i, x.even), n: x.even, total: uint64(x.open.Duration)}
	case x.open.Kind == Even:
		return &even{next: min(i, x.count), n: x.count, rate: x.open.Rate}
	}
	s := &stream{blocks: x.blocks, k: x.blocks.n, index: x.count}
	if i >= x.count {
		return s
	}
	lo, hi := 0, len(x.before)
	for hi-lo > 1 { // last stride that begins at or before arrival i
		if mid := (lo + hi) / 2; x.before[mid] <= i {
			lo = mid
		} else {
			hi = mid
		}
	}
	s.k, s.index = uint64(lo)*x.stride, x.before[lo]
	for {
		n := s.blocks.count(s.k)
		if i < s.index+n {
			break
		}
		s.index += n
		s.k++
	}
	s.skip(i - s.index)
	return s
}

// stream walks the blocks of a Poisson or bursty run.
type stream struct {
	blocks blocks
	k      uint64 // next block to open
	index  uint64 // of the next arrival
	now    block
}

// Next implements Schedule.
func (s *stream) Next() (Arrival, bool) {
	for s.now.left == 0 {
		if s.k >= s.blocks.n {
			return Arrival{}, false
		}
		s.now = s.blocks.draw(s.k)
		s.k++
	}
	a := Arrival{Index: s.index, Due: s.now.next()}
	s.index++
	return a, true
}

// skip passes over n arrivals.
func (s *stream) skip(n uint64) {
	for range n {
		if _, ok := s.Next(); !ok {
			return
		}
	}
}

// even places arrival i at i/rate.
type even struct {
	next, n uint64
	rate    float64
}

// Next implements Schedule.
func (e *even) Next() (Arrival, bool) {
	if e.next >= e.n {
		return Arrival{}, false
	}
	a := Arrival{Index: e.next, Due: evenDue(e.next, e.rate)}
	e.next++
	return a, true
}

func (e *even) skip(n uint64) { e.next = min(e.n, e.next+n) }

// evenDue does not fall as i grows, because neither rounding does.
func evenDue(i uint64, rate float64) time.Duration {
	return time.Duration(float64(float64(i)*1e9) / rate)
}

// evenCount is the number of arrivals due before the end: the estimate, put right by the rounding of
// evenDue.
func evenCount(o Open) uint64 {
	n := uint64(float64(o.Rate*float64(o.Duration)) / 1e9)
	for n > 0 && evenDue(n-1, o.Rate) >= o.Duration {
		n--
	}
	for evenDue(n, o.Rate) < o.Duration {
		n++
	}
	return n
}

// spread places n arrivals evenly over the whole duration.
type spread struct {
	next, n uint64
	total   uint64 // ns
}

// Next implements Schedule.
func (p *spread) Next() (Arrival, bool) {
	if p.next >= p.n {
		return Arrival{}, false
	}
	a := Arrival{Index: p.next, Due: time.Duration(mulDiv(p.next, p.total, p.n))}
	p.next++
	return a, true
}

func (p *spread) skip(n uint64) { p.next = min(p.n, p.next+n) }
