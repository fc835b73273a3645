package traffic

import (
	"cmp"
	"math"
	"slices"
)

// Popularity tells how popular the values of one placeholder were, without the values (TR-24).
type Popularity struct {
	Requests uint64 `json:"requests"` // that had a value there
	// Distinct is the number of different values. It is exact unless DistinctError says otherwise.
	Distinct      uint64  `json:"distinct"`
	DistinctError float64 `json:"distinct_error,omitempty"` // relative standard error of the estimate
	// Exponent is that of the Zipf law of greatest likelihood for the most popular values; nil when too
	// few values came again to tell.
	Exponent      *float64 `json:"zipf_exponent,omitempty"`
	ExponentError float64  `json:"zipf_exponent_error,omitempty"` // its standard error
	// Support is over how many values the law runs: more than Distinct when some were not met by chance.
	Support uint64 `json:"zipf_values,omitempty"`
}

// Law is the fitted law; false when there is none.
func (p *Popularity) Law() (Law, bool) {
	if p == nil || p.Exponent == nil {
		return Law{}, false
	}
	return Law{Exponent: *p.Exponent, Values: p.Support}, true
}

const (
	// firstHold is how many values of one place are told apart after a purge; up to twice as many are
	// counted exactly.
	firstHold = 8192
	// maxHeld bounds the values that are told apart in all places together. Beyond it the number for
	// each place halves.
	maxHeld = 1 << 20
	// sketchError is the relative standard error of a sketch: 1.04/sqrt(4096).
	sketchError = 0.01625
	// maxSigma is the standard error beyond which an exponent is not told.
	maxSigma = 0.1
)

// tally counts how often each value stood at one place of a route. It knows values by their salted
// hashes only. While there are few values it is exact and depends on no order; beyond, it keeps the most
// popular ones (Space-Saving by batches; Metwally, Agrawal and El Abbadi 2005) and a sketch of how many
// there are.
type tally struct {
	only  uint64 // the single value, while many is nil
	total uint64 // requests
	many  *many
}

type many struct {
	held     map[uint64]held
	floor    uint64  // a value that is not held was seen this often at most
	distinct *sketch // nil while every value is held
}

// held is one value: n requests are known, and up to missed more may have come before it was held.
type held struct{ n, missed uint64 }

// add counts one request and tells how many values are held in addition.
func (t *tally) add(hash uint64, hold int) int {
	t.total++
	if t.many == nil {
		if t.total == 1 || t.only == hash {
			t.only = hash
			return 0
		}
		t.many = &many{held: map[uint64]held{t.only: {n: t.total - 1}, hash: {n: 1}}}
		return 2
	}
	m := t.many
	h, known := m.held[hash]
	if known {
		h.n++
		m.held[hash] = h
		return 0
	}
	before := len(m.held)
	m.held[hash] = held{1, m.floor}
	if m.distinct != nil {
		m.distinct.add(hash)
	}
	if len(m.held) > 2*hold {
		m.purge(hold)
	}
	return len(m.held) - before
}

// all gives the many form.
func (t *tally) all() *many {
	if t.many != nil {
		return t.many
	}
	return &many{held: map[uint64]held{t.only: {n: t.total}}}
}

// purge keeps the hold most popular values, or fewer where several are equally popular.
func (m *many) purge(hold int) {
	if len(m.held) <= hold {
		return
	}
	m.count()
	most := make([]uint64, 0, len(m.held))
	for _, h := range m.held {
		most = append(most, h.n+h.missed)
	}
	slices.Sort(most)
	floor := most[len(most)-hold-1]
	for hash, h := range m.held {
		if h.n+h.missed <= floor {
			delete(m.held, hash)
		}
	}
	m.floor = max(m.floor, floor)
}

// count makes the sketch of all values so far.
func (m *many) count() {
	if m.distinct != nil {
		return
	}
	m.distinct = newSketch()
	for hash := range m.held {
		m.distinct.add(hash)
	}
}

// merge adds o, which must not be used afterwards.
func (t *tally) merge(o *tally, hold int) {
	switch {
	case o.total == 0:
		return
	case t.total == 0:
		*t = *o
		return
	case t.many == nil && o.many == nil && t.only == o.only:
		t.total += o.total
		return
	}
	m, from := t.all(), o.all()
	t.total, t.many = t.total+o.total, m
	if m.distinct != nil || from.distinct != nil {
		m.count()
		from.count()
		m.distinct.merge(from.distinct)
	}
	for hash, h := range m.held {
		if _, both := from.held[hash]; !both && from.floor > 0 {
			m.held[hash] = held{h.n, h.missed + from.floor}
		}
	}
	for hash, h := range from.held {
		if mine, both := m.held[hash]; both {
			m.held[hash] = held{mine.n + h.n, mine.missed + h.missed}
		} else {
			m.held[hash] = held{h.n, h.missed + m.floor}
		}
	}
	m.floor += from.floor
	if len(m.held) > 2*hold {
		m.purge(hold)
	}
}

// shrink makes the tally hold less and tells how much it holds.
func (t *tally) shrink(hold int) int {
	if t.many == nil {
		return 0
	}
	if len(t.many.held) > 2*hold {
		t.many.purge(hold)
	}
	return len(t.many.held)
}

// top gives the counts of the most popular values as far as they are certain, most first. A value of
// which some requests were missed counts with the middle of what is possible.
func (t *tally) top() []uint64 {
	m := t.all()
	known := make([]held, 0, len(m.held))
	for _, h := range m.held {
		known = append(known, h)
	}
	likely := func(h held) uint64 { return h.n + h.missed/2 }
	slices.SortFunc(known, func(a, b held) int {
		return cmp.Or(cmp.Compare(likely(b), likely(a)), cmp.Compare(b.n, a.n))
	})
	var out []uint64
	for _, h := range known {
		if h.n < max(minTop, m.floor+1) || h.missed > h.n/8 || len(out) == maxRanks {
			break
		}
		out = append(out, likely(h))
	}
	byRank(out)
	return out
}

// popularity is what the profile says of the place; nil when no value was seen.
func (t *tally) popularity() *Popularity {
	if t.total == 0 {
		return nil
	}
	m := t.all()
	p := &Popularity{Requests: t.total, Distinct: uint64(len(m.held))}
	if m.distinct != nil {
		p.Distinct, p.DistinctError = min(t.total, uint64(math.Round(m.distinct.estimate()))), sketchError
	}
	if p.Distinct == 1 && p.Requests >= minTop {
		zero := 0.0
		p.Exponent, p.Support = &zero, 1
		return p
	}
	exponent, sigma := fitExponent(t.top())
	if sigma > maxSigma {
		return p
	}
	exponent, sigma = round4(exponent), max(0.0001, round4(sigma))
	p.Exponent, p.ExponentError = &exponent, sigma
	p.Support = support(exponent, t.total, float64(p.Distinct))
	return p
}

// round4 keeps four decimals: more would be noise, and would differ from machine to machine.
func round4(x float64) float64 { return math.Round(x*1e4) / 1e4 }
