package traffic

import (
	"errors"
	"strings"
)

// UnifyRoute turns a route as a web framework spells it into a Template. It reads :id, :id(re),
// :id?, {id}, {id:re}, {id?}, <id>, <int:id>, [id], and as a rest *, **, *name, :name*, {*name},
// {name...}, [...name] and (.*). A segment with several placeholders becomes one. A regular
// expression as a route is refused: it names no path.
func UnifyRoute(route string) (*Template, error) {
	if route == "*" {
		route = "/*"
	}
	if !strings.HasPrefix(route, "/") {
		return nil, errors.New("a route starts with /")
	}
	if strings.HasPrefix(route, "/^") || strings.Contains(route, `\/`) {
		return nil, errors.New("a regular expression is no path template")
	}
	parts := splitRoute(route[1:])
	out := make([]string, 0, len(parts))
	for i, p := range parts {
		if p == "{$}" { // net/http: the path ends here
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
	case p == "*" || p == "**" || p == "(.*)":
		return restHole
	case len(p) > 1 && p[0] == '*' && isName(p[1:]):
		return "{" + p[1:] + "...}"
	}
	var before, name string
	holes, isRest, after := 0, false, 0
	for i := 0; i < len(p); {
		n, star, end := holeAt(p, i)
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

// holeAt reads a placeholder that starts at i. end == i means that none does.
func holeAt(p string, i int) (name string, star bool, end int) {
	switch c := p[i]; {
	case c == ':' && i+1 < len(p) && (isAlpha(p[i+1]) || p[i+1] == '_'):
		return colonHole(p, i)
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
	switch {
	case open == '<':
		if typ, n, ok := strings.Cut(in, ":"); ok { // <int:id>, <path:rest>
			in, star = n, typ == "path"
		}
	case open == '[':
		in = strings.Trim(in, "[]")
		star = strings.HasPrefix(in, "...")
		in = strings.TrimPrefix(in, "...")
	default:
		star = strings.HasPrefix(in, "*") || strings.HasSuffix(in, "...")
		in = strings.TrimSuffix(strings.TrimLeft(in, "*"), "...")
		n, re, _ := strings.Cut(in, ":")
		star = star || re == ".*" || re == ".+"
		in = strings.TrimSuffix(n, "?")
	}
	if !isName(in) {
		return "", false
	}
	return in, star
}
