package traffic

import (
	"errors"
	"slices"
	"strings"
	"time"

	"seatrial/fault"
)

// Unmatched is the path of a Route that holds the requests which no route of the source matched. It
// does not start with a slash, so that it can never be sent.
const Unmatched = "(unmatched)"

// AssumedRate is the rate per second that is assumed when none can be counted.
const AssumedRate = 5

// Defaults of BuilderConfig.
const (
	DefaultMaxDistinct = 50
	DefaultKeep        = 1 << 16
)

// BuilderConfig shapes a Builder.
type BuilderConfig struct {
	Kind        string   // of the source: otel, access_log
	Declared    []string // templates, optionally with a method in front, that win over all else (TR-22)
	MaxDistinct int      // more distinct literals than this at one position may collapse (TR-21); 0: DefaultMaxDistinct
	Keep        int      // distinct raw paths kept per route for its placeholders; 0: DefaultKeep; negative: none
	Salt        []byte   // secret that values are hashed under; nil: random, and gone with the Builder
}

// Builder counts events into a Profile. Its result depends on the multiset of events only, not on
// their order or on how the input was split, but for the number of events that were out of order. Its
// memory is bounded whatever the input holds; what it does to inputs beyond a hundred thousand
// places in the tree of paths is with tree.
type Builder struct {
	cfg       BuilderConfig
	declared  []*declared
	paths     *tree             // events known by their path
	routes    *tree             // events whose source names the route
	unmatched map[string]*leaf  // by method
	parsed    map[string]*parse // Event.Route, as read; bounded
	rawPaths  *sketch
	sampling  sampling
	salt      salt
	held      int // values in tallies; never less than there are, but for what does not fit at all

	requests, timed  uint64
	first, last      int64
	previous         int64
	disorder, noPath int64
	seconds          timeline
	stamps           []int64 // nil once there are more than exactStamps
	flight           overlap

	clean, scratch []byte
}

type declared struct {
	method   string // empty: any
	template *Template
	leaves   map[string]*leaf
}

// parse is what Event.Route was read as; template is nil when it names no path.
type parse struct{ template *Template }

const (
	maxParsed   = 4096    // routes of the source whose reading is remembered
	maxKeptPath = 2048    // bytes of a raw path that can be kept as a value
	rawLimit    = 1 << 19 // distinct raw paths; beyond, each doubling halves what a route keeps
	minKeep     = 16
)

