package traffic

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// salt is the key under which values are hashed. Who does not hold it cannot tell whether a value
// belongs to a hash, even of values that are few enough to try them all.
type salt struct{ k0, k1 uint64 }

// newSalt takes the key from a secret, or from the system's randomness when there is none.
func newSalt(secret []byte) salt {
	if len(secret) == 0 {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // it never fails: it ends the program instead
	}
	sum := saltSum("values", secret)
	return salt{binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])}
}

// saltMark tells salts apart without giving them away.
func saltMark(secret []byte) string {
	sum := saltSum("mark", secret)
	return hex.EncodeToString(sum[:8])
}

func saltSum(purpose string, secret []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("seatrial "+purpose+"\x00"), secret...))
}

// hash is SipHash-2-4 (Aumasson and Bernstein 2012).
func (s salt) hash(b []byte) uint64 {
	v0, v1 := s.k0^0x736f6d6570736575, s.k1^0x646f72616e646f6d
	v2, v3 := s.k0^0x6c7967656e657261, s.k1^0x7465646279746573
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		m := binary.LittleEndian.Uint64(b)
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for i, c := range b {
		last |= uint64(c) << (8 * i)
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for range 4 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
