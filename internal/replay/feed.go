package replay

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seatrial/engine"
	"seatrial/engine/httpload"
	"seatrial/record"
	"seatrial/schedule"
	"seatrial/traffic/recorded"
)

// The bounds of what is read ahead of the requests that are due.
const (
	aheadRequests = 1 << 14
	aheadBytes    = 32 << 20
)

// Prepared is what a recorded request becomes. Target is never empty.
type Prepared struct {
	Route  uint32
	Target []byte // path and query
	Fields []httpload.Field
}

// Config says what a Feed sends, and when.
type Config struct {
	Open   func() (recorded.Source, error) // the source from its start; called once for each loop
	Loops  int                             // how often the recording is sent; at least 1
	Pace   schedule.Pace
	Wanted func(unixNano int64) bool // which times of the recording are sent; nil: all
	Limit  uint64                    // how many requests are sent at most; 0: all
	Spread bool                      // spread requests whose times were recorded too coarsely
	Seed   uint64
	Slices int
	Routes int // how many there are
	// Prepare gives what a recorded request becomes, or why it is not sent, in words that hold no
	// identifier. It must not keep fields.
	Prepare func(method, url string, fields []recorded.Field, body []byte) (p Prepared, why string)
}

// Counts is what became of the records of a replay.
type Counts struct {
	Records  uint64            `json:"records"`            // that were read and wanted, over all loops
	Sent     uint64            `json:"handed_over"`        // of those, handed to the engine
	Withheld map[string]uint64 `json:"withheld,omitempty"` // of those, not sent, by reason
	Untimed  uint64            `json:"without_time"`       // records without a time; not among Records
	Late     uint64            `json:"out_of_order"`       // came too far behind to be put in their place, and were sent at once
	Spread   uint64            `json:"spread"`             // had the time of others, and were spread over the unit of the clock
	Starved  uint64            `json:"source_starved"`     // were due before the source had given them
}

// Feed reads recorded requests ahead of their times and hands them to the slices of a run. A Feed is for
// one run.
type Feed struct {
	cfg    Config
	slices []*slice
	epoch  atomic.Pointer[engine.Epoch]
	room   chan struct{}
	filled chan struct{}
	done   chan struct{}
	ahead  atomic.Int64 // requests that were handed over and not taken yet
	bytes  atomic.Int64 // of them

	mu     sync.Mutex
	counts Counts
	due    []uint64 // by route
	err    error
}

// New prepares a feed. Start begins to read.
func New(cfg Config) *Feed {
	cfg.Loops, cfg.Slices = max(1, cfg.Loops), max(1, cfg.Slices)
	f := &Feed{cfg: cfg, room: make(chan struct{}, 1), filled: make(chan struct{}), done: make(chan struct{}), due: make([]uint64, cfg.Routes)}
	for k := range cfg.Slices {
		f.slices = append(f.slices, &slice{feed: f, k: uint64(k), n: uint64(cfg.Slices), gaps: newGaps()})
	}
	return f
}

// Start begins to read, and returns when as much was read as is read ahead, or all.
func (f *Feed) Start(ctx context.Context) {
	go func() {
		defer close(f.done)
		f.read(ctx)
		for _, s := range f.slices {
			s.end()
		}
		f.full()
	}()
	select {
	case <-f.filled:
	case <-ctx.Done():
	}
}

// Begin tells the feed when the run's time began: from then on a request that comes too late is counted.
func (f *Feed) Begin(start time.Time) {
	e := engine.NewEpoch(start)
	f.epoch.Store(&e)
}

// Wait waits until nothing more is read, and gives what became of the records. Err is why the source
// ended early; nil at its end, after a stop, and behind the last phase.
func (f *Feed) Wait() (Counts, error) {
	<-f.done
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts, f.err
}

// full says that what is read ahead is there.
func (f *Feed) full() {
	select {
	case <-f.filled:
	default:
		close(f.filled)
	}
}

// read reads the recording as often as it is to be sent.
func (f *Feed) read(ctx context.Context) {
	var index uint64
	var base time.Duration // of this loop, in recorded time
	for range f.cfg.Loops {
		src, err := f.cfg.Open()
		if err != nil {
			f.fail(err)
			return
		}
		o := newOrder(src, func(r *recorded.Request) bool { return f.cfg.Wanted == nil || f.cfg.Wanted(r.UnixNano) }, f.cfg.Spread, f.cfg.Seed)
		span, n, ok := f.once(ctx, o, base, &index)
		f.note(o)
		if c, ok := src.(io.Closer); ok {
			_ = c.Close() // only read from: nothing can be lost
		}
		if err := src.Err(); err != nil {
			f.fail(err)
			return
		}
		if !ok || n == 0 {
			return
		}
		base += span + span/time.Duration(max(1, n-1)) // the next begins one mean gap behind the last
	}
}

