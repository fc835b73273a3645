package traffic

import (
	"math/bits"
	"slices"
)

// The number of samples that a route keeps exactly. Beyond it they go to a log-linear histogram
// whose buckets are narrower than 0.1% of their value. Past manyRequests in all, routes keep fewer
// exact samples, so that memory is bounded whatever the input's length. Both steps depend on counts
// only, never on order.
const (
	exactSamples     = 16384
	exactSamplesMany = 1024
	manyRequests     = 1 << 22
)

// dist is a multiset of non-negative values, exact while it is small.
type dist struct {
	exact []int64
	bins  map[int32]uint64 // nil while exact
	n     uint64
	max   int64
}

func (d *dist) add(v int64, limit int) {
	d.n++
	d.max = max(d.max, v)
	if d.bins == nil && len(d.exact) < limit {
		d.exact = append(d.exact, v)
		return
	}
	d.toBins()
	d.bins[bin(v)]++
}

func (d *dist) toBins() {
	if d.bins == nil {
		d.bins = make(map[int32]uint64)
	}
	for _, v := range d.exact {
		d.bins[bin(v)]++
	}
	d.exact = nil
}

// merge adds o; o must not be used afterwards.
func (d *dist) merge(o *dist, limit int) {
	d.n += o.n
	d.max = max(d.max, o.max)
	if d.bins == nil && o.bins == nil && d.n <= uint64(limit) {
		d.exact = append(d.exact, o.exact...)
		return
	}
	d.toBins()
	for _, v := range o.exact {
		d.bins[bin(v)]++
	}
	for b, n := range o.bins {
		d.bins[b] += n
	}
}

// settle turns exact samples over the limit into bins, when the limit has fallen meanwhile.
func (d *dist) settle(limit int) {
	if len(d.exact) > limit {
		d.toBins()
	}
}

// quantiles are nearest rank, x(ceil(p n)), divided by unit; nil without samples. A division gives
// the float nearest to the decimal figure, so that 22124797 ns stand in a profile as 22.124797 ms.
func (d *dist) quantiles(unit float64) *Quantiles {
	if d.n == 0 {
		return nil
	}
	slices.Sort(d.exact)
	keys := make([]int32, 0, len(d.bins))
	for b := range d.bins {
		keys = append(keys, b)
	}
	slices.Sort(keys)
	at := func(percent uint64) float64 {
		rank := (d.n*percent + 99) / 100
		if d.bins == nil {
			return float64(d.exact[rank-1]) / unit
		}
		var seen uint64
		for _, b := range keys {
			if seen += d.bins[b]; seen >= rank {
				return float64(min(binValue(b), d.max)) / unit
			}
		}
		return float64(d.max) / unit
	}
	return &Quantiles{Samples: d.n, P50: at(50), P95: at(95), P99: at(99), Max: float64(d.max) / unit}
}

// Values below 2048 have a bin each; above, each power of two has 1024 bins.
const subBits = 10

func bin(v int64) int32 {
	shift := max(0, bits.Len64(uint64(v))-subBits-1)
	return int32(shift)<<subBits + int32(v>>shift)
}

// binValue is the middle of a bin.
func binValue(b int32) int64 {
	if b < 2<<subBits {
		return int64(b)
	}
	shift := b>>subBits - 1
	low := int64(b-shift<<subBits) << shift
	return low + int64(1)<<shift/2
}
