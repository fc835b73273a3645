package traffic

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
)

// maxCount bounds every count in a partial, so that sums of many cannot overflow.
const maxCount = 1 << 50

// restore makes the Builder again. It checks all that the Builder relies on: a file may have been edited.
func (f *partialFile) restore() (*Builder, error) {
	b, err := NewBuilder(BuilderConfig{Kind: f.Kind, Declared: f.Declared, MaxDistinct: f.MaxDistinct, Keep: -1})
	if err != nil {
		return nil, errors.New("its route templates cannot be read")
	}
	switch {
	case f.MaxDistinct < 0 || len(f.ByTemplate) != len(b.declared) || f.ID == "" || f.SaltMark == "":
		return nil, errors.New("it does not say how it was recorded")
	case f.Hold < 1 || f.Hold > firstHold || f.Limit != exactSamples && f.Limit != exactSamplesMany:
		return nil, errors.New("its limits are none of this build's")
	case f.Timed > f.Requests || f.Requests > maxCount || f.Disorder < 0 || f.NoPath < 0 || uint64(f.Disorder) > f.Timed || f.NoPath > maxCount:
		return nil, errors.New("its counts do not agree")
	case !f.Skips.plausible():
		return nil, errors.New("its counts of what was read do not agree")
	}
	b.requests, b.disorder, b.noPath = f.Requests, f.Disorder, f.NoPath
	b.sampling.limit, b.sampling.hold = f.Limit, f.Hold
	b.paths.sampling, b.routes.sampling = b.sampling, b.sampling
	if err := f.restoreTimes(b); err != nil {
		return nil, err
	}
	r := &restorer{hold: f.Hold}
	for _, t := range []struct {
		to   *tree
		from *treeState
	}{{b.paths, &f.Paths}, {b.routes, &f.Routes}} {
		if t.from.Root == nil || t.from.Fanout < 0 || t.from.Fanout > firstFanout || t.from.Depth < 2 || t.from.Depth > maxDepth {
			return nil, errors.New("a tree of it has no root or no limits")
		}
		t.to.fanout, t.to.depth, t.to.nodes = t.from.Fanout, t.from.Depth, -1
		r.tree = t.to
		t.to.root = *r.node(t.from.Root, 0)
	}
	for i, d := range b.declared {
		r.leaves(d.leaves, f.ByTemplate[i])
	}
	r.leaves(b.unmatched, f.Unmatched)
	if r.err == nil && r.requests != f.Requests {
		r.err = errors.New("its places do not sum to its requests")
	}
	b.held = r.held
	return b, r.err
}

func (s *Skips) plausible() bool {
	for _, n := range []int64{s.Read, s.Parsed, s.Unparsable, s.Blank, s.Comment, s.BadFiles} {
		if n < 0 || n > maxCount {
			return false
		}
	}
	for _, m := range []map[string]int64{s.Reasons, s.Notes} {
		for _, n := range m {
			if n < 0 || n > maxCount {
				return false
			}
		}
	}
	return len(s.First) <= MaxFirst && len(s.Bad) <= MaxFirst
}

// restoreTimes makes what the time stamps told.
func (f *partialFile) restoreTimes(b *Builder) error {
	wrong := errors.New("its times do not agree")
	b.timed, b.first, b.last, b.stamps = f.Timed, f.First, f.Last, f.Stamps
	switch exact := f.Timed <= exactStamps; {
	case f.First > f.Last || exact && uint64(len(f.Stamps)) != f.Timed || !exact && f.Stamps != nil:
		return wrong
	case len(f.Starts) != len(f.Ends) || len(f.Starts) > exactIntervals || f.Flight != nil && len(f.Starts) > 0:
		return wrong
	case (f.Seconds != nil) != (f.Timed > 0):
		return wrong
	}
	for i := range f.Starts {
		if f.Starts[i] >= f.Ends[i] {
			return wrong
		}
	}
	for _, s := range f.Stamps {
		if s < f.First || s > f.Last {
			return wrong
		}
	}
	b.flight.starts, b.flight.ends = f.Starts, f.Ends
	if f.Seconds != nil {
		sum, ok := b.seconds.restore(f.Seconds, 0)
		if !ok || sum != int64(f.Timed) {
			return wrong
		}
	}
	if f.Flight != nil {
		b.flight.grid = &timeline{ceil: true}
		if sum, ok := b.flight.grid.restore(f.Flight, -maxCount); !ok || sum != 0 {
			return wrong
		}
	}
	return nil
}

// restore gives the sum of the cells; false when they cannot be a timeline.
func (t *timeline) restore(s *timelineState, least int64) (sum int64, ok bool) {
	const far = 1 << 62 // cells lie within it when they are widened to units
	if len(s.Counts) == 0 || len(s.Counts) > timelineCells || s.Shift > 40 || s.First > far>>s.Shift || s.First < -far>>s.Shift {
		return 0, false
	}
	for _, n := range s.Counts {
		if n < least || n > maxCount {
			return 0, false
		}
		sum += n
	}
	t.used, t.shift, t.base, t.lo, t.hi, t.counts = true, s.Shift, s.First, s.First, s.First+int64(len(s.Counts))-1, s.Counts
	return sum, true
}

// restorer makes trees again; the first problem is kept.
type restorer struct {
	tree     *tree
	hold     int
	requests uint64 // of all leaves
	held     int
	err      error
}

