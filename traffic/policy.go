package traffic

import (
	"errors"
	"slices"
	"strings"

	"seatrial/fault"
)

// The lists of a policy, as the manifest names them.
const (
	SafeRoutes   = "safe_routes"
	UnsafeRoutes = "unsafe_routes"
)

// Policy decides what may be sent. Its zero value allows nothing.
//
// A pattern is "METHOD /path". The method * stands for every method. In the path, * or a {name} is
// exactly one segment that is not empty, and ** , last only, is the rest, which may be nothing: /a/**
// covers /a, /a/ and all below. A trailing slash in the pattern has to be there in the path.
//
// A path has as many spellings as there are servers that read it differently; forms lists them. A
// request is unsafe when any of them matches unsafe_routes, and safe only when all of them match
// safe_routes. unsafe_routes is matched without regard to the case of ASCII letters, because some
// servers do not regard it.
type Policy struct {
	safe, unsafe []pattern
}

type pattern struct {
	text   string
	method string // upper case; "*" for any
	segs   []patternSegment
	rest   bool // ends in **
}

type patternSegment struct {
	any  bool
	text string // decoded
	fold string // lower case
}

// Decision is what a policy says of a request or of a template.
type Decision struct {
	Safe    bool
	List    string // SafeRoutes or UnsafeRoutes, whichever decided; empty: no pattern of safe_routes matched
	Pattern string // the pattern that decided, as written
	Reason  string // why a request can never be safe, whatever the lists say; empty otherwise
	// Partial is for templates only: the unsafe pattern matches for some values of the placeholders
	// and not for others. Such a template is not Safe; one who knows the values may Decide each.
	Partial bool
}

// NewPolicy reads the patterns of both lists. Every bad one is named: the error is a fault.List of
// MAN-004.
func NewPolicy(safe, unsafe []string) (*Policy, error) {
	var problems fault.List
	read := func(list string, texts []string) []pattern {
		var out []pattern
		for _, text := range texts {
			p, err := parsePattern(text)
			if err != nil {
				problems = append(problems, fault.New(fault.MAN004, "load.%s: %q is no pattern: %s", list, text, err).
					WithNext("Write METHOD /path, where * is one segment and ** the rest, such as \"GET /users/**\"."))
				continue
			}
			out = append(out, p)
		}
		return out
	}
	p := &Policy{safe: read(SafeRoutes, safe), unsafe: read(UnsafeRoutes, unsafe)}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

func parsePattern(text string) (pattern, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return pattern{}, errors.New("it takes a method, a space and a path")
	}
	p := pattern{text: text, method: strings.ToUpper(fields[0])}
	if p.method != "*" && !isMethod(p.method) {
		return pattern{}, errors.New("the method is none")
	}
	path := fields[1]
	if !strings.HasPrefix(path, "/") {
		return pattern{}, errors.New("the path must start with /")
	}
	if strings.ContainsAny(path, "?#") {
		return pattern{}, errors.New("a query string does not take part in matching")
	}
	parts := strings.Split(path[1:], "/")
	for i, s := range parts {
		switch {
		case s == "**" && i == len(parts)-1:
			p.rest = true
		case s == "**":
			return pattern{}, errors.New("** must be the last segment")
		case s == "*":
			p.segs = append(p.segs, patternSegment{any: true})
		case len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' && isName(s[1:len(s)-1]):
			p.segs = append(p.segs, patternSegment{any: true})
		case strings.ContainsAny(s, "*{}"):
			return pattern{}, errors.New("* stands for a whole segment; write %2A for a literal star")
		case s == "." || s == "..":
			return pattern{}, errors.New("dot segments are removed before matching")
		case s == "" && i != len(parts)-1:
			return pattern{}, errors.New("double slashes are merged before matching")
		default:
			plain := decodeAll(s)
			p.segs = append(p.segs, patternSegment{text: plain, fold: foldASCII(plain)})
		}
	}
	return p, nil
}

// Decide judges a concrete request by its method and its path as it would be written to a socket.
// What follows a ? or # does not take part: a query string cannot widen what is allowed.
func (p *Policy) Decide(method, rawPath string) Decision {
	if i := strings.IndexAny(rawPath, "?#"); i >= 0 {
		rawPath = rawPath[:i]
	}
	if isPlain(rawPath) {
		return p.decideOne(method, rawPath)
	}
	all, why := forms(rawPath)
	d := Decision{Reason: why}
	for _, form := range all {
		if u := find(p.unsafe, method, form, true); u != nil {
			return Decision{List: UnsafeRoutes, Pattern: u.text}
		}
	}
	if why != "" {
		return d
	}
	matched := 0
	for _, form := range all {
		if s := find(p.safe, method, form, false); s != nil {
			if matched++; matched == 1 {
				d.Pattern = s.text
			}
		}
	}
	switch matched {
	case len(all):
		return Decision{Safe: true, List: SafeRoutes, Pattern: d.Pattern}
	case 0:
		return Decision{}
	}
	return Decision{Reason: "not every reading of the path matches " + SafeRoutes}
}

func (p *Policy) decideOne(method, path string) Decision {
	if u := find(p.unsafe, method, path, true); u != nil {
		return Decision{List: UnsafeRoutes, Pattern: u.text}
	}
	if s := find(p.safe, method, path, false); s != nil {
		return Decision{Safe: true, List: SafeRoutes, Pattern: s.text}
	}
	return Decision{}
}