// once hands over the records of one loop; span is from the first to the last of n. It is false when no
// more are to follow.
func (f *Feed) once(ctx context.Context, o *order, base time.Duration, index *uint64) (span time.Duration, n int, ok bool) {
	first := int64(0)
	for e := o.next(); e != nil; e = o.next() {
		if n == 0 {
			first = e.at
		}
		n++
		span = time.Duration(e.at - first)
		due, more := f.cfg.Pace.Due(base + span)
		if !more || f.cfg.Limit > 0 && *index == f.cfg.Limit {
			return span, n, false
		}
		if !f.hand(ctx, e, due, index) {
			return span, n, false
		}
	}
	return span, n, true
}

// hand prepares a record and gives it to its slice; false when the run was stopped.
func (f *Feed) hand(ctx context.Context, e *entry, due time.Duration, index *uint64) bool {
	p, why := f.cfg.Prepare(e.method, e.url, e.fields, e.body)
	f.mu.Lock()
	f.counts.Records++
	if why != "" {
		if f.counts.Withheld == nil {
			f.counts.Withheld = map[string]uint64{}
		}
		f.counts.Withheld[why]++
		f.mu.Unlock()
		return true
	}
	f.counts.Sent++
	f.due[p.Route]++
	f.mu.Unlock()
	for f.ahead.Load() >= aheadRequests || f.bytes.Load() >= aheadBytes {
		f.full()
		select {
		case <-f.room:
		case <-ctx.Done():
			f.mu.Lock()
			f.counts.Sent--
			f.due[p.Route]--
			f.mu.Unlock()
			return false
		}
	}
	i := item{due: due, route: p.Route, method: e.method, target: p.Target, fields: p.Fields, body: e.body}
	f.ahead.Add(1)
	f.bytes.Add(i.bytes())
	f.slices[*index%f.slices[0].n].push(i)
	*index++
	if epoch := f.epoch.Load(); epoch != nil && epoch.Now() > due {
		f.mu.Lock()
		f.counts.Starved++
		f.mu.Unlock()
	}
	return true
}

func (f *Feed) note(o *order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.Untimed += o.untimed
	f.counts.Late += o.late
	f.counts.Spread += o.moved
}

func (f *Feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// taken says that a slice has taken a request.
func (f *Feed) taken(bytes int64) {
	n, b := f.ahead.Add(-1), f.bytes.Add(-bytes)
	if n < aheadRequests/2 && b < aheadBytes/2 || n == 0 {
		select {
		case f.room <- struct{}{}:
		default:
		}
	}
}

// Due is how many requests were handed over, by route.
func (f *Feed) Due() []uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]uint64(nil), f.due...)
}

// Unreleased counts the requests that were handed over and that the slices did not release, because the run
// was stopped: slice k has released its first released[k].
func (f *Feed) Unreleased(released []uint64) []uint64 {
	out := make([]uint64, f.cfg.Routes)
	for k, n := range released {
		f.slices[k].unreleased(n, out)
	}
	return out
}

// Schedule is the part of a slice in the run: when its requests are due.
func (f *Feed) Schedule(k int) schedule.Schedule { return f.slices[k] }

// Requests is what the requests of a slice are.
func (f *Feed) Requests(k int) httpload.Requests { return f.slices[k] }

// Recorder stands before the recorder of a slice, to learn what has ended.
func (f *Feed) Recorder(k int, to httpload.Recorder) httpload.Recorder {
	return &listener{slice: f.slices[k], to: to}
}

// Forget says that a request has ended that no engine sent.
func (f *Feed) Forget(index uint64) {
	s := f.slices[index%f.slices[0].n]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard(&record.Sample{Index: index})
}

// Fidelity compares the gaps between requests as recorded, at the pace of the replay, and as sent.
func (f *Feed) Fidelity() Fidelity {
	sum := newGaps()
	for _, s := range f.slices {
		s.mu.Lock()
		s.retire(true)
		sum.merge(s.gaps)
		s.mu.Unlock()
	}
	return sum.fidelity()
}

// Target gives the URL's path and query, without scheme, authority and fragment.
func Target(url string) string {
	if i := strings.Index(url, "://"); i > 0 && !strings.ContainsAny(url[:i], "/?#") {
		url = url[i+3:]
		if j := strings.IndexAny(url, "/?#"); j >= 0 {
			url = url[j:]
		} else {
			url = ""
		}
	}
	url, _, _ = strings.Cut(url, "#")
	if url == "" || url[0] == '?' {
		url = "/" + url
	}
	return url
}
