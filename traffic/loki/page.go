package loki

import (
	"cmp"
	"errors"
	"slices"
)

// maxPage is the most text, in bytes, that the lines of one page may hold. A server that sends longer
// ones is asked for fewer at once.
const maxPage = 32 << 20

// errTooLarge is a page over maxPage, or an answer that is far larger than its lines.
var errTooLarge = errors.New("the answer is larger than Seatrial holds at once")

// The faults of an entry, as package input words them.
const (
	faultLong   = "line longer than 1 MiB"
	faultNoText = "entry without a message"
)

// entry is one log entry of a page.
type entry struct {
	at    int64 // nanoseconds since 1970
	off   int   // its line is data[off:off+n]
	n     int
	fault string
}

// page holds the entries of one answer. Its memory is used again for the next one.
type page struct {
	data []byte
	list []entry
}

func (p *page) reset() { p.data, p.list = p.data[:0], p.list[:0] }

// add closes an entry whose line was appended to data from off on; false when the page is too large.
func (p *page) add(at int64, off int, long bool) bool {
	e := entry{at: at, off: off, n: len(p.data) - off}
	for e.n > 0 && (p.data[off+e.n-1] == '\n' || p.data[off+e.n-1] == '\r') {
		e.n--
	}
	if long {
		e.fault = faultLong
	}
	p.list = append(p.list, e)
	return len(p.data) <= maxPage
}

// sort brings the entries into the order of time. Those of the same instant keep the order in which
// the server gave them.
func (p *page) sort() {
	slices.SortStableFunc(p.list, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
}

// line is the text of entry i.
func (p *page) line(i int) []byte {
	e := &p.list[i]
	return p.data[e.off : e.off+e.n]
}
