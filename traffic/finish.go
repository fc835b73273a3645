package traffic

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Finish gives the profile and the values that were observed. skips is what the source counted; now
// is when the profile is made. The Builder must not be used afterwards.
func (b *Builder) Finish(skips *Skips, now time.Time) (*Profile, *Observed, error) {
	p := &Profile{Version: ProfileVersion, Recorded: now.UTC().Truncate(time.Second), Requests: b.requests, Routes: []Route{}}
	p.Source = ProfileSource{Kind: b.cfg.Kind, OutOfOrder: b.disorder}
	if skips != nil {
		p.Source.Format, p.Source.Read, p.Source.Unparsable = sortedFormats(skips.Format), skips.Read, skips.Unparsable
		p.Source.NotSent = maps.Clone(skips.Reasons)
	}
	if b.noPath > 0 {
		if p.Source.NotSent == nil {
			p.Source.NotSent = map[string]int64{}
		}
		p.Source.NotSent["no route and no path"] += b.noPath
	}
	b.times(p)
	observed := &Observed{routes: map[string][]Tuple{}}
	for _, f := range b.gather() {
		r := f.leaf.route(f.path, b.requests, b.sampling.limit)
		r.Unmatched = f.path == Unmatched
		p.Routes = append(p.Routes, r)
		if r.Unmatched {
			continue
		}
		t, err := ParseTemplate(f.path)
		if err != nil {
			return nil, nil, errors.New("traffic: a template that cannot be read back: " + f.path)
		}
		made := &p.Routes[len(p.Routes)-1]
		made.Popularity = f.leaf.popularity(t)
		if !t.Literal() && !t.Rest() && b.sampling.keep > 0 {
			observed.routes[r.Name()] = f.leaf.values.tuples(t, b.sampling.keep, made.Popularity)
		}
	}
	return p, observed, nil
}

type found struct {
	path string
	leaf *leaf
}

// gather merges leaves of the same name, whichever way they were found, sorted by path and method.
func (b *Builder) gather() []found {
	b.paths.settle(&b.paths.root, b.cfg.MaxDistinct)
	byName := map[string]*found{}
	add := func(path string, l *leaf) {
		name := l.method + " " + path
		if f := byName[name]; f != nil {
			f.leaf.merge(l, b.sampling)
			return
		}
		byName[name] = &found{path, l}
	}
	visit := func(path string, n *node) {
		for _, l := range n.leaves {
			add(path, l)
		}
	}
	b.paths.root.each("", visit)
	b.routes.root.each("", visit)
	for _, d := range b.declared {
		for _, l := range d.leaves {
			add(d.template.text, l)
		}
	}
	for _, l := range b.unmatched {
		add(Unmatched, l)
	}
	out := make([]found, 0, len(byName))
	for _, f := range byName {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(x, y found) int {
		return cmp.Or(cmp.Compare(x.path, y.path), cmp.Compare(x.leaf.method, y.leaf.method))
	})
	return out
}

// times fills in what the timestamps say (TR-7, TR-10).
func (b *Builder) times(p *Profile) {
	if b.timed == 0 {
		if b.requests > 0 {
			p.Rate = AssumedRate
			p.RateAssumed = "no request had a readable time, so " + strconv.Itoa(AssumedRate) + " requests a second were assumed"
		}
		return
	}
	start, end := time.Unix(0, b.first).UTC(), time.Unix(0, b.last).UTC()
	p.Window = &Window{Start: start, End: end, Seconds: float64(b.last-b.first) / float64(time.Second)}
	if p.Window.Seconds > 0 {
		p.Rate = float64(b.timed) / p.Window.Seconds
	} else {
		p.Rate = AssumedRate
		p.RateAssumed = "every request that had a time had the same, so " + strconv.Itoa(AssumedRate) + " requests a second were assumed"
	}
	p.PerMinute, p.PerMinuteBucket = b.seconds.curve()
	p.Dispersion = b.seconds.dispersion()
	p.PeakConcurrency = b.flight.peak()
	p.Gaps = b.gaps()
}

// gaps are exact for up to exactStamps arrivals whose times are fine enough, and otherwise known to a
// second, or to a cell of the timeline in a window of more than twelve days.
func (b *Builder) gaps() []Gap {
	found, known := []silence(nil), false
	unit := int64(1)
	if b.stamps != nil {
		found, known = stampSilences(b.stamps)
	}
	if !known {
		unit = int64(time.Second) << b.seconds.shift
		found = b.seconds.silences()
	}
	var out []Gap
	for _, s := range found {
		out = append(out, Gap{Start: time.Unix(0, s.from*unit).UTC(), Seconds: float64(s.length) * float64(unit) / float64(time.Second)})
	}
	return out
}