func (r *restorer) fail(why string) {
	if r.err == nil {
		r.err = errors.New(why)
	}
}

func (r *restorer) node(s *nodeState, depth int) *node {
	n := &node{requests: s.Requests, collapsed: s.Collapsed}
	if r.tree.nodes++; depth > maxDepth || r.tree.nodes > 2*maxNodes || s.Requests > maxCount {
		r.fail("a tree of it is too large")
		return n
	}
	if len(s.Children) > 0 {
		n.children = make(map[string]*node, len(s.Children))
	}
	for _, seg := range sortedKeys(s.Children) {
		c := s.Children[seg]
		if t, err := ParseTemplate("/" + seg); err != nil || t.text != "/"+seg || len(t.segs) != 1 || seg == "" || c == nil {
			r.fail("a place of it has a name that no path has")
			return n
		}
		n.children[seg] = r.node(c, depth+1)
	}
	if s.Collapsed && len(s.Children) > 0 {
		r.fail("a collapsed place of it has names")
	}
	for _, x := range []struct {
		to   **node
		from *nodeState
	}{{&n.wild, s.Wild}, {&n.slash, s.Slash}, {&n.rest, s.Rest}} {
		if x.from != nil {
			*x.to = r.node(x.from, depth+1)
		}
	}
	for i := range s.Leaves {
		l := r.leaf(&s.Leaves[i])
		if slices.ContainsFunc(n.leaves, func(o *leaf) bool { return o.method == l.method }) {
			r.fail("a place of it has a method twice")
		}
		n.leaves = append(n.leaves, l)
	}
	return n
}

func (r *restorer) leaves(to map[string]*leaf, from []leafState) {
	for i := range from {
		l := r.leaf(&from[i])
		if to[l.method] != nil {
			r.fail("a template of it has a method twice")
		}
		to[l.method] = l
	}
}

func (r *restorer) leaf(s *leafState) *leaf {
	l := &leaf{method: canonicalMethod([]byte(s.Method)), n: s.N}
	if l.method != s.Method || s.N == 0 || s.N > maxCount || len(s.Status) != len(l.status) || len(s.Places) > maxDepth {
		r.fail("a route of it is no route")
		return l
	}
	var answers uint64
	for i, n := range s.Status {
		l.status[i] = n
		if answers += n; n > s.N {
			r.fail("a route of it has more answers than requests")
		}
	}
	if answers != s.N {
		r.fail("a route of it has other answers than requests")
	}
	r.requests += s.N
	for _, d := range []struct {
		to   *dist
		from *distState
	}{{&l.duration, s.Duration}, {&l.request, s.Request}, {&l.response, s.Response}} {
		if d.from != nil && (!d.to.restore(d.from) || d.to.n > s.N) {
			r.fail("measurements of it do not agree")
		}
	}
	for i := range s.Places {
		var t tally
		if !t.restore(&s.Places[i], r.hold) || t.total > s.N {
			r.fail("its hashed values do not agree")
		}
		if t.many != nil {
			r.held += len(t.many.held)
		}
		l.places = append(l.places, t)
	}
	return l
}

func (d *dist) restore(s *distState) bool {
	d.exact, d.bins, d.max, d.n = s.Exact, s.Bins, s.Max, uint64(len(s.Exact))
	if len(s.Exact) > exactSamples || len(s.Exact) > 0 && len(s.Bins) > 0 {
		return false
	}
	for _, v := range s.Exact {
		if v < 0 || v > s.Max {
			return false
		}
	}
	for b, n := range s.Bins {
		if b < 0 || b > bin(s.Max) || n == 0 || n > maxCount {
			return false
		}
		d.n += n
	}
	return d.n > 0
}

func (t *tally) restore(s *tallyState, hold int) bool {
	n := len(s.Held) / 3
	switch {
	case s.Total == 0:
		return len(s.Held) == 0
	case len(s.Held)%3 != 0 || n > 2*hold || n == 0 && s.Sketch == nil || s.Floor > s.Total || s.Total > maxCount:
		return false
	case s.Sketch == nil && s.Floor > 0:
		return false
	}
	m := &many{held: make(map[uint64]held, n), floor: s.Floor}
	var sum uint64
	for i := 0; i < len(s.Held); i += 3 {
		h := held{s.Held[i+1], s.Held[i+2]}
		if h.n == 0 || h.n > s.Total || h.missed > s.Floor {
			return false
		}
		sum += h.n
		m.held[s.Held[i]] = h
	}
	if len(m.held) != n || sum > s.Total || s.Sketch == nil && sum != s.Total {
		return false
	}
	t.total = s.Total
	if s.Sketch != nil {
		if m.distinct = restoredSketch(s.Sketch); m.distinct == nil {
			return false
		}
	}
	if n == 1 && s.Sketch == nil {
		t.only = s.Held[0]
		return true
	}
	t.many = m
	return true
}

// restoredSketch is nil when the registers are none.
func restoredSketch(registers []byte) *sketch {
	s := newSketch()
	if len(registers) != len(s.registers) || slices.Max(registers) > sketchBits {
		return nil
	}
	o := &sketch{}
	copy(o.registers[:], registers)
	s.merge(o)
	return s
}

// sortedKeys gives a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// sortedFormats spells a list of formats in one way, whatever order the inputs came in.
func sortedFormats(list string) string {
	names := strings.Split(list, ",")
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}
