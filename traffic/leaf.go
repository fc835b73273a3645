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
	places   []tally   // what stood at each segment of the path, from the left
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

// note counts what stood in each segment of a path and tells how many values are held in addition.
func (l *leaf) note(path []byte, s salt, hold int) int {
	grown := 0
	for at, left := 0, path[1:]; at < maxDepth; at++ {
		seg, more := left, false
		for i, c := range left {
			if c == '/' {
				seg, left, more = left[:i], left[i+1:], true
				break
			}
		}
		if at == len(l.places) {
			l.places = append(l.places, tally{})
		}
		grown += l.places[at].add(s.hash(seg), hold)
		if !more {
			break
		}
	}
	return grown
}

// popularity tells it for each placeholder of the leaf's template; nil when nothing is known. A rest has
// none: it stands for whole paths.
func (l *leaf) popularity(t *Template) map[string]*Popularity {
	out := map[string]*Popularity{}
	key := 0
	for at := range t.segs {
		kind := t.segs[at].kind
		if kind == literal {
			continue
		}
		if kind != rest && at < len(l.places) {
			if p := l.places[at].popularity(); p != nil {
				out[t.keys[key]] = p
			}
		}
		key++
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (l *leaf) merge(o *leaf, s sampling) {
	l.n += o.n
	for i, n := range o.status {
		l.status[i] += n
	}
	l.duration.merge(&o.duration, s.limit)
	l.request.merge(&o.request, s.limit)
	l.response.merge(&o.response, s.limit)
	for i := range o.places {
		if i == len(l.places) {
			l.places = append(l.places, tally{})
		}
		l.places[i].merge(&o.places[i], s.hold)
	}
	l.values.merge(&o.values, s.keep)
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
	// Weight is in what proportion to send them. It is Count where the source's values were all kept.
	Weight float64
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
func (r *reservoir) tuples(t *Template, keep int, popular map[string]*Popularity) []Tuple {
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
	r.weigh(out, t, popular)
	return out
}

// weigh gives the tuples their weights. Where values had to be left out, the most popular of production
// are among those as likely as any, so that counts alone would make the rest too even: those that were
// kept then take the ranks of the fitted law, in the order of their counts.
func (r *reservoir) weigh(out []Tuple, t *Template, popular map[string]*Popularity) {
	for i := range out {
		out[i].Weight = float64(out[i].Count)
	}
	if r.bound == 0 || len(t.keys) != 1 {
		return
	}
	law, ok := popular[t.keys[0]].Law()
	if !ok {
		return
	}
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(out[b].Count, out[a].Count) })
	for rank, w := range law.weights(len(out)) {
		out[order[rank]].Weight = w
	}
}
