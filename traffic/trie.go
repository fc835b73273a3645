package traffic

import "strings"

// node is one position in the tree of paths. Its literal children are keyed by the segment in clean
// spelling, with a placeholder inside where a file name held an identifier.
type node struct {
	requests  uint64           // at this node and below
	children  map[string]*node // not "" and not {id}
	wild      *node            // {id}
	slash     *node            // the empty segment, which is never an identifier
	rest      *node            // deeper than maxDepth
	collapsed bool             // had too many children: every segment but the empty one goes to wild
	leaves    []*leaf
}

func (n *node) leaf(method string) *leaf {
	for _, l := range n.leaves {
		if l.method == method {
			return l
		}
	}
	l := &leaf{method: method}
	n.leaves = append(n.leaves, l)
	return l
}

// tree collapses positions while it grows. A position has at most fanout literal children; fanout
// falls as the number of distinct paths rises, so that the tree stays bounded for any input. Both
// depend on the set of paths only: a position collapses if and only if its set of literals, taken
// over all that merged into it, is larger than the last fanout.
type tree struct {
	root     node
	fanout   int
	swept    int     // the fanout at the last sweep
	distinct *sketch // of path prefixes after shape templating
	sampling         // limits for merging
}

// sampling is how much a leaf keeps.
type sampling struct {
	limit int // exact samples of a dist
	keep  int // raw paths of a reservoir
}

const (
	firstFanout   = 4096
	distinctLimit = 1 << 16 // prefixes; beyond, each doubling divides the fanout by eight
)

func newTree() *tree {
	return &tree{fanout: firstFanout, swept: firstFanout, distinct: newSketch()}
}

// walk finds the node of a path, creating it, and counts one request on the way.
func (t *tree) walk(path, scratch []byte) (*node, []byte) {
	n := &t.root
	n.requests++
	hash, fresh := uint64(hashSeed), false
	left := path[1:]
	for depth := 1; ; depth++ {
		if depth == maxDepth {
			n = n.restNode()
			n.requests++
			return n, scratch
		}
		seg, more := left, false
		for i, c := range left {
			if c == '/' {
				seg, left, more = left[:i], left[i+1:], true
				break
			}
		}
		var hashole bool
		scratch, hashole = appendShape(scratch[:0], seg)
		hash = hashBytes(hash, scratch)*hashPrime ^ '/'
		fresh = t.step(&n, scratch, hashole, fresh, mix64(hash))
		n.requests++
		if !more {
			return n, scratch
		}
	}
}

// step goes one segment down. fresh tells that the path so far was new or is not literal any more,
// so that its prefixes have to be offered to the sketch.
func (t *tree) step(at **node, seg []byte, hashole, fresh bool, hash uint64) bool {
	n := *at
	switch {
	case len(seg) == 0:
		if n.slash == nil {
			n.slash, fresh = &node{}, true
		}
		*at = n.slash
	case hashole && string(seg) == idHole:
		*at = n.wildNode()
		fresh = true
	case n.collapsed:
		*at = n.wildNode()
		fresh = true
	default:
		child := n.children[string(seg)]
		if child == nil {
			child = &node{}
			if n.children == nil {
				n.children = make(map[string]*node, 1)
			}
			n.children[string(seg)] = child
			fresh = true
		}
		*at = child
		if len(n.children) > t.fanout {
			t.collapse(n)
			*at, fresh = n.wild, true
		}
	}
	if fresh && t.distinct.add(hash) {
		t.tighten()
	}
	return fresh
}

func (n *node) wildNode() *node {
	if n.wild == nil {
		n.wild = &node{}
	}
	return n.wild
}

func (n *node) restNode() *node {
	if n.rest == nil {
		n.rest = &node{}
	}
	return n.rest
}

// tighten marks that the fanout may have to fall; the sweep waits until the path is counted.
func (t *tree) tighten() {
	want := firstFanout >> min(12, 3*t.distinct.doublings(distinctLimit))
	t.fanout = min(t.fanout, want)
}

// sweep collapses what is over the fanout.
func (t *tree) sweep(n *node) {
	if len(n.children) > t.fanout {
		t.collapse(n)
	}
	for _, c := range n.below() {
		t.sweep(c)
	}
}

