package traffic

import (
	"math"
	"math/bits"
)

// sketch estimates how many distinct hashes it has seen: HyperLogLog (Flajolet et al. 2007) with
// 4096 registers, error about 1.6%. Its state depends on the set of hashes only, and its sum is kept
// in whole numbers so that it does not depend on their order either.
type sketch struct {
	registers [4096]uint8
	inverse   uint64 // sum over registers of 2^(sketchBits-register)
	empty     int
}

const sketchBits = 40

func newSketch() *sketch {
	s := &sketch{empty: 4096}
	s.inverse = uint64(len(s.registers)) << sketchBits
	return s
}

// add tells whether the estimate changed.
func (s *sketch) add(hash uint64) bool {
	i := hash >> 52
	rank := uint8(min(sketchBits, bits.LeadingZeros64(hash<<12|1)+1))
	old := s.registers[i]
	if rank <= old {
		return false
	}
	if old == 0 {
		s.empty--
	}
	s.registers[i] = rank
	s.inverse += 1<<(sketchBits-rank) - 1<<(sketchBits-old)
	return true
}

// merge makes the sketch one of both sets.
func (s *sketch) merge(o *sketch) {
	s.inverse, s.empty = 0, 0
	for i, r := range o.registers {
		s.registers[i] = max(s.registers[i], r)
		s.inverse += 1 << (sketchBits - s.registers[i])
		if s.registers[i] == 0 {
			s.empty++
		}
	}
}

func (s *sketch) estimate() float64 {
	const m = 4096.0
	e := 0.7213 / (1 + 1.079/m) * m * m * (1 << sketchBits) / float64(s.inverse)
	if e <= 2.5*m && s.empty > 0 {
		return m * math.Log(m/float64(s.empty))
	}
	return e
}

// doublings is how often the estimate has doubled beyond limit, rounded up; 0 within it.
func (s *sketch) doublings(limit float64) int {
	n := 0
	for e := s.estimate(); e > limit; e /= 2 {
		n++
	}
	return n
}

// The hash: FNV-1a over the bytes, then the finaliser of splitmix64 so that all bits are good.
const (
	hashSeed  = 14695981039346656037
	hashPrime = 1099511628211
)

func hashBytes(h uint64, b []byte) uint64 {
	for _, c := range b {
		h = (h ^ uint64(c)) * hashPrime
	}
	return h
}

// mix64 is the finaliser of splitmix64 (Steele, Lea and Flood 2014): a bijection whose output bits
// all depend on all input bits.
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
