package intake

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
	"seatrial/traffic/recorded"
)

// ConvertConfig names what is converted.
type ConvertConfig struct {
	Format string   // empty: recognised by content
	Paths  []string // files and globs, "-" for Stdin
	Dir    string   // relative paths are relative to it
	Stdin  io.Reader
	Keep   []string    // headers that are kept although they may hold secrets
	Target os.FileInfo // what the output would replace; nil when nothing
}

// Conversion is what a conversion came to.
type Conversion struct {
	Skips      *traffic.Skips   `json:"read"`
	Written    int64            `json:"written"`
	OutOfOrder int64            `json:"out_of_order"`      // records earlier than the one before them
	Late       int64            `json:"late,omitempty"`    // of those, so late that they are out of order in the output too
	Untimed    int64            `json:"untimed,omitempty"` // requests without a time
	Dropped    map[string]int64 `json:"dropped_headers,omitempty"`
	Clients    int64            `json:"dropped_clients,omitempty"`
}

// Convert writes the requests of a source to w as JSON Lines, sorted by time as far as maxWaiting reaches,
// in memory that does not grow with the source. Headers that may hold secrets, and what tells clients apart,
// are left out and counted.
func Convert(ctx context.Context, cfg ConvertConfig, w io.Writer) (*Conversion, error) {
	set, err := input.Open(cfg.Paths, cfg.Stdin, cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	if cfg.Target != nil && set.Holds(cfg.Target) {
		return nil, fault.New(fault.CLI001, "the output is one of the inputs, and would replace it").WithNext("Give --out another path.")
	}
	src, err := recorded.Open(set, cfg.Format)
	if err != nil {
		return nil, err
	}
	c := converter{cfg: cfg, out: bufio.NewWriter(w), Conversion: Conversion{Dropped: map[string]int64{}}}
	var last int64
	for n := 0; src.Scan(); n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		q := src.Request()
		if q.UnixNano != 0 && q.UnixNano < last {
			c.OutOfOrder++
		}
		last = q.UnixNano
		if err := c.add(q); err != nil {
			return nil, err
		}
	}
	if err := src.Err(); err != nil {
		return nil, err
	}
	c.Skips = src.Skipped()
	c.refusals()
	return &c.Conversion, errors.Join(c.drain(0), c.out.Flush())
}

// maxWaiting is how many bytes of lines wait to be sorted.
const maxWaiting = 32 << 20

type converter struct {
	Conversion
	cfg     ConvertConfig
	out     *bufio.Writer
	waiting waiting
	bytes   int
	seq     int64
	written int64 // the latest time that was written
	refused []traffic.Skip
	nRefuse int64
}

// add strips a request and lets it wait for its turn.
func (c *converter) add(q *recorded.Request) error {
	c.strip(q)
	line, err := recorded.AppendLine(nil, q)
	if bad, ok := errors.AsType[*recorded.Unwritable](err); ok {
		c.nRefuse++
		if len(c.refused) < traffic.MaxFirst {
			c.refused = append(c.refused, traffic.Skip{Line: q.Line, Reason: bad.Reason})
		}
		return nil
	}
	if q.UnixNano == 0 {
		c.Untimed++
	} else if q.UnixNano < c.written {
		c.Late++
	}
	c.seq++
	heap.Push(&c.waiting, waitingLine{q.UnixNano, c.seq, line})
	c.bytes += len(line) + 64
	return c.drain(maxWaiting)
}

// refusals adds requests that no line can hold to the account of those that could not be read.
func (c *converter) refusals() {
	s := c.Skips
	s.Parsed -= c.nRefuse
	s.Unparsable += c.nRefuse
	s.First = append(s.First, c.refused...)
	s.First = s.First[:min(len(s.First), traffic.MaxFirst)]
}

// drain writes the earliest lines until no more than most bytes wait.
func (c *converter) drain(most int) error {
	for c.bytes > most && len(c.waiting) > 0 {
		l := heap.Pop(&c.waiting).(waitingLine)
		c.bytes -= len(l.text) + 64
		c.written = max(c.written, l.at)
		c.Written++
		if _, err := c.out.Write(l.text); err != nil {
			return err
		}
	}
	return nil
}

// strip leaves out what may hold a secret or tells who asked.
func (c *converter) strip(q *recorded.Request) {
	kept := q.Header[:0]
	for _, f := range q.Header {
		name := strings.ToLower(f.Name)
		if !isSensitive(name) || c.keeps(name) {
			kept = append(kept, f)
			continue
		}
		if _, known := c.Dropped[name]; !known && len(c.Dropped) >= 32 {
			name = "others"
		}
		c.Dropped[name]++
	}
	q.Header = kept
	if len(q.Client) > 0 {
		c.Clients++
		q.Client = nil
	}
}

func (c *converter) keeps(name string) bool {
	for _, k := range c.cfg.Keep {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}

// isSensitive knows headers that carry credentials, by the words in their names.
func isSensitive(lower string) bool {
	for _, word := range [...]string{"auth", "cookie", "api-key", "apikey", "token", "secret", "password", "session", "credential", "signature"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// waiting is a heap of lines, earliest first; lines of one time keep their order.
type waiting []waitingLine

type waitingLine struct {
	at, seq int64
	text    []byte
}

// Len implements heap.Interface.
func (w waiting) Len() int { return len(w) }

// Less implements heap.Interface.
func (w waiting) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(w[i].at, w[j].at), cmp.Compare(w[i].seq, w[j].seq)) < 0
}

// Swap implements heap.Interface.
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *waiting) Push(x any) { *w = append(*w, x.(waitingLine)) }

// Pop implements heap.Interface.
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	(*w)[len(*w)-1] = waitingLine{}
	*w = (*w)[:len(*w)-1]
	return last
}