func (n *node) below() []*node {
	out := make([]*node, 0, len(n.children)+3)
	for _, c := range n.children {
		out = append(out, c)
	}
	for _, c := range []*node{n.wild, n.slash, n.rest} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// collapse merges all literal children into the placeholder, for good.
func (t *tree) collapse(n *node) {
	n.collapsed = true
	wild := n.wildNode()
	for _, c := range n.children {
		t.merge(wild, c)
	}
	n.children = nil
}

// merge adds the subtree of src to dst; src must not be used afterwards.
func (t *tree) merge(dst, src *node) {
	dst.requests += src.requests
	for _, l := range src.leaves {
		dst.leaf(l.method).merge(l, t.limit, t.keep)
	}
	if src.collapsed && !dst.collapsed {
		t.collapse(dst)
	}
	for seg, c := range src.children {
		switch {
		case dst.collapsed:
			t.merge(dst.wildNode(), c)
		case dst.children[seg] != nil:
			t.merge(dst.children[seg], c)
		default:
			if dst.children == nil {
				dst.children = make(map[string]*node, len(src.children))
			}
			dst.children[seg] = c
		}
	}
	if len(dst.children) > t.fanout {
		t.collapse(dst)
	}
	for _, p := range []struct{ to, from **node }{{&dst.wild, &src.wild}, {&dst.slash, &src.slash}, {&dst.rest, &src.rest}} {
		switch {
		case *p.from == nil:
		case *p.to == nil:
			*p.to = *p.from
		default:
			t.merge(*p.to, *p.from)
		}
	}
}

// minLiteral is how many requests a literal needs to keep its name beside collapsed siblings (TR-23).
const minLiteral = 5

// settle applies cardinality (TR-21) and then rarity (TR-23) from the root down. What has merged
// above is merged before what lies below is looked at.
func (t *tree) settle(n *node, maxDistinct int) {
	var total, fileRequests uint64
	files := 0
	for seg, c := range n.children {
		total += c.requests
		if isMixed(seg) {
			files++
			fileRequests += c.requests
		}
	}
	if files == 1 && fileRequests < minLiteral {
		files = 0 // one stray file makes no values of its neighbours
	}
	distinct := len(n.children)
	if distinct > maxDistinct && uint64(distinct)*20 > total {
		t.collapse(n)
	}
	var rare []string // found first, merged then: merging must not change what counts as rare
	for seg, c := range n.children {
		others := files
		if isMixed(seg) {
			others--
		}
		if n.isRare(c, others) {
			rare = append(rare, seg)
		}
	}
	for _, seg := range rare {
		c := n.children[seg]
		delete(n.children, seg)
		t.merge(n.wildNode(), c)
	}
	for _, c := range n.below() {
		t.settle(c, maxDistinct)
	}
}

// isRare tells whether a child was seen too seldom to keep its name. A path's end merges with any
// collapsed sibling. A folder merges with identifiers that were seen minLiteral times or that hold
// the same things as it does: /bob/orders beside /7/orders. A single stray identifier at a position
// does not make values of the unlike folders beside it: /users/7 beside /42/fhir/Med/9.
func (n *node) isRare(c *node, files int) bool {
	switch {
	case c.requests >= minLiteral:
		return false
	case len(c.leaves) > 0 && (n.wild != nil || files > 0):
		return true
	}
	return n.wild != nil && (n.wild.requests >= minLiteral || n.wild.resembles(c))
}

// resembles tells whether two nodes have a child in common.
func (n *node) resembles(o *node) bool {
	if n.wild != nil && o.wild != nil || n.slash != nil && o.slash != nil {
		return true
	}
	for seg := range o.children {
		if n.children[seg] != nil {
			return true
		}
	}
	return false
}

// isMixed tells a file name with a placeholder inside: a literal's braces are escaped.
func isMixed(seg string) bool { return strings.IndexByte(seg, '{') >= 0 }

// each visits every node that has leaves, with its template.
func (n *node) each(path string, visit func(path string, n *node)) {
	if len(n.leaves) > 0 {
		visit(path, n)
	}
	for seg, c := range n.children {
		c.each(path+"/"+seg, visit)
	}
	if n.wild != nil {
		n.wild.each(path+"/"+idHole, visit)
	}
	if n.slash != nil {
		n.slash.each(path+"/", visit)
	}
	if n.rest != nil {
		n.rest.each(path+"/"+restHole, visit)
	}
}

// walkTemplate finds the node of a route that the source names. Its placeholders keep their names;
// literals that look like identifiers collapse all the same, because some sources put the raw path
// where the route belongs.
func (t *tree) walkTemplate(tpl *Template, scratch *[]byte) *node {
	n := &t.root
	n.requests++
	hash := uint64(hashSeed)
	for depth := range tpl.segs {
		if depth == maxDepth-1 {
			n = n.restNode()
			n.requests++
			return n
		}
		s := &tpl.segs[depth]
		hashole := false
		switch b := (*scratch)[:0]; s.kind {
		case literal:
			*scratch, hashole = appendShapeOf(b, s.text)
		case rest:
			*scratch = append(append(append(b, '{'), s.name...), "...}"...)
		default:
			b = append(append(b, s.text...), '{')
			*scratch = append(append(append(b, s.name...), '}'), s.suffix...)
			hashole = true
		}
		hash = hashBytes(hash, *scratch)*hashPrime ^ '/'
		t.step(&n, *scratch, hashole, true, mix64(hash))
		n.requests++
	}
	return n
}

// appendShapeOf is appendShape of a literal of a template.
func appendShapeOf(dst []byte, text string) ([]byte, bool) {
	from := len(dst)
	dst = append(dst, text...)
	out, hashole := appendShape(dst[len(dst):], dst[from:])
	return append(dst[:from], out...), hashole
}

// covers is Match on bytes, without the values and without allocating.
func (t *Template) covers(path []byte) bool {
	left, more := path[1:], true
	for i := range t.segs {
		s := &t.segs[i]
		if !more {
			return false
		}
		if s.kind == rest {
			return true
		}
		p := left
		more = false
		for j, c := range left {
			if c == '/' {
				p, left, more = left[:j], left[j+1:], true
				break
			}
		}
		switch s.kind {
		case literal:
			if string(p) != s.text {
				return false
			}
		case mixed:
			l, m := len(s.text), len(p)-len(s.suffix)
			if m <= l || string(p[:l]) != s.text || string(p[m:]) != s.suffix {
				return false
			}
		default:
			if len(p) == 0 {
				return false
			}
		}
	}
	return !more
}