func find(list []pattern, method, form string, fold bool) *pattern {
	for i := range list {
		p := &list[i]
		if p.takes(method, fold) && p.match(form, fold) {
			return p
		}
	}
	return nil
}

func (p *pattern) takes(method string, fold bool) bool {
	return p.method == "*" || p.method == method || fold && strings.EqualFold(p.method, method)
}

func (p *pattern) match(form string, fold bool) bool {
	left, more := form[1:], true
	for i := range p.segs {
		if !more {
			return false
		}
		var seg string
		seg, left, more = strings.Cut(left, "/")
		if !p.segs[i].match(seg, fold) {
			return false
		}
	}
	return p.rest || !more
}

func (s *patternSegment) match(seg string, fold bool) bool {
	if s.any {
		return seg != ""
	}
	if seg == s.text {
		return true
	}
	if strings.IndexByte(seg, '%') >= 0 {
		seg = decodeAll(seg)
	}
	return seg == s.text || fold && foldASCII(seg) == s.fold
}

// DecideTemplate judges a template before any value is known. For safe_routes a placeholder matches
// only * and **, since a literal would hold for one value alone. For unsafe_routes a placeholder
// matches everything it could be filled with, so that a doubtful template is unsafe; Decision.Partial
// tells the doubtful from the certain.
func (p *Policy) DecideTemplate(method, template string) Decision {
	t, err := ParseTemplate(template)
	if err != nil {
		return Decision{Reason: "the template cannot be read: " + err.Error()}
	}
	if t.Literal() {
		return p.Decide(method, t.text)
	}
	var partial *pattern
	for i := range p.unsafe {
		u := &p.unsafe[i]
		if !u.takes(method, true) {
			continue
		}
		switch certain, possible := u.matchTemplate(t, true); {
		case certain:
			return Decision{List: UnsafeRoutes, Pattern: u.text}
		case possible && partial == nil:
			partial = u
		}
	}
	if partial != nil {
		return Decision{List: UnsafeRoutes, Pattern: partial.text, Partial: true}
	}
	for i := range p.safe {
		s := &p.safe[i]
		if certain, _ := s.matchTemplate(t, false); certain && s.takes(method, false) {
			return Decision{Safe: true, List: SafeRoutes, Pattern: s.text}
		}
	}
	return Decision{}
}

// matchTemplate tells whether the pattern matches for all values, and whether for some. A value fills
// one segment here; one that would not stay a segment is caught by Decide.
func (p *pattern) matchTemplate(t *Template, fold bool) (certain, possible bool) {
	certain = true
	for i := range t.segs {
		s := &t.segs[i]
		if i == len(p.segs) {
			return p.rest && certain, p.rest
		}
		ps := &p.segs[i]
		switch {
		case s.kind == rest: // may be anything, of any length
			return false, true
		case s.kind == literal:
			if !ps.match(s.text, fold) {
				return false, false
			}
		case ps.any:
		case s.kind == mixed && !ps.couldBe(s):
			return false, false
		default:
			certain = false
		}
	}
	if len(t.segs) < len(p.segs) {
		return false, false
	}
	return certain, true
}

func (s *patternSegment) couldBe(m *segment) bool {
	before, after := foldASCII(decodeAll(m.text)), foldASCII(decodeAll(m.suffix))
	return len(s.fold) > len(before)+len(after) && strings.HasPrefix(s.fold, before) && strings.HasSuffix(s.fold, after)
}

// SingleStarWarnings names the unsafe patterns that end in a single * while the traffic holds deeper
// paths below it, which they do not cover (TR-42).
func (p *Policy) SingleStarWarnings(profile *Profile) []string {
	var out []string
	for i := range p.unsafe {
		u := &p.unsafe[i]
		if u.rest || len(u.segs) == 0 || !u.segs[len(u.segs)-1].any {
			continue
		}
		deeper := *u
		deeper.rest = true
		var names []string
		for j := range profile.Routes {
			r := &profile.Routes[j]
			t, err := ParseTemplate(r.Path)
			if r.Unmatched || err != nil || len(t.segs) <= len(u.segs) || !u.takes(r.Method, true) {
				continue
			}
			if _, possible := deeper.matchTemplate(t, true); possible {
				names = append(names, r.Name())
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			w := UnsafeRoutes + ": \"" + u.text + "\" ends in a single *, which is one segment: it does not cover " + names[0]
			if len(names) > 1 {
				w += " and other deeper routes"
			}
			out = append(out, w+"; write "+strings.TrimSuffix(u.text, "*")+"** to cover them")
		}
	}
	return out
}

// HasOverrideHeader tells whether a header asks the server to take the request for another method,
// and which (X-HTTP-Method-Override and its relatives). Headers are given by name; a value of
// several headers is the last one's. Such a request has to be allowed under both methods.
func HasOverrideHeader(headers map[string]string) (method string, found bool) {
	for name, value := range headers {
		if isOverride(name) && (!found || value < method) {
			method, found = value, true
		}
	}
	return strings.ToUpper(strings.TrimSpace(method)), found
}

// isOverride compares without case, and with _ for -, which some gateways treat alike.
func isOverride(name string) bool {
	switch strings.ReplaceAll(foldASCII(strings.TrimSpace(name)), "_", "-") {
	case "x-http-method-override", "x-http-method", "x-method-override", "http-method-override", "x-original-method", "x-rewrite-method":
		return true
	}
	return false
}
