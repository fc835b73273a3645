package traffic

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"seatrial/fault"
)

// PartialVersion is the version of partial recordings that this build writes and reads.
const PartialVersion = 1

// maxPartial bounds the size of a partial in bytes. The Builder's own bounds keep far below it.
const maxPartial = 1 << 30

// MinSalt is how many bytes a secret needs that partials are recorded under.
const MinSalt = 16

// Partial is what one Builder has counted, read back to be merged. It is not for committing: literals
// stand in it whose fate only the whole decides (TR-21, TR-23), in the clear. Values in positions that
// have collapsed by their shape or their number stand in it as salted hashes only.
type Partial struct {
	Skips   Skips // what its source counted
	name    string
	id      string
	mark    string // of the salt
	builder *Builder
}

// Under tells whether the partial was recorded under a salt.
func (p *Partial) Under(salt []byte) bool { return p.mark == saltMark(salt) }

// partialFile is the file: JSON, so that anyone can see what it holds.
type partialFile struct {
	Version     int            `json:"seatrial_partial"`
	ID          string         `json:"id"` // random: the same partial must not be merged twice
	SaltMark    string         `json:"salt_mark"`
	Kind        string         `json:"kind"`
	Declared    []string       `json:"declared"`
	MaxDistinct int            `json:"max_distinct"`
	Skips       Skips          `json:"read"`
	Requests    uint64         `json:"requests"`
	Timed       uint64         `json:"timed"`
	First       int64          `json:"first_ns"`
	Last        int64          `json:"last_ns"`
	Disorder    int64          `json:"out_of_order"`
	NoPath      int64          `json:"no_path"`
	Limit       int            `json:"exact_samples"`
	Hold        int            `json:"values_held"`
	Seconds     *timelineState `json:"seconds"`
	Stamps      []int64        `json:"stamps_ns"`
	Starts      []int64        `json:"starts_ns"`
	Ends        []int64        `json:"ends_ns"`
	Flight      *timelineState `json:"in_flight"`
	Paths       treeState      `json:"paths"`
	Routes      treeState      `json:"routes"`
	ByTemplate  [][]leafState  `json:"by_declared"`
	Unmatched   []leafState    `json:"unmatched"`
}

type timelineState struct {
	Shift  uint    `json:"shift"`
	First  int64   `json:"first"`
	Counts []int64 `json:"counts"`
}

type treeState struct {
	Fanout int        `json:"fanout"`
	Depth  int        `json:"depth"`
	Root   *nodeState `json:"root"`
}

type nodeState struct {
	Requests  uint64                `json:"n"`
	Children  map[string]*nodeState `json:"children,omitempty"`
	Wild      *nodeState            `json:"wild,omitempty"`
	Slash     *nodeState            `json:"slash,omitempty"`
	Rest      *nodeState            `json:"rest,omitempty"`
	Collapsed bool                  `json:"collapsed,omitempty"`
	Leaves    []leafState           `json:"leaves,omitempty"`
}

type leafState struct {
	Method   string       `json:"method"`
	N        uint64       `json:"n"`
	Status   []uint64     `json:"status"`
	Duration *distState   `json:"duration_ns,omitempty"`
	Request  *distState   `json:"request_bytes,omitempty"`
	Response *distState   `json:"response_bytes,omitempty"`
	Places   []tallyState `json:"places,omitempty"`
}

type distState struct {
	Exact []int64          `json:"exact,omitempty"`
	Bins  map[int32]uint64 `json:"bins,omitempty"`
	Max   int64            `json:"max"`
}

type tallyState struct {
	Total  uint64   `json:"n"`
	Held   []uint64 `json:"held"` // salted hash, requests, requests that may have been missed; and so on
	Floor  uint64   `json:"floor,omitempty"`
	Sketch []byte   `json:"sketch,omitempty"`
}

// WritePartialFile writes what the Builder has counted, for ReadPartialFile, atomically and readable by
// its owner only. The Builder needs a Salt that all parts share.
func (b *Builder) WritePartialFile(path string, skips *Skips) error {
	data, err := b.encodePartial(skips)
	if err != nil {
		return err
	}
	return writeFile(path, data, 0o600)
}

