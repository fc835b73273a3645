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

// tree collapses positions while it grows: one has at most fanout literal children. A position
// collapses if and only if its set of literals, taken over all that merged into it, is larger than
// the fanout, so the tree depends on the set of paths only. Should the whole tree outgrow maxNodes
// all the same, the fanout halves until it fits, which hits the widest positions first; in such an
// input, and in no other, order can decide which fanout is reached.
type tree struct {
	root     node
	nodes    int // without the root
	fanout   int
	depth    int // segments looked at
	sampling     // limits for merging
}

// sampling is how much a leaf keeps.
type sampling struct {
	limit int // exact samples of a dist
	keep  int // raw paths of a reservoir
	hold  int // values of a tally, after a purge
}

const (
	firstFanout = 4096
	maxNodes    = 1 << 17
)

func newTree() *tree { return &tree{fanout: firstFanout, depth: maxDepth} }

// walk finds the node of a path, creating it, and counts one request on the way.
func (t *tree) walk(path, scratch []byte) (*node, []byte) {
	n := &t.root
	n.requests++
	left := path[1:]
	for depth := 1; ; depth++ {
		if depth == t.depth {
			n = t.child(&n.rest)
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
		n = t.step(n, scratch, hashole)
		n.requests++
		if !more {
			return n, scratch
		}
	}
}

// step goes one segment down.
func (t *tree) step(n *node, seg []byte, hashole bool) *node {
	switch {
	case len(seg) == 0:
		return t.child(&n.slash)
	case n.collapsed || hashole && string(seg) == idHole:
		return t.child(&n.wild)
	}
	if c := n.children[string(seg)]; c != nil {
		return c
	}
	if len(n.children) >= t.fanout {
		t.collapse(n)
		return t.child(&n.wild)
	}
	if n.children == nil {
		n.children = make(map[string]*node, 1)
	}
	c := &node{}
	t.nodes++
	n.children[string(seg)] = c
	return c
}

// child gives the node at a place, creating it.
func (t *tree) child(at **node) *node {
	if *at == nil {
		*at = &node{}
		t.nodes++
	}
	return *at
}

// tidy keeps the tree within maxNodes.
func (t *tree) tidy() {
	for t.nodes > maxNodes && t.fanout > 0 {
		t.fanout /= 2
		t.sweep(&t.root, 0)
	}
	for t.nodes > maxNodes && t.depth > 2 { // empty segments beside placeholders branch too
		t.depth /= 2
		t.sweep(&t.root, 0)
	}
}

// sweep collapses what is over the fanout and cuts what is below the depth.
func (t *tree) sweep(n *node, depth int) {
	if len(n.children) > t.fanout {
		t.collapse(n)
	}
	if depth == t.depth-1 {
		t.cut(n)
		return
	}
	for _, c := range n.below() {
		t.sweep(c, depth+1)
	}
}

// cut moves all that lies below a node into its rest.
func (t *tree) cut(n *node) {
	below := n.below()
	n.children, n.wild, n.slash, n.rest = nil, nil, nil, nil
	for _, c := range below {
		t.cut(c)
		if c.rest != nil {
			t.merge(c, c.rest)
			c.requests -= c.rest.requests // they were counted on the way down
			c.rest = nil
		}
		t.merge(t.child(&n.rest), c)
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
	wild := t.child(&n.wild)
	for _, c := range n.children {
		t.merge(wild, c)
	}
	n.children = nil
}

// merge adds the subtree of src to dst; src must not be used afterwards.
func (t *tree) merge(dst, src *node) {
	t.nodes--
	dst.requests += src.requests
	for _, l := range src.leaves {
		dst.leaf(l.method).merge(l, t.sampling)
	}
	if src.collapsed && !dst.collapsed {
		t.collapse(dst)
	}
	for seg, c := range src.children {
		switch {
		case dst.collapsed:
			t.merge(t.child(&dst.wild), c)
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
		t.merge(t.child(&n.wild), c)
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
	for depth := range tpl.segs {
		if depth == t.depth-1 {
			n = t.child(&n.rest)
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
		n = t.step(n, *scratch, hashole)
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
