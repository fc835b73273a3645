package traffic

import (
	"math"
	"math/bits"
)

// Mix tells which route each request takes. It is a pure function of (seed, index), so that any
// number of workers in any order agree. Drawing takes constant time (Vose's alias method).
type Mix struct {
	seed  uint64
	first uint64
	alias alias
}

// NewMix makes a Mix of weights that are not negative; their sum need not be 1. With firstEach the
// first len(weights) indices take each route once, whatever its weight, as a smoke does. It panics
// when no weight is positive or one is negative, infinite or no number: that is the caller's defect.
func NewMix(weights []float64, seed uint64, firstEach bool) *Mix {
	m := &Mix{seed: mix64(seed ^ 0x6d69780000000001), alias: newAlias(weights)}
	if firstEach {
		m.first = uint64(len(weights))
	}
	return m
}

// Route is the route of request i, an index into the weights. It does not allocate.
func (m *Mix) Route(i uint64) uint32 {
	if i < m.first {
		return uint32(i)
	}
	return m.alias.at(draw(m.seed, i))
}

// draw is the i-th random word of a stream. Streams of different seeds are unrelated.
func draw(seed, i uint64) uint64 {
	return mix64(mix64(i*0x9e3779b97f4a7c15+seed) ^ seed)
}

// alias is a discrete distribution in two arrays: column c stands for itself below cut[c] and for
// other[c] above.
type alias struct {
	cut   []uint64
	other []uint32
}

func newAlias(weights []float64) alias {
	n := len(weights)
	var sum float64
	for _, w := range weights {
		if w < 0 || math.IsNaN(w) || math.IsInf(w, 0) {
			panic("traffic: a weight that is negative, infinite or no number")
		}
		sum += w
	}
	if !(sum > 0) || math.IsInf(sum, 0) || n > math.MaxUint32 {
		panic("traffic: no positive weight")
	}
	a := alias{cut: make([]uint64, n), other: make([]uint32, n)}
	part := make([]float64, n)
	var small, large []uint32
	for i, w := range weights {
		part[i] = w / sum * float64(n)
		if part[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.cut[s], a.other[s] = share(part[s]), l
		part[l] -= 1 - part[s]
		if part[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	// What is left is a full column but for rounding; a weight of zero must not get one that way.
	heaviest := uint32(0)
	for i, w := range weights {
		if w > weights[heaviest] {
			heaviest = uint32(i)
		}
	}
	for _, i := range append(small, large...) {
		a.cut[i], a.other[i] = math.MaxUint64, i
		if weights[i] == 0 {
			a.cut[i], a.other[i] = 0, heaviest
		}
	}
	return a
}

// share turns a number in [0, 1) into a cut in the range of a word.
func share(p float64) uint64 {
	if p <= 0 {
		return 0
	}
	return uint64(p * (1 << 63) * 2)
}

// at uses one word twice: its product with the number of columns has the column above and a uniform
// remainder below.
func (a *alias) at(word uint64) uint32 {
	column, remainder := bits.Mul64(word, uint64(len(a.cut)))
	if remainder < a.cut[column] {
		return uint32(column)
	}
	return a.other[column]
}
