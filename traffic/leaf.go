package traffic

import (
	"cmp"
	"slices"
	"time"
)

// leaf holds what one method at one place was measured to do.
type leaf struct {
	method   string
	n        uint64
	status   [6]uint64 // by class; 0 is none or outside 100..599
	duration dist      // ns
	request  dist      // bytes
	response dist      // bytes
	values   reservoir
}

func (l *leaf) add(e *Event, limit int) {
	l.n++
	class := e.Status / 100
	if class < 1 || class > 5 {
		class = 0
	}
	l.status[class]++
	if e.Duration >= 0 {
		l.duration.add(int64(e.Duration), limit)
	}
	if e.RequestSize >= 0 {
		l.request.add(e.RequestSize, limit)
	}
	if e.ResponseSize >= 0 {
		l.response.add(e.ResponseSize, limit)
	}
}

func (l *leaf) merge(o *leaf, limit, keep int) {
	l.n += o.n
	for i, n := range o.status {
		l.status[i] += n
	}
	l.duration.merge(&o.duration, limit)
	l.request.merge(&o.request, limit)
	l.response.merge(&o.response, limit)
	l.values.merge(&o.values, keep)
}

func (l *leaf) route(path string, total uint64, limit int) Route {
	for _, d := range []*dist{&l.duration, &l.request, &l.response} {
		d.settle(limit)
	}
	r := Route{Method: l.method, Path: path, Requests: l.n, Weight: float64(l.n) / float64(total),
		Status:   map[string]uint64{},
		Latency:  l.duration.quantiles(float64(time.Millisecond)),
		Request:  l.request.quantiles(1),
		Response: l.response.quantiles(1)}
	for i, n := range l.status {
		if n > 0 {
			r.Status[statusNames[i]] = n
		}
	}
	return r
}

var statusNames = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// reservoir keeps the raw paths with the least hashes, with exact counts: a path that is among them
// at the end was among them when it was first seen, so none of its requests was missed. Which are
// kept does not depend on order. Most places in a tree hold one path only, which needs no map.
type reservoir struct {
	only  string // the single path, while more is nil
	first sighting
	more  map[string]*sighting
	bound uint64 // hashes above it are out for good; 0 means no bound yet
}

type sighting struct {
	hash, n uint64
}

func (r *reservoir) add(path []byte, hash uint64, n uint64, keep int) {
	switch {
	case r.bound > 0 && hash > r.bound:
		return
	case r.more == nil && r.first.n == 0:
		r.only, r.first = string(path), sighting{hash, n}
		return
	case r.more == nil && r.only == string(path):
		r.first.n += n
		return
	}
	all := r.all()
	if s := all[string(path)]; s != nil {
		s.n += n
		return
	}
	all[string(path)] = &sighting{hash, n}
	if len(all) >= 2*keep {
		r.trim(keep)
	}
}

// all turns the reservoir into its map form.
func (r *reservoir) all() map[string]*sighting {
	if r.more == nil {
		r.more = make(map[string]*sighting, 2)
		if r.first.n > 0 {
			first := r.first
			r.more[r.only] = &first
		}
		r.only, r.first = "", sighting{}
	}
	return r.more
}

// has tells whether the path is kept.
func (r *reservoir) has(path []byte) bool {
	if r.more == nil {
		return r.first.n > 0 && r.only == string(path)
	}
	return r.more[string(path)] != nil
}

// trim keeps the keep least hashes.
func (r *reservoir) trim(keep int) {
	all := r.all()
	if len(all) <= keep {
		return
	}
	hashes := make([]uint64, 0, len(all))
	for _, s := range all {
		hashes = append(hashes, s.hash)
	}
	slices.Sort(hashes)
	r.lower(hashes[keep-1])
}

// lower drops what is above a bound.
func (r *reservoir) lower(bound uint64) {
	r.bound = bound
	for p, s := range r.all() {
		if s.hash > bound {
			delete(r.more, p)
		}
	}
}

func (r *reservoir) merge(o *reservoir, keep int) {
	if o.bound > 0 && (r.bound == 0 || o.bound < r.bound) {
		r.lower(o.bound)
	}
	if o.more == nil {
		if o.first.n > 0 {
			r.add([]byte(o.only), o.first.hash, o.first.n, keep)
		}
		return
	}
	for p, s := range o.more {
		r.add([]byte(p), s.hash, s.n, keep)
	}
}

// Tuple is one way in which the placeholders of a route were filled, from left to right.
type Tuple struct {
	Values []string // percent-encoded as recorded, ready for Template.Append
	Count  uint64   // requests that had them
}

// Observed holds the values that the source itself had, for sending. It lives in memory only and is
// never written.
type Observed struct {
	routes map[string][]Tuple
}

// Tuples gives what filled a route's placeholders, in canonical order: by the values, bytewise. A
// route is named as Route.Name does. It is empty for literal routes and for those with a rest
// wildcard: a wildcard says too little about what it stands for to be sent without declared values.
func (o *Observed) Tuples(route string) []Tuple {
	if o == nil {
		return nil
	}
	return o.routes[route]
}

// tuples takes the values out of the paths that were kept.
func (r *reservoir) tuples(t *Template, keep int) []Tuple {
	r.trim(keep)
	byKey := map[string]int{}
	var out []Tuple
	for path, s := range r.all() {
		values, ok := t.Match(path)
		if !ok {
			continue
		}
		key := ""
		for _, v := range values {
			key += "/" + v
		}
		i, found := byKey[key]
		if !found {
			i = len(out)
			byKey[key] = i
			out = append(out, Tuple{Values: values})
		}
		out[i].Count += s.n
	}
	slices.SortFunc(out, func(a, b Tuple) int { return slices.CompareFunc(a.Values, b.Values, cmp.Compare[string]) })
	return out
}
