package traffic

import (
	"errors"
	"strings"
)

// UnifyRoute turns a route as a web framework spells it into a Template. It reads :id, :id(re), :id?,
// {id}, {id:re}, {id:int}, {id?}, {id=5}, <id>, <int:id>, <id:int>, [id], $id, $id<re> and (?P<id>re),
// and as a rest *, **, *name, :name*, {*name}, {**name}, {name...}, {name:path}, <path:name>,
// [...name], [[...name]], $ and (.*). A segment with several placeholders becomes one. The slash at the
// start and the anchors ^ and $ may be there or not. A regular expression that names no path, and a
// route with optional segments, which is several paths, are refused. A route in the profile's own
// spelling stays as it is.
func UnifyRoute(route string) (*Template, error) {
	t, err := unify(route)
	if err != nil {
		return nil, err
	}
	if again, err := unify(t.text); err != nil || again.text != t.text {
		return nil, errors.New("the brackets of a route do not pair") // what is left of them reads as something else
	}
	return t, nil
}

func unify(route string) (*Template, error) {
	if method, path, ok := strings.Cut(route, " "); ok && isMethod(method) && strings.HasPrefix(path, "/") {
		route = path
	}
	switch {
	case route == "":
		return nil, errors.New("a route is not empty")
	case strings.HasPrefix(route, "/^"):
		return nil, errRegexp
	case strings.Contains(route, "://"):
		return nil, errors.New("a route has no scheme and no host")
	case strings.Contains(route, "[/") || strings.Contains(route, "{/") || strings.Contains(route, "(/"):
		return nil, errors.New("a route with optional segments is several paths")
	case route[0] != '/' && strings.ContainsAny(route, "# ") && !strings.ContainsAny(route, "{<("):
		return nil, errors.New("a route is a path")
	}
	route, err := plainRoute(route)
	if err != nil {
		return nil, err
	}
	parts := splitRoute(strings.TrimPrefix(route, "/"))
	out := make([]string, 0, len(parts))
	for i, p := range parts {
		p = strings.TrimLeft(p, "^") // of the pattern of a part that is included in another
		if p == "{$}" {              // net/http: the path ends here
			p = ""
		}
		seg := unifySegment(p)
		if strings.HasSuffix(seg, "...}") && i != len(parts)-1 {
			seg = "{" + strings.TrimSuffix(seg[1:], "...}") + "}" // a wildcard in the middle is one segment
		}
		out = append(out, seg)
	}
	return ParseTemplate("/" + strings.Join(out, "/"))
}

var errRegexp = errors.New("a regular expression is no path template")

// plainRoute takes off what stands around the path, and turns a pattern of Python's or Ruby's kind into
// placeholders.
func plainRoute(route string) (string, error) {
	route = strings.TrimSuffix(route, "(.:format)")      // Rails
	for _, open := range [...]string{"{?", "{&", "{#"} { // the query of a URI template
		route, _, _ = strings.Cut(route, open)
	}
	switch {
	case isPattern(route):
		return patternRoute(route)
	case strings.HasSuffix(route, "/$") || route == "$":
		return route, nil // a rest, not an anchor
	}
	return trimAnchors(route), nil
}

// isPattern tells a regular expression from a path with placeholders, which may hold one each.
func isPattern(route string) bool {
	if strings.HasPrefix(route, "^") {
		return true
	}
	depth := 0
	for i := range len(route) {
		switch c := route[i]; {
		case depth == 0 && (c == '\\' || strings.HasPrefix(route[i:], "(?")):
			return true
		case strings.IndexByte("{(<[", c) >= 0:
			depth++
		case strings.IndexByte("})>]", c) >= 0:
			depth = max(0, depth-1)
		}
	}
	return false
}

// trimAnchors takes the anchors of a pattern away, but for the end of {$}.
func trimAnchors(route string) string {
	return strings.TrimRight(strings.TrimLeft(route, "^"), "$")
}

