package replay

import (
	"sync"
	"time"

	"seatrial/engine/httpload"
	"seatrial/record"
	"seatrial/schedule"
)

// item is one request on its way through a slice.
type item struct {
	due    time.Duration
	sent   time.Duration // 0: not sent, or not yet known
	route  uint32
	method string
	target []byte
	fields []httpload.Field
	body   []byte
}

func (i *item) bytes() int64 {
	n := 128 + len(i.target) + len(i.body)
	for _, f := range i.fields {
		n += 32 + len(f.Name) + len(f.Value)
	}
	return int64(n)
}

// chunkSize is how many requests are forgotten together.
const chunkSize = 256

// chunk is a stretch of a slice's requests, in order.
type chunk struct {
	items [chunkSize]item
	n     int // there are
	over  int // of them have ended
}

// slice is every n-th request of a feed. The engine asks it when the next one is due and what it is, from
// any goroutine; it remembers each until it has ended.
type slice struct {
	feed *Feed
	k, n uint64

	mu     sync.Mutex
	chunks []*chunk // the first holds request number first
	first  uint64   // a multiple of chunkSize
	pushed uint64
	next   uint64
	ended  bool
	gaps   gaps
}

func (s *slice) push(i item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pushed == s.first+uint64(len(s.chunks))*chunkSize {
		s.chunks = append(s.chunks, &chunk{})
	}
	c := s.chunks[len(s.chunks)-1]
	c.items[c.n] = i
	c.n++
	s.pushed++
}

func (s *slice) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// item is request number i of the slice. s.mu is held.
func (s *slice) item(i uint64) *item {
	return &s.chunks[(i-s.first)/chunkSize].items[i%chunkSize]
}

// Next implements schedule.Schedule.
func (s *slice) Next() (schedule.Arrival, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == s.pushed {
		return schedule.Arrival{Index: schedule.Later}, !s.ended
	}
	i := s.item(s.next)
	a := schedule.Arrival{Index: s.next*s.n + s.k, Due: i.due}
	s.next++
	s.feed.taken(i.bytes())
	return a, true
}

// At implements httpload.Requests.
func (s *slice) At(index uint64, r *httpload.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.item(index / s.n)
	r.Route, r.Method, r.Refuse = i.route, i.method, false
	r.Target = append(r.Target[:0], i.target...)
	r.Fields, r.Body, r.Expect = i.fields, i.body, nil
}

// heard notes that a request has ended. s.mu is held.
func (s *slice) heard(x *record.Sample) {
	i := x.Index / s.n
	s.item(i).sent = x.Sent
	c := s.chunks[(i-s.first)/chunkSize]
	c.over++
	if c.over == chunkSize {
		s.retire(false)
	}
}

// retire forgets the requests that have all ended, from the first on; with all, the last ones too. s.mu is
// held.
func (s *slice) retire(all bool) {
	for len(s.chunks) > 0 {
		c := s.chunks[0]
		if c.over < chunkSize && !all {
			return
		}
		for k := range c.n {
			s.gaps.add(c.items[k].due, c.items[k].sent)
		}
		s.chunks[0] = nil
		s.chunks = s.chunks[1:]
		s.first += chunkSize
	}
}

func (s *slice) unreleased(from uint64, into []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := from; i < s.pushed; i++ {
		into[s.item(i).route]++
	}
}

// listener is a Recorder that tells a slice what has ended.
type listener struct {
	slice *slice
	to    httpload.Recorder
}

// Add implements httpload.Recorder.
func (l *listener) Add(x *record.Sample) {
	l.to.Add(x)
	l.slice.mu.Lock()
	defer l.slice.mu.Unlock()
	l.slice.heard(x)
}

// AddAll takes many samples at once.
func (l *listener) AddAll(xs []record.Sample) {
	if r, ok := l.to.(interface{ AddAll([]record.Sample) }); ok {
		r.AddAll(xs)
	} else {
		for i := range xs {
			l.to.Add(&xs[i])
		}
	}
	l.slice.mu.Lock()
	defer l.slice.mu.Unlock()
	for i := range xs {
		l.slice.heard(&xs[i])
	}
}