func (b *Builder) encodePartial(skips *Skips) ([]byte, error) {
	if len(b.cfg.Salt) < MinSalt {
		return nil, errors.New("traffic: a partial without a shared salt")
	}
	id := make([]byte, 12)
	_, _ = rand.Read(id) // it never fails: it ends the program instead
	f := partialFile{Version: PartialVersion, ID: hex.EncodeToString(id), SaltMark: saltMark(b.cfg.Salt), Kind: b.cfg.Kind,
		Declared: b.cfg.Declared, MaxDistinct: b.cfg.MaxDistinct, Requests: b.requests, Timed: b.timed, First: b.first, Last: b.last,
		Disorder: b.disorder, NoPath: b.noPath, Limit: b.sampling.limit, Hold: b.sampling.hold, Seconds: b.seconds.state(), Stamps: b.stamps,
		Starts: b.flight.starts, Ends: b.flight.ends, Paths: b.paths.state(), Routes: b.routes.state()}
	if skips != nil {
		f.Skips = *skips
	}
	if b.flight.grid != nil {
		f.Flight = b.flight.grid.state()
	}
	for _, d := range b.declared {
		f.ByTemplate = append(f.ByTemplate, leafStates(d.leaves))
	}
	f.Unmatched = leafStates(b.unmatched)
	return json.Marshal(&f)
}

func (t *timeline) state() *timelineState {
	if !t.used {
		return nil
	}
	return &timelineState{t.shift, t.lo, t.cells()}
}

func (t *tree) state() treeState { return treeState{t.fanout, t.depth, t.root.state()} }

func (n *node) state() *nodeState {
	if n == nil {
		return nil
	}
	s := &nodeState{Requests: n.requests, Wild: n.wild.state(), Slash: n.slash.state(), Rest: n.rest.state(), Collapsed: n.collapsed}
	if len(n.children) > 0 {
		s.Children = make(map[string]*nodeState, len(n.children))
	}
	for seg, c := range n.children {
		s.Children[seg] = c.state()
	}
	for _, l := range n.leaves {
		s.Leaves = append(s.Leaves, l.state())
	}
	return s
}

func leafStates(leaves map[string]*leaf) []leafState {
	out := []leafState{}
	for _, method := range sortedKeys(leaves) {
		out = append(out, leaves[method].state())
	}
	return out
}

func (l *leaf) state() leafState {
	s := leafState{Method: l.method, N: l.n, Status: l.status[:], Duration: l.duration.state(), Request: l.request.state(), Response: l.response.state()}
	for i := range l.places {
		s.Places = append(s.Places, l.places[i].state())
	}
	return s
}

func (d *dist) state() *distState {
	if d.n == 0 {
		return nil
	}
	return &distState{d.exact, d.bins, d.max}
}

func (t *tally) state() tallyState {
	m := t.all()
	s := tallyState{Total: t.total, Floor: m.floor}
	if t.total == 0 {
		return s
	}
	for _, hash := range sortedKeys(m.held) {
		s.Held = append(s.Held, hash, m.held[hash].n, m.held[hash].missed)
	}
	if m.distinct != nil {
		s.Sketch = m.distinct.registers[:]
	}
	return s
}

// ReadPartialFile reads what WritePartialFile wrote. A file that is none, is damaged or has another
// version is TRF-003, and so is a finished profile.
func ReadPartialFile(path, name string) (p *Partial, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.TRF003, "there is no partial recording at %s", name).Because(err).WithNext("Check the path.")
	}
	if err != nil {
		return nil, fault.New(fault.TRF003, "the partial recording %s cannot be opened", name).Because(err).WithNext("Check its permissions.")
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ReadPartial(f, name)
}

// ReadPartial is ReadPartialFile of a stream; name is for messages.
func ReadPartial(r io.Reader, name string) (*Partial, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPartial+1))
	if err != nil || len(data) > maxPartial {
		return nil, fault.New(fault.TRF003, "the partial recording %s cannot be read, or is larger than %d MiB", name, maxPartial>>20).Because(err).
			WithNext("Record it again with `seatrial traffic record --partial`.")
	}
	var head struct {
		Partial *int `json:"seatrial_partial"`
		Version *int `json:"version"`
	}
	damaged := func(why error) error {
		return fault.New(fault.TRF003, "the partial recording %s is damaged: %s", name, why).Because(why).
			WithNext("Record it again with `seatrial traffic record --partial`.")
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, damaged(jsonProblem(err))
	}
	switch {
	case head.Partial == nil && head.Version != nil:
		return nil, fault.New(fault.TRF003, "%s is a finished profile, and finished profiles cannot be merged: they no longer hold what percentiles, "+
			"peak concurrency and the number of different values are counted from", name).
			WithNext("Record each part with `seatrial traffic record --partial --salt-file SALT --from FILE --out PART`, then merge the parts.")
	case head.Partial == nil:
		return nil, damaged(errors.New("it does not say that it is one"))
	case *head.Partial != PartialVersion:
		return nil, fault.New(fault.TRF003, "the partial recording %s has version %d; this build reads version %d", name, *head.Partial, PartialVersion).
			WithNext("Record and merge all parts with the same version of Seatrial.")
	}
	f := &partialFile{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, damaged(jsonProblem(err))
	}
	b, err := f.restore()
	if err != nil {
		return nil, damaged(err)
	}
	return &Partial{Skips: f.Skips, name: name, id: f.ID, mark: f.SaltMark, builder: b}, nil
}