// patternRoute reads a regular expression of literals and groups: ^articles/(?P<year>[0-9]{4})/$.
func patternRoute(route string) (string, error) {
	route = strings.TrimPrefix(trimAnchors(route), `\A`)
	route = strings.TrimSuffix(strings.TrimSuffix(route, `\Z`), `\z`)
	route = strings.TrimSuffix(route, "/?")
	var b strings.Builder
	for i := 0; i < len(route); i++ {
		switch c := route[i]; {
		case c == '(':
			end := matching(route, i, '(', ')')
			if end < 0 {
				return "", errRegexp
			}
			hole, ok := groupHole(route[i+1 : end])
			if !ok {
				return "", errRegexp
			}
			b.WriteString(hole)
			i = end
		case c == '\\' && i+1 < len(route) && !isAlnum(route[i+1]):
			i++
			b.WriteByte(route[i])
		case strings.IndexByte(`\[]|?*+{}`, c) >= 0:
			return "", errRegexp
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// groupHole is the placeholder for a group: of its own name, or of none.
func groupHole(group string) (hole string, ok bool) {
	name, re := "id", group
	if strings.HasPrefix(group, "?") {
		group = strings.TrimPrefix(strings.TrimPrefix(group, "?"), "P")
		name, re, ok = strings.Cut(strings.TrimPrefix(group, "<"), ">")
		if !ok || group[:min(1, len(group))] != "<" || !isName(name) {
			return "", false
		}
	}
	if takesSlashes(re) {
		return "{" + name + "...}", true
	}
	return "{" + name + "}", true
}

// takesSlashes tells that a placeholder's pattern can stand for several segments.
func takesSlashes(re string) bool {
	return strings.HasPrefix(re, ".*") || strings.HasPrefix(re, ".+")
}

// splitRoute splits at slashes outside brackets: a pattern such as {id:[^/]+} may hold one.
func splitRoute(s string) []string {
	var parts []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '(', '<', '[':
			depth++
		case '}', ')', '>', ']':
			depth = max(0, depth-1)
		case '/':
			if depth == 0 {
				parts = append(parts, s[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, s[from:])
}

// unifySegment gives one segment in the profile's syntax.
func unifySegment(p string) string {
	switch {
	case p == "*" || p == "**" || p == "(.*)" || p == "$":
		return restHole
	case len(p) > 1 && p[0] == '*' && isName(strings.TrimLeft(p, "*")):
		return "{" + strings.TrimLeft(p, "*") + "...}"
	case len(p) > 2 && p[0] == '[' && p[1] == '[' && strings.HasSuffix(p, "]]"): // optional
		p = p[1 : len(p)-1]
	}
	first := strings.IndexAny(p, "{(<[")
	braces := first >= 0 && p[first] == '{'
	var before, name string
	holes, isRest, after := 0, false, 0
	for i := 0; i < len(p); {
		n, star, end := holeAt(p, i, braces)
		if end == i {
			i++
			continue
		}
		if holes == 0 {
			before, name, isRest = p[:i], n, star
		}
		holes++
		i, after = end, end
	}
	suffix := p[after:]
	switch {
	case holes == 0:
		return p
	case holes > 1:
		return "{" + name + "}"
	case isRest && before+suffix == "":
		return "{" + name + "...}"
	}
	return before + "{" + name + "}" + suffix
}

// holeAt reads a placeholder that starts at i. end == i means that none does. Where braces mark the
// placeholders, a colon is a colon: {name}:cancel.
func holeAt(p string, i int, braces bool) (name string, star bool, end int) {
	switch c := p[i]; {
	case c == ':' && !braces && i+1 < len(p) && (isAlpha(p[i+1]) || p[i+1] == '_'):
		return colonHole(p, i)
	case c == '$' && i == 0 && len(p) > 1 && (isAlpha(p[1]) || p[1] == '_'):
		return dollarHole(p)
	case c == '*':
		for end = i; end < len(p) && p[end] == '*'; {
			end++
		}
		return "rest", false, end
	case c == '(' && !braces:
		if end = matching(p, i, '(', ')'); end > i+1 {
			return "id", takesSlashes(p[i+1 : end]), end + 1
		}
	case c == '{' || c == '<' || c == '[':
		closer := map[byte]byte{'{': '}', '<': '>', '[': ']'}[c]
		end = matching(p, i, c, closer)
		if end < 0 {
			return "", false, i
		}
		name, star = bracketName(p[i+1:end], c)
		if name == "" {
			return "", false, i
		}
		return name, star, end + 1
	}
	return "", false, i
}

// dollarHole reads $id and Play's $id<[0-9]+>.
func dollarHole(p string) (name string, star bool, end int) {
	for end = 1; end < len(p) && (isAlnum(p[end]) || p[end] == '_'); {
		end++
	}
	name = p[1:end]
	if end < len(p) && p[end] == '<' {
		if e := matching(p, end, '<', '>'); e > 0 {
			star = takesSlashes(p[end+1 : e])
			end = e + 1
		}
	}
	return name, star, end
}

func colonHole(p string, i int) (name string, star bool, end int) {
	end = i + 1
	for end < len(p) && (isAlnum(p[end]) || p[end] == '_') {
		end++
	}
	name = p[i+1 : end]
	if end < len(p) && p[end] == '(' {
		if e := matching(p, end, '(', ')'); e > 0 {
			star = p[end:e+1] == "(.*)" || p[end:e+1] == "(.+)"
			end = e + 1
		}
	}
	if end < len(p) && strings.IndexByte("?*+", p[end]) >= 0 {
		star = star || p[end] != '?'
		end++
	}
	return name, star, end
}

func matching(p string, i int, open, closer byte) int {
	depth := 0
	for ; i < len(p); i++ {
		switch p[i] {
		case open:
			depth++
		case closer:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// bracketName takes the name out of what stands between brackets.
func bracketName(in string, open byte) (name string, star bool) {
	switch open {
	case '<':
		in, star = angleName(in)
	case '[':
		star = strings.HasPrefix(in, "...")
		in, _, _ = strings.Cut(strings.TrimPrefix(in, "..."), "=") // a matcher
	default:
		in, star = braceName(in)
	}
	if in = strings.TrimSpace(in); !isName(in) {
		return "", false
	}
	return in, star
}

// braceName reads what stands between braces: name, name?, name:re, name:int, name=5, *name, name...
func braceName(in string) (name string, star bool) {
	star = strings.HasPrefix(in, "*") || strings.HasPrefix(in, "+") || strings.HasSuffix(in, "...")
	in = strings.TrimSuffix(strings.TrimLeft(in, "*+"), "...")
	name, re, _ := strings.Cut(in, ":")
	re = strings.TrimSpace(re)
	name, standard, _ := strings.Cut(name, "=")
	star = star || takesSlashes(re) || re == "path" || standard == "**"
	return strings.TrimSuffix(name, "?"), star
}

// angleName reads what stands between < and >: name, int:name and name:int, regex("[a-z]"):name,
// name:re:[a-z], name..
func angleName(in string) (name string, star bool) {
	if n, ok := strings.CutSuffix(in, ".."); ok {
		return n, true
	}
	if n, _, ok := strings.Cut(in, ":re:"); ok {
		return n, false
	}
	i := strings.LastIndexByte(in, ':')
	if i < 0 {
		return in, false
	}
	first, last := in[:i], in[i+1:]
	if isConverter(last) && !isConverter(first) {
		first, last = last, first
	}
	return last, first == "path"
}

// isConverter knows the types that frameworks have for placeholders.
func isConverter(s string) bool {
	switch s {
	case "int", "str", "string", "float", "path", "uuid", "slug", "any", "alpha", "date", "ymd", "strorempty", "number":
		return true
	}
	return false
}
