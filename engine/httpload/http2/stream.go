package http2

// stream is one open stream, or a free place for one when id is 0.
type stream struct {
	id       uint32
	tag      uint32
	head     bool // the request was HEAD
	answered bool // a byte of the response arrived
	final    bool // the headers of the final response arrived
	bare     bool // the response has no body, whatever its content-length says
	owed     bool // credit is to be given back
	interim  uint8
	status   uint16
	headers  int   // bytes of header lists until now
	length   int64 // content-length, -1 when absent
	body     int64
	credit   int32 // what the peer may still send
	window   int64 // what we may still send; a lower setting of the peer's makes it negative
	unsent   []byte
	sentBody int    // of unsent
	queued   uint64 // position in the output at which the request's header block ends
	bytesIn  int64
	bytesOut int64
}

// waits tells whether a part of the request's body is still to be sent.
func (s *stream) waits() bool { return s.sentBody < len(s.unsent) }

const keepBody = 1 << 20 // a larger buffer for what waits of a body is given back

// streams holds the open streams of one connection. Each has a place that it keeps; a hash table with
// open addressing finds the place by the stream's number, which steps by two.
type streams struct {
	places []stream
	free   []int32
	index  []int32 // place + 1; the length is a power of two, at least twice the number of streams
	open   int
}

func newStreams(limit int) streams {
	size := 4
	for size < 2*limit {
		size *= 2
	}
	return streams{index: make([]int32, size)}
}

func (t *streams) hash(id uint32) int { return int(id>>1) & (len(t.index) - 1) }

// add gives a cleared place to a stream, which must be new. Pointers to other places end here.
func (t *streams) add(id uint32) (*stream, int32) {
	var place int32
	if n := len(t.free); n > 0 {
		place = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		place = int32(len(t.places))
		t.places = append(t.places, stream{})
	}
	i := t.hash(id)
	for t.index[i] != 0 {
		i = (i + 1) & (len(t.index) - 1)
	}
	t.index[i] = place + 1
	t.open++
	s := &t.places[place]
	*s = stream{id: id, length: -1, unsent: s.unsent[:0]}
	return s, place
}

// find gives an open stream, or nil.
func (t *streams) find(id uint32) *stream {
	for i := t.hash(id); t.index[i] != 0; i = (i + 1) & (len(t.index) - 1) {
		if s := &t.places[t.index[i]-1]; s.id == id {
			return s
		}
	}
	return nil
}

// remove frees the place of an open stream. What follows it in the hash table moves up, so that no
// search ends too early.
func (t *streams) remove(s *stream) {
	mask := len(t.index) - 1
	i := t.hash(s.id)
	for t.places[t.index[i]-1].id != s.id {
		i = (i + 1) & mask
	}
	t.free = append(t.free, t.index[i]-1)
	for j := (i + 1) & mask; t.index[j] != 0; j = (j + 1) & mask {
		if home := t.hash(t.places[t.index[j]-1].id); (j-home)&mask >= (j-i)&mask {
			t.index[i] = t.index[j]
			i = j
		}
	}
	t.index[i] = 0
	s.id = 0
	if cap(s.unsent) > keepBody {
		s.unsent = nil
	}
	t.open--
}

// memory remembers which of the last streams ended in another way than by the peer's END_STREAM: on
// those, frames may still be on their way.
type memory [memorySpan / 64]uint64

const memorySpan = 4096

func (m *memory) set(id uint32, early bool) {
	n := id >> 1 % memorySpan
	m[n/64] &^= 1 << (n % 64)
	if early {
		m[n/64] |= 1 << (n % 64)
	}
}

// early is what was set; true for a stream that is too old to be remembered.
func (m *memory) early(id, next uint32) bool {
	n := id >> 1 % memorySpan
	return (next-id)>>1 > memorySpan || m[n/64]>>(n%64)&1 != 0
}