// NewBuilder checks the declared templates and makes an empty Builder. Templates that cannot be read
// are a fault.List of MAN-004.
func NewBuilder(cfg BuilderConfig) (*Builder, error) {
	if cfg.MaxDistinct <= 0 {
		cfg.MaxDistinct = DefaultMaxDistinct
	}
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	b := &Builder{cfg: cfg, paths: newTree(), routes: newTree(), unmatched: map[string]*leaf{},
		parsed: map[string]*parse{}, rawPaths: newSketch(), sampling: sampling{exactSamples, cfg.Keep, firstHold},
		salt: newSalt(cfg.Salt)}
	var problems fault.List
	for _, d := range cfg.Declared {
		method, path := "", d
		if m, p, ok := strings.Cut(d, " "); ok {
			method, path = m, strings.TrimLeft(p, " ")
		}
		t, err := UnifyRoute(path)
		if err == nil && path[0] != '/' && path != "*" {
			err = errors.New("a route starts with /")
		}
		if err != nil {
			problems = append(problems, fault.New(fault.MAN004, "load.traffic.routes: %q is no path template: %s", d, err).
				WithNext("Write a path such as /shop/{category}/{slug}."))
			continue
		}
		if method == "*" {
			method = ""
		}
		b.declared = append(b.declared, &declared{method, t, map[string]*leaf{}})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	slices.SortStableFunc(b.declared, func(x, y *declared) int { return x.compare(y) })
	b.paths.sampling, b.routes.sampling = b.sampling, b.sampling
	return b, nil
}

// compare orders declared templates by how specific they are: with a method first, then literal
// before placeholder before rest, segment by segment.
func (d *declared) compare(o *declared) int {
	if (d.method == "") != (o.method == "") {
		if d.method == "" {
			return 1
		}
		return -1
	}
	rank := [...]int{literal: 0, mixed: 1, hole: 2, rest: 3}
	for i := 0; i < len(d.template.segs) && i < len(o.template.segs); i++ {
		if c := rank[d.template.segs[i].kind] - rank[o.template.segs[i].kind]; c != 0 {
			return c
		}
	}
	return strings.Compare(d.template.text+d.method, o.template.text+o.method)
}

// Add counts one event. In the steady state it does not allocate.
func (b *Builder) Add(e *Event) {
	path := e.Path
	for i, c := range path {
		if c == '?' || c == '#' {
			path = path[:i]
			break
		}
	}
	if len(path) > 0 && !isClean(path) {
		b.clean = appendClean(b.clean[:0], path)
		path = b.clean
	}
	method := canonicalMethod(e.Method)
	if len(path) == 0 && len(e.Route) == 0 {
		b.noPath++
		return
	}
	b.requests++
	b.time(e)
	b.relax()
	l := b.place(e, method, path)
	l.add(e, b.sampling.limit)
	if len(path) > 0 && path[0] == '/' && !b.isUnmatched(l) {
		if b.held += l.note(path, b.salt, b.sampling.hold); b.held > maxHeld {
			b.forget()
		}
		b.remember(l, path)
	}
	b.paths.tidy()
	b.routes.tidy()
}

// Requests is how many events have been counted so far.
func (b *Builder) Requests() uint64 { return b.requests }

// place finds the leaf of an event: declared route, then the source's own route, then the path.
func (b *Builder) place(e *Event, method string, path []byte) *leaf {
	rooted := len(path) > 0 && path[0] == '/'
	if method == otherMethod || len(path) > 0 && !rooted {
		return b.unmatchedLeaf(method)
	}
	for _, d := range b.declared {
		if rooted && (d.method == "" || d.method == method) && d.template.covers(path) {
			return leafOf(d.leaves, method)
		}
	}
	if len(e.Route) > 0 {
		t := b.read(e.Route)
		switch {
		case t == nil && !rooted:
			return b.unmatchedLeaf(method)
		case t == nil:
		case !rooted || t.covers(path):
			return b.routes.walkTemplate(t, &b.scratch).leaf(method)
		case t.text == "/": // what instrumentations put where nothing matched
			return b.unmatchedLeaf(method)
		}
		// Otherwise the source names a route that its own path does not follow, such as one below a
		// mount point: what was asked for is the path.
	}
	var n *node
	n, b.scratch = b.paths.walk(path, b.scratch)
	return n.leaf(method)
}

func (b *Builder) unmatchedLeaf(method string) *leaf { return leafOf(b.unmatched, method) }

func leafOf(m map[string]*leaf, method string) *leaf {
	l := m[method]
	if l == nil {
		l = &leaf{method: method}
		m[method] = l
	}
	return l
}

func (b *Builder) read(route []byte) *Template {
	if p := b.parsed[string(route)]; p != nil {
		return p.template
	}
	t, err := UnifyRoute(string(route))
	if err != nil {
		t = nil
	}
	if len(b.parsed) < maxParsed {
		b.parsed[string(route)] = &parse{t}
	}
	return t
}

// remember keeps the raw path for its values.
func (b *Builder) remember(l *leaf, path []byte) {
	if b.cfg.Keep < 0 || len(path) > maxKeptPath {
		return
	}
	hash := mix64(hashBytes(hashSeed, path))
	if !l.values.has(path) && b.rawPaths.add(hash) {
		b.sampling.keep = min(b.sampling.keep, max(minKeep, b.cfg.Keep>>min(20, b.rawPaths.doublings(rawLimit))))
		b.paths.keep, b.routes.keep = b.sampling.keep, b.sampling.keep
	}
	l.values.add(path, hash, 1, b.sampling.keep)
}

func (b *Builder) isUnmatched(l *leaf) bool { return b.unmatched[l.method] == l }

// forget halves how many values each place holds until half of the room is free.
func (b *Builder) forget() {
	for {
		sum := 0
		b.leaves(func(l *leaf) {
			for i := range l.places {
				sum += l.places[i].shrink(b.sampling.hold)
			}
		})
		b.held = min(sum, maxHeld/2)
		if sum <= maxHeld/2 || b.sampling.hold == 1 {
			return
		}
		b.sampling.hold /= 2
		b.paths.hold, b.routes.hold = b.sampling.hold, b.sampling.hold
	}
}

// leaves visits all of them but the unmatched.
func (b *Builder) leaves(visit func(*leaf)) {
	each := func(_ string, n *node) {
		for _, l := range n.leaves {
			visit(l)
		}
	}
	b.paths.root.each("", each)
	b.routes.root.each("", each)
	for _, d := range b.declared {
		for _, l := range d.leaves {
			visit(l)
		}
	}
}

// relax lowers the number of exact samples per route on long inputs.
func (b *Builder) relax() {
	if b.requests == manyRequests {
		b.sampling.limit = exactSamplesMany
		b.paths.limit, b.routes.limit = exactSamplesMany, exactSamplesMany
	}
}

func (b *Builder) time(e *Event) {
	if e.UnixNano == 0 {
		return
	}
	t := e.UnixNano
	if b.timed == 0 {
		b.first, b.last = t, t
	}
	if b.timed > 0 && t < b.previous {
		b.disorder++
	}
	b.previous = t
	b.timed++
	b.first, b.last = min(b.first, t), max(b.last, t)
	switch {
	case b.timed <= exactStamps:
		b.stamps = append(b.stamps, t)
	case b.stamps != nil:
		b.stamps = nil
	}
	b.seconds.add(floorDiv(t, int64(time.Second)), 1)
	if e.Duration >= 0 {
		b.flight.add(t, t+int64(e.Duration))
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// otherMethod stands for methods that are none of HTTP's own, so that a hostile log cannot make
// routes without end. They are never sent.
const otherMethod = "OTHER"

// canonicalMethod avoids an allocation per event and bounds the number of methods: those of RFC
// 9110, PATCH, QUERY, and those of WebDAV and its extensions that servers still see.
func canonicalMethod(m []byte) string {
	switch string(m) {
	case "GET":
		return "GET"
	case "POST":
		return "POST"
	case "HEAD":
		return "HEAD"
	case "PUT":
		return "PUT"
	case "DELETE":
		return "DELETE"
	case "PATCH":
		return "PATCH"
	case "OPTIONS":
		return "OPTIONS"
	}
	for _, known := range [...]string{"TRACE", "CONNECT", "QUERY", "PURGE", "PROPFIND", "PROPPATCH", "MKCOL", "COPY",
		"MOVE", "LOCK", "UNLOCK", "SEARCH", "REPORT", "ACL", "BIND", "UNBIND", "REBIND", "CHECKIN", "CHECKOUT",
		"LABEL", "LINK", "UNLINK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKWORKSPACE", "ORDERPATCH", "UPDATE",
		"UNCHECKOUT", "VERSION-CONTROL", "BASELINE-CONTROL", "SUBSCRIBE", "UNSUBSCRIBE", "NOTIFY", "PRI"} {
		if string(m) == known {
			return known
		}
	}
	return otherMethod
}
