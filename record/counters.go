package record

import (
	"encoding/binary"
	"iter"
	"math"
)

// counters is an array of uint64 counters in which most are zero and most others are small. It is
// kept in pages of 64: a page exists only when one of its counters was touched, and its counters are
// 1, 2, 4 or 8 bytes wide, widened when one of them would overflow. That is what lets six histograms
// for each of a hundred routes, and one for each second, fit in a few megabytes.
type counters struct {
	index []uint32  // by page: 0, or the block's number from 1, shifted left by 2, and log2 of the width
	slab  []byte    // blocks of 64 bytes; a page of width w takes w of them
	free  [3]uint32 // by log2 of the width: first block given up by widening, 0 for none; each holds the next
}

const (
	pageBits = 6
	pageSize = 1 << pageBits
)

// inc adds 1 to counter i of an array of n.
func (c *counters) inc(i, n int) {
	page, slot := i>>pageBits, i&(pageSize-1)
	if page < len(c.index) {
		if e := c.index[page]; e != 0 {
			at := int(e>>2-1) << pageBits
			switch e & 3 {
			case 0:
				if p := &c.slab[at+slot]; *p < math.MaxUint8 {
					*p++
					return
				}
			case 1:
				b := c.slab[at+2*slot:]
				if v := binary.LittleEndian.Uint16(b); v < math.MaxUint16 {
					binary.LittleEndian.PutUint16(b, v+1)
					return
				}
			case 2:
				b := c.slab[at+4*slot:]
				if v := binary.LittleEndian.Uint32(b); v < math.MaxUint32 {
					binary.LittleEndian.PutUint32(b, v+1)
					return
				}
			default:
				b := c.slab[at+8*slot:]
				binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+1)
				return
			}
		}
	}
	c.add(i, 1, n)
}

// add adds k to counter i of an array of n, making or widening the page as needed.
func (c *counters) add(i int, k uint64, n int) {
	if c.index == nil {
		c.index = make([]uint32, (n+pageSize-1)>>pageBits)
	}
	page, slot := i>>pageBits, i&(pageSize-1)
	if c.index[page] == 0 {
		c.index[page] = c.block(widthFor(k))
	}
	v := c.get(c.index[page], slot) + k
	if w := widthFor(v); w > c.index[page]&3 {
		c.widen(page, w)
	}
	c.put(c.index[page], slot, v)
}

// widthFor is log2 of the bytes that v takes.
func widthFor(v uint64) uint32 {
	switch {
	case v <= math.MaxUint8:
		return 0
	case v <= math.MaxUint16:
		return 1
	case v <= math.MaxUint32:
		return 2
	default:
		return 3
	}
}

func (c *counters) get(e uint32, slot int) uint64 {
	at := int(e>>2-1) << pageBits
	switch e & 3 {
	case 0:
		return uint64(c.slab[at+slot])
	case 1:
		return uint64(binary.LittleEndian.Uint16(c.slab[at+2*slot:]))
	case 2:
		return uint64(binary.LittleEndian.Uint32(c.slab[at+4*slot:]))
	default:
		return binary.LittleEndian.Uint64(c.slab[at+8*slot:])
	}
}

func (c *counters) put(e uint32, slot int, v uint64) {
	at := int(e>>2-1) << pageBits
	switch e & 3 {
	case 0:
		c.slab[at+slot] = byte(v)
	case 1:
		binary.LittleEndian.PutUint16(c.slab[at+2*slot:], uint16(v))
	case 2:
		binary.LittleEndian.PutUint32(c.slab[at+4*slot:], uint32(v))
	default:
		binary.LittleEndian.PutUint64(c.slab[at+8*slot:], v)
	}
}

// widen moves a page to a block of width w and keeps the old block for another page.
func (c *counters) widen(page int, w uint32) {
	old := c.index[page]
	e := c.block(w)
	for slot := range pageSize {
		c.put(e, slot, c.get(old, slot))
	}
	c.index[page] = e
	binary.LittleEndian.PutUint32(c.slab[int(old>>2-1)<<pageBits:], c.free[old&3])
	c.free[old&3] = old >> 2
}

// block gives a zeroed block for a page of width w, as an index entry.
func (c *counters) block(w uint32) uint32 {
	size := pageSize << w
	if w < 3 && c.free[w] != 0 {
		b := c.free[w]
		at := int(b-1) << pageBits
		c.free[w] = binary.LittleEndian.Uint32(c.slab[at:])
		clear(c.slab[at : at+size])
		return b<<2 | w
	}
	at := len(c.slab)
	c.grow(at + size)
	clear(c.slab[at:])
	return uint32(at>>pageBits+1)<<2 | w
}

// grow lengthens the slab to n bytes. It grows by halves, not by doubling: a slab that is large has
// most of the pages that it will ever have.
func (c *counters) grow(n int) {
	if n > cap(c.slab) {
		bigger := make([]byte, len(c.slab), max(n, cap(c.slab)+cap(c.slab)/2, 4*pageSize))
		copy(bigger, c.slab)
		c.slab = bigger
	}
	c.slab = c.slab[:n]
}

// all yields the counters that are not zero, by ascending index.
func (c *counters) all() iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for page, e := range c.index {
			if e == 0 {
				continue
			}
			for slot := range pageSize {
				if v := c.get(e, slot); v > 0 && !yield(page<<pageBits|slot, v) {
					return
				}
			}
		}
	}
}

func (c *counters) clone() counters {
	return counters{index: append([]uint32(nil), c.index...), slab: append([]byte(nil), c.slab...), free: c.free}
}

func (c *counters) reset() {
	clear(c.index)
	c.slab = c.slab[:0]
	c.free = [3]uint32{}
}

func (c *counters) bytes() int { return 4*cap(c.index) + cap(c.slab) }
