package http2

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"golang.org/x/net/http2/hpack"
)

// huffmanCode decodes the code of RFC 7541, appendix B. It is canonical: ordered by their bits, the
// codes do not become shorter, and those of one length follow each other.
type huffmanCode struct {
	short [1 << shortBits]symbol // by the first bits; size 0 where a code is longer than these
	long  []longCodes
}

const shortBits = 10

// symbol is a byte and how many bits its code has.
type symbol struct{ value, size uint8 }

// longCodes are the codes of one length, left-aligned in 32 bits.
type longCodes struct {
	size        uint8
	first, last uint32
	values      []byte
}

// huffman is made from what x/net encodes, so that the code stands in one place.
var huffman = makeHuffman()

func makeHuffman() (h huffmanCode) {
	type code struct {
		bits  uint32
		size  uint8
		value byte
	}
	codes := make([]code, 256)
	for i := range codes {
		eight := string(bytes.Repeat([]byte{byte(i)}, 8)) // takes as many bytes as one takes bits
		size := uint8(hpack.HuffmanEncodeLength(eight))
		var b [4]byte
		copy(b[:], hpack.AppendHuffmanString(nil, eight))
		codes[i] = code{binary.BigEndian.Uint32(b[:]) &^ (1<<(32-size) - 1), size, byte(i)}
	}
	slices.SortFunc(codes, func(a, b code) int { return cmp.Compare(a.bits, b.bits) })
	for _, c := range codes {
		if c.size <= shortBits {
			from := c.bits >> (32 - shortBits)
			for i := range uint32(1) << (shortBits - c.size) {
				h.short[from+i] = symbol{c.value, c.size}
			}
			continue
		}
		if n := len(h.long); n == 0 || h.long[n-1].size != c.size {
			h.long = append(h.long, longCodes{size: c.size, first: c.bits})
		}
		l := &h.long[len(h.long)-1]
		l.last, l.values = c.bits, append(l.values, c.value)
	}
	return h
}

// appendHuffman adds what src stands for; false when it is malformed, or padded with more or other
// than the RFC allows.
func appendHuffman(dst, src []byte) ([]byte, bool) {
	bits, n := uint64(0), uint8(0) // the next bits from the left, of which n are counted
	for {
		if len(src) >= 8 {
			bits |= binary.BigEndian.Uint64(src) >> n
			k := (64 - n) / 8
			src = src[k:]
			n += 8 * k
		} else {
			for n <= 56 && len(src) > 0 {
				bits |= uint64(src[0]) << (56 - n)
				src = src[1:]
				n += 8
			}
		}
		s := huffman.short[bits>>(64-shortBits)]
		if s.size == 0 {
			s = huffman.find(uint32(bits >> 32))
		}
		if s.size > n {
			return dst, n < 8 && bits == ^(^uint64(0)>>n)
		}
		dst = append(dst, s.value)
		bits <<= s.size
		n -= s.size
	}
}

// find gives the symbol that begins with more bits than the table has, of a size that never fits when
// there is none.
func (h *huffmanCode) find(bits uint32) symbol {
	for i := range h.long {
		l := &h.long[i]
		if code := bits &^ (1<<(32-l.size) - 1); code <= l.last {
			return symbol{l.values[(code-l.first)>>(32-l.size)], l.size}
		}
	}
	return symbol{size: 255}
}
