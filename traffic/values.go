package traffic

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
)

// The ways in which values are picked from a pool.
const (
	PickUniform  = "uniform"
	PickZipf     = "zipf"     // the r-th value with weight 1/r
	PickObserved = "observed" // each value with its own weight, or by the law of what was observed
)

// Pool holds the values of one placeholder, or indices into a list of tuples. Which value a request
// gets is a pure function of (seed, request, route, position).
type Pool struct {
	values []string // nil for a range of integers
	min    int64
	n      uint64
	alias  *alias // nil: uniform, or Zipf over more than maxAlias values
	zipf   *zipf
	ranks  *shuffle  // from the ranks of zipf to places; nil: they are the same
	weight []float64 // by place, where there is an alias for a law; nil otherwise
	digest string
}

// maxAlias bounds the table that a Zipf pool keeps. Above it, values are drawn by rejection, which
// needs logarithms and therefore may differ in rare draws between processor architectures.
const maxAlias = 1 << 20

// NewPool sorts values bytewise and takes weights along. weights is nil, or has one element per
// value, which PickObserved draws by and PickZipf ranks by, heaviest first; without weights Zipf
// ranks in sorted order. A value that stands twice counts twice. An empty pool is an error: a
// request without a value cannot be sent.
func NewPool(values []string, weights []uint64, pick string) (*Pool, error) {
	if len(values) == 0 {
		return nil, fmt.Errorf("the pool has no values")
	}
	if weights != nil && len(weights) != len(values) {
		return nil, fmt.Errorf("the pool has %d values and %d weights", len(values), len(weights))
	}
	type item struct {
		value  string
		weight uint64
	}
	items := make([]item, len(values))
	for i, v := range values {
		if v == "" {
			return nil, fmt.Errorf("value %d of the pool is empty", i+1)
		}
		items[i] = item{value: v, weight: 1}
		if weights != nil {
			items[i].weight = weights[i]
		}
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.weight, b.weight))
	})
	p := &Pool{n: uint64(len(items)), values: make([]string, len(items))}
	w := make([]uint64, len(items))
	h := sha256.New()
	for i, it := range items {
		p.values[i], w[i] = it.value, it.weight
		h.Write(binary.AppendUvarint(nil, uint64(len(it.value))))
		h.Write([]byte(it.value))
		h.Write(binary.AppendUvarint(nil, it.weight))
	}
	h.Write([]byte(pick))
	p.digest = hex.EncodeToString(h.Sum(nil))
	if err := p.pickBy(pick, w, weights != nil); err != nil {
		return nil, err
	}
	return p, nil
}

// NewIntPool holds the whole numbers from low to high, both included.
func NewIntPool(low, high int64, pick string) (*Pool, error) {
	if high < low {
		return nil, fmt.Errorf("the range ends at %d, before it starts at %d", high, low)
	}
	n := uint64(high) - uint64(low) + 1
	if n == 0 {
		return nil, fmt.Errorf("the range holds more than 2^64-1 numbers")
	}
	if pick == PickObserved {
		return nil, fmt.Errorf("pick: %s needs values that were observed; a range has none", PickObserved)
	}
	p := &Pool{min: low, n: n}
	sum := sha256.Sum256(fmt.Appendf(nil, "int %d %d %s", low, high, pick))
	p.digest = hex.EncodeToString(sum[:])
	if err := p.pickBy(pick, nil, false); err != nil {
		return nil, err
	}
	return p, nil
}

// NewPopularPool sorts values bytewise, each once, and draws them by a law: which value has which rank
// follows from the seed, not from its spelling. Ranks beyond the law's values are never drawn; a law over
// more values than there are ends with them.
func NewPopularPool(values []string, law Law, seed uint64) (*Pool, error) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	p, err := NewPool(slices.Compact(sorted), nil, PickUniform)
	if err != nil {
		return nil, err
	}
	return p, p.follow(law, seed)
}

// NewPopularIntPool is NewPopularPool of the whole numbers from low to high, both included.
func NewPopularIntPool(low, high int64, law Law, seed uint64) (*Pool, error) {
	p, err := NewIntPool(low, high, PickUniform)
	if err != nil {
		return nil, err
	}
	return p, p.follow(law, seed)
}

