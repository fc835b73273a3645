package traffic

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// RouteIndex finds the route that a concrete request belongs to. It is read-only once made, so that any
// number of goroutines may ask it.
type RouteIndex struct {
	literal map[string]int       // "GET /path"
	holed   map[string][]indexed // by method and first segment, and by method alone
}

// indexed is a route with placeholders.
type indexed struct {
	template *Template
	route    int
	literals int // segments that are literal: the more of them, the earlier it is tried
}

// NewRouteIndex makes an index of routes; Find gives places in routes. A route that no template can be
// read from is never found.
func NewRouteIndex(routes []Route) *RouteIndex {
	x := &RouteIndex{literal: map[string]int{}, holed: map[string][]indexed{}}
	for i := range routes {
		r := &routes[i]
		t, err := ParseTemplate(r.Path)
		switch {
		case err != nil || r.Unmatched:
			continue
		case t.Literal():
			x.literal[r.Method+" "+t.text] = i
			continue
		}
		e := indexed{template: t, route: i}
		for _, s := range t.segs {
			if s.kind == literal {
				e.literals++
			}
		}
		key := r.Method
		if t.segs[0].kind == literal {
			key += " " + t.segs[0].text
		}
		x.holed[key] = append(x.holed[key], e)
	}
	for _, list := range x.holed {
		slices.SortStableFunc(list, func(a, b indexed) int {
			return cmp.Or(cmp.Compare(b.literals, a.literals), cmp.Compare(len(b.template.segs), len(a.template.segs)), cmp.Compare(a.template.text, b.template.text))
		})
	}
	return x
}

// Find gives the route of a request, by its method and its path as it stands in a request line without
// query: the one with the most literal segments of those that match. It is false when none does.
func (x *RouteIndex) Find(method string, path []byte) (int, bool) {
	if len(path) == 0 || path[0] != '/' {
		return 0, false
	}
	name := method + " " + string(path)
	if i, ok := x.literal[name]; ok {
		return i, true
	}
	first := name
	if i := bytes.IndexByte(path[1:], '/'); i >= 0 {
		first = name[:len(method)+1+1+i]
	}
	key := method + " " + strings.TrimPrefix(first[len(method)+1:], "/")
	for _, list := range [...][]indexed{x.holed[key], x.holed[method]} {
		for k := range list {
			if list[k].template.covers(path) {
				return list[k].route, true
			}
		}
	}
	return 0, false
}

// Possible tells whether some request of a template may be safe: there are values for which safe_routes
// take it, and it is not one that unsafe_routes take whatever the values are.
func (p *Policy) Possible(method, template string) bool {
	t, err := ParseTemplate(template)
	if err != nil {
		return false
	}
	if t.Literal() {
		return p.Decide(method, t.text).Safe
	}
	for i := range p.unsafe {
		u := &p.unsafe[i]
		if certain, _ := u.matchTemplate(t, true); certain && u.takes(method, true) {
			return false
		}
	}
	return slices.ContainsFunc(p.safe, func(s pattern) bool {
		_, possible := s.matchTemplate(t, false)
		return possible && s.takes(method, false)
	})
}
