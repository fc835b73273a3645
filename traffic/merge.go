package traffic

import (
	"slices"
	"strings"
	"time"

	"seatrial/fault"
)

// Merger makes one profile of partial recordings (TR-31). The order in which they come does not matter.
type Merger struct {
	whole *Builder
	first *Partial
	names map[string]string // of the partials so far, by their ids
	skips Skips
}

// NewMerger makes a Merger of nothing.
func NewMerger() *Merger { return &Merger{names: map[string]string{}} }

// Add takes a partial in; it must not be used afterwards. One that stands twice, or was recorded in
// another way than the first, is TRF-003.
func (m *Merger) Add(p *Partial) error {
	if before, twice := m.names[p.id]; twice {
		return fault.New(fault.TRF003, "the partial recording %s is the same as %s: its requests would count twice", p.name, before).
			WithNext("Name each partial once.")
	}
	if m.first == nil {
		m.first, m.whole = p, p.builder
	} else {
		if err := m.alike(p); err != nil {
			return err
		}
		m.whole.merge(p.builder)
	}
	m.names[p.id] = p.name
	m.skips.merge(&p.Skips)
	return nil
}

// alike refuses a partial that cannot be one profile with the first.
func (m *Merger) alike(p *Partial) error {
	a, b := m.first, p
	refuse := func(what string) *fault.Error {
		return fault.New(fault.TRF003, "the partial recordings %s and %s cannot be merged: %s", a.name, b.name, what)
	}
	switch {
	case a.mark != b.mark:
		return refuse("they were recorded under different salts, so the same value does not look the same in both").
			WithNext("Record all parts with one --salt-file.")
	case a.builder.cfg.Kind != b.builder.cfg.Kind:
		return refuse("one is of " + a.builder.cfg.Kind + " and the other of " + b.builder.cfg.Kind).
			WithNext("Make one profile of each.")
	case !slices.Equal(a.builder.templates(), b.builder.templates()) || a.builder.cfg.MaxDistinct != b.builder.cfg.MaxDistinct:
		return refuse("they were recorded with different route templates").
			WithNext("Record all parts with the same --route and the same load.traffic.routes.")
	}
	return nil
}

// Finish gives the profile and what was read in all. Without a partial it is TRF-003.
func (m *Merger) Finish(now time.Time) (*Profile, *Skips, error) {
	if m.whole == nil {
		return nil, nil, fault.New(fault.TRF003, "there is no partial recording to merge")
	}
	p, _, err := m.whole.Finish(&m.skips, now)
	if err == nil && p.Requests > 0 {
		err = p.check()
	}
	if err != nil {
		return nil, nil, fault.New(fault.TRF003, "the partial recordings do not make a profile: %s", err).Because(err).
			WithNext("Record the parts again.")
	}
	return p, &m.skips, nil
}

// templates are the declared ones, in the order in which they are asked.
func (b *Builder) templates() []string {
	out := make([]string, len(b.declared))
	for i, d := range b.declared {
		out[i] = d.method + " " + d.template.text
	}
	return out
}

// merge adds what o counted; o must not be used afterwards. Both have the same declared templates.
func (b *Builder) merge(o *Builder) {
	b.requests += o.requests
	b.disorder += o.disorder
	b.noPath += o.noPath
	b.mergeTimes(o)
	s := sampling{min(b.sampling.limit, o.sampling.limit), min(b.sampling.keep, o.sampling.keep), min(b.sampling.hold, o.sampling.hold)}
	if b.requests >= manyRequests {
		s.limit = exactSamplesMany
	}
	b.sampling, b.paths.sampling, b.routes.sampling = s, s, s
	b.paths.join(o.paths)
	b.routes.join(o.routes)
	for i, d := range o.declared {
		for method, l := range d.leaves {
			leafOf(b.declared[i].leaves, method).merge(l, s)
		}
	}
	for method, l := range o.unmatched {
		b.unmatchedLeaf(method).merge(l, s)
	}
	if b.held += o.held; b.held > maxHeld {
		b.forget()
	}
}

func (b *Builder) mergeTimes(o *Builder) {
	switch {
	case o.timed == 0:
		return
	case b.timed == 0:
		b.first, b.last = o.first, o.last
	}
	b.first, b.last = min(b.first, o.first), max(b.last, o.last)
	if b.timed += o.timed; b.timed <= exactStamps {
		b.stamps = append(b.stamps, o.stamps...)
	} else {
		b.stamps = nil
	}
	b.seconds.merge(&o.seconds)
	b.flight.merge(&o.flight)
}

// join merges another tree. Both first agree on how wide and how deep it may be.
func (t *tree) join(o *tree) {
	fanout, depth := min(t.fanout, o.fanout), min(t.depth, o.depth)
	for _, x := range []*tree{t, o} {
		if x.fanout != fanout || x.depth != depth {
			x.fanout, x.depth, x.sampling = fanout, depth, t.sampling
			x.sweep(&x.root, 0)
		}
	}
	t.nodes += o.nodes + 1 // merge takes the root away again
	t.merge(&t.root, &o.root)
	t.tidy()
}

// merge adds the sums of another reading.
func (s *Skips) merge(o *Skips) {
	s.Format = sortedFormats(strings.Trim(s.Format+","+o.Format, ","))
	s.Read += o.Read
	s.Parsed += o.Parsed
	s.Unparsable += o.Unparsable
	s.Blank += o.Blank
	s.Comment += o.Comment
	s.Reasons = addCounts(s.Reasons, o.Reasons)
	s.Notes = addCounts(s.Notes, o.Notes)
	s.BadFiles += o.BadFiles
	s.First = append(s.First, o.First...)[:min(MaxFirst, len(s.First)+len(o.First))]
	s.Bad = append(s.Bad, o.Bad...)[:min(MaxFirst, len(s.Bad)+len(o.Bad))]
}

func addCounts(to, from map[string]int64) map[string]int64 {
	if len(from) > 0 && to == nil {
		to = make(map[string]int64, len(from))
	}
	for k, n := range from {
		to[k] += n
	}
	return to
}