func (p *Pool) follow(law Law, seed uint64) error {
	if !(law.Exponent >= 0 && law.Exponent <= maxExponent) || law.Values == 0 {
		return fmt.Errorf("exponent %g over %d values is no law", law.Exponent, law.Values)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %g %d %d", p.digest, PickObserved, law.Exponent, law.Values, seed))
	p.digest = hex.EncodeToString(sum[:])
	ranks := newShuffle(seed, p.n)
	if p.n > maxAlias {
		p.zipf, p.ranks = newZipf(float64(min(p.n, law.Values)), law.Exponent), &ranks
		return nil
	}
	p.weight = make([]float64, p.n)
	for rank, w := range law.weights(int(p.n)) {
		p.weight[ranks.at(uint64(rank))] = w
	}
	p.setAlias(p.weight)
	return nil
}

// Weight is how often the value at place i is drawn, in proportion. It is known for a pool of a law that
// holds no more than a million values, and 1 for any other.
func (p *Pool) Weight(i uint64) float64 {
	if p.weight == nil {
		return 1
	}
	return p.weight[i]
}

func (p *Pool) pickBy(pick string, weights []uint64, weighted bool) error {
	switch pick {
	case PickUniform, "":
		return nil
	case PickZipf:
		if p.n > maxAlias {
			p.zipf = newZipf(float64(p.n), 1)
			return nil
		}
		p.setAlias(zipfWeights(int(p.n), weights))
		return nil
	case PickObserved:
		if !weighted {
			return fmt.Errorf("pick: %s needs values that were observed", PickObserved)
		}
		w := make([]float64, len(weights))
		var sum float64
		for i, n := range weights {
			w[i] = float64(n)
			sum += w[i]
		}
		if sum == 0 {
			return fmt.Errorf("no value of the pool was observed")
		}
		p.setAlias(w)
		return nil
	}
	return fmt.Errorf("pick: %s is none of uniform, zipf, observed", pick)
}

func (p *Pool) setAlias(weights []float64) {
	a := newAlias(weights)
	p.alias = &a
}

// zipfWeights gives 1/rank, where rank follows the weights, heaviest first, then the order.
func zipfWeights(n int, weights []uint64) []float64 {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if weights != nil {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	}
	out := make([]float64, n)
	for rank, i := range order {
		out[i] = 1 / float64(rank+1)
	}
	return out
}

// Len is the number of values.
func (p *Pool) Len() uint64 { return p.n }

// Digest is the hex SHA-256 of the sorted values, their weights and the way of picking.
func (p *Pool) Digest() string { return p.digest }

// Value is the i-th value in canonical order, 0 <= i < Len. It allocates for a range of integers.
func (p *Pool) Value(i uint64) string {
	if p.values == nil {
		return strconv.FormatInt(p.min+int64(i), 10)
	}
	return p.values[i]
}

// Pick is the place, in canonical order, of the value that request i of a route gets at a
// placeholder. It does not allocate.
func (p *Pool) Pick(seed, i uint64, route uint32, position int) uint64 {
	stream := mix64(seed ^ 0x76616c7565000001 ^ uint64(route)<<20 ^ uint64(position))
	switch {
	case p.alias != nil:
		return uint64(p.alias.at(draw(stream, i)))
	case p.zipf != nil && p.ranks != nil:
		return p.ranks.at(p.zipf.at(stream, i))
	case p.zipf != nil:
		return p.zipf.at(stream, i)
	}
	hi, _ := bits.Mul64(draw(stream, i), p.n)
	return hi
}

// At is the value itself. It does not allocate for a pool of strings.
func (p *Pool) At(seed, i uint64, route uint32, position int) string {
	return p.Value(p.Pick(seed, i, route, position))
}

// AppendAt appends the value to dst, for integers too without allocating.
func (p *Pool) AppendAt(dst []byte, seed, i uint64, route uint32, position int) []byte {
	k := p.Pick(seed, i, route, position)
	if p.values == nil {
		return strconv.AppendInt(dst, p.min+int64(k), 10)
	}
	return append(dst, p.values[k]...)
}
