// Package replay sends recorded requests again at their recorded times: it reads ahead, brings them into
// order, spreads what was recorded too coarsely, and hands them to the engine's workers.
package replay

import (
	"bytes"
	"container/heap"
	"math/bits"
	"slices"
	"time"

	"seatrial/traffic/recorded"
)

// The bounds of what is held back to bring records into order.
const (
	holdRecords = 1 << 16
	holdBytes   = 64 << 20
	// holdTime is how far behind the newest one a record may come and still be put in its place.
	holdTime = int64(10 * time.Second)
)

// entry is one recorded request, held in memory.
type entry struct {
	at     int64 // when it was recorded, ns since 1970; spread where that was coarse
	seq    uint64
	method string
	url    string
	fields []recorded.Field
	body   []byte
	client string
}

func (e *entry) bytes() int {
	n := 256 + len(e.method) + len(e.url) + len(e.body) + len(e.client)
	for _, f := range e.fields {
		n += 32 + len(f.Name) + len(f.Value)
	}
	return n
}

// order gives the records of a source in the order of their times.
type order struct {
	src    recorded.Source
	take   func(*recorded.Request) bool // which records are wanted
	spread bool
	seed   uint64

	held   held
	size   int // bytes of held
	seq    uint64
	newest int64
	unit   int64 // every time so far is a multiple of it, ns
	group  []*entry
	last   int64
	ended  bool

	untimed uint64 // records without a time: they are left out
	late    uint64 // records that came too far behind to be put in their place: they come at once
	moved   uint64 // records that were spread
}

func newOrder(src recorded.Source, take func(*recorded.Request) bool, spread bool, seed uint64) *order {
	return &order{src: src, take: take, spread: spread, seed: seed, unit: int64(time.Second)}
}

// next gives the next record; nil at the end, or when the source has failed.
func (o *order) next() *entry {
	if len(o.group) == 0 {
		o.gather()
	}
	if len(o.group) == 0 {
		return nil
	}
	e := o.group[0]
	o.group[0] = nil
	o.group = o.group[1:]
	if e.at < o.last {
		e.at = o.last
		o.late++
	}
	o.last = e.at
	return e
}

// gather takes the next records of one and the same time, and spreads them over the unit in which times
// were recorded: as many of them at one instant are the clock's doing and no burst.
func (o *order) gather() {
	e := o.pop()
	if e == nil {
		return
	}
	o.group = append(o.group[:0], e)
	for o.settled(e.at) && len(o.held) > 0 && o.held[0].at == e.at {
		o.group = append(o.group, o.pop())
	}
	if n := len(o.group); n > 1 && o.spread && o.unit > 1 {
		o.moved += uint64(n)
		for i, offset := range offsets(o.seed^mix(e.seq), n, o.unit) {
			o.group[i].at += offset
		}
	}
}

// offsets are n places in [0, unit), in order: the order statistics of as many independent and uniform
// ones, which is where a Poisson process has them.
func offsets(seed uint64, n int, unit int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		high, _ := bits.Mul64(mix(seed+uint64(i)), uint64(unit))
		out[i] = int64(high)
	}
	slices.Sort(out)
	return out
}

// mix is SplitMix64's finalizer (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// pop gives the earliest record that is held, once none can come before it any more, or no more can be
// held.
func (o *order) pop() *entry {
	for !o.ended && (len(o.held) == 0 || !o.settled(o.held[0].at)) && o.room() {
		o.read()
	}
	if len(o.held) == 0 {
		return nil
	}
	e := heap.Pop(&o.held).(*entry)
	o.size -= e.bytes()
	return e
}

// settled tells whether no record of that time is expected to come any more.
func (o *order) settled(at int64) bool { return o.ended || o.newest-at > holdTime || !o.room() }

func (o *order) room() bool { return len(o.held) < holdRecords && o.size < holdBytes }

// read takes one record of the source.
func (o *order) read() {
	if !o.src.Scan() {
		o.ended = true
		return
	}
	r := o.src.Request()
	if r.UnixNano == 0 {
		o.untimed++
		return
	}
	if !o.take(r) {
		return
	}
	for o.unit > 1 && r.UnixNano%o.unit != 0 {
		o.unit /= 1000
	}
	o.newest = max(o.newest, r.UnixNano)
	e := &entry{at: r.UnixNano, seq: o.seq, method: string(r.Method), url: string(r.URL), fields: slices.Clone(r.Header), body: bytes.Clone(r.Body), client: string(r.Client)}
	o.seq++
	o.size += e.bytes()
	heap.Push(&o.held, e)
}

// held is a heap by time, and by place in the source where times are equal.
type held []*entry

// Len implements heap.Interface.
func (h held) Len() int { return len(h) }

// Less implements heap.Interface.
func (h held) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

// Swap implements heap.Interface.
func (h held) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *held) Push(x any) { *h = append(*h, x.(*entry)) }

// Pop implements heap.Interface.
func (h *held) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return e
}
