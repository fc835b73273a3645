package traffic

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Template is a parsed path template: literal segments, {name} placeholders for one segment,
// segments such as app.{hash}.js that hold one placeholder between literal ends, and, last only,
// {name...} for a rest of any length.
//
// The same name may stand more than once (/{id}/items/{id}); Keys gives each place a name of its own.
type Template struct {
	segs []segment
	keys []string
	text string
}

type segKind uint8

const (
	literal segKind = iota
	hole            // the whole segment is a placeholder
	mixed           // a placeholder between literal ends, at least one of them not empty
	rest            // everything that follows; last only
)

type segment struct {
	kind   segKind
	text   string // literal: the segment; mixed: what stands before the placeholder
	suffix string // mixed: what stands behind it
	name   string
}

const (
	idHole   = "{id}"
	restHole = "{rest...}"
	// maxDepth is the number of segments that templating looks at; what is deeper becomes {rest...}.
	maxDepth = 32
)

// ParseTemplate reads a template in the profile's own syntax. It does not take a framework's
// syntax; UnifyRoute does.
func ParseTemplate(s string) (*Template, error) {
	if !strings.HasPrefix(s, "/") {
		return nil, errors.New("a path template starts with /")
	}
	t := &Template{}
	parts := strings.Split(s[1:], "/")
	for i, p := range parts {
		seg, err := parseSegment(p)
		if err != nil {
			return nil, err
		}
		if seg.kind == rest && i != len(parts)-1 {
			return nil, fmt.Errorf("{%s...} must be the last segment", seg.name)
		}
		t.segs = append(t.segs, seg)
	}
	t.finish()
	return t, nil
}

func parseSegment(p string) (segment, error) {
	open := strings.IndexByte(p, '{')
	if open < 0 {
		if strings.IndexByte(p, '}') >= 0 {
			return segment{}, fmt.Errorf("segment %q has a } without its {", p)
		}
		return segment{kind: literal, text: string(appendClean(nil, []byte(p)))}, nil
	}
	end := strings.IndexByte(p, '}')
	if end < open || strings.ContainsAny(p[end+1:], "{}") {
		return segment{}, fmt.Errorf("segment %q holds more than one placeholder, or an unfinished one", p)
	}
	name, tail := p[open+1:end], ""
	if strings.HasSuffix(name, "...") {
		name, tail = name[:len(name)-3], "..."
	}
	if !isName(name) {
		return segment{}, fmt.Errorf("placeholder {%s} is no name: letters, digits, _ and - are", name+tail)
	}
	before, after := p[:open], p[end+1:]
	switch {
	case tail != "" && before+after != "":
		return segment{}, fmt.Errorf("{%s...} must be a segment of its own", name)
	case tail != "":
		return segment{kind: rest, name: name}, nil
	case before+after == "":
		return segment{kind: hole, name: name}, nil
	}
	return segment{kind: mixed, text: string(appendClean(nil, []byte(before))),
		suffix: string(appendClean(nil, []byte(after))), name: name}, nil
}

func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlnum(c) && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}

func (t *Template) finish() {
	var b strings.Builder
	used := map[string]bool{}
	for i := range t.segs {
		s := &t.segs[i]
		b.WriteByte('/')
		switch s.kind {
		case literal:
			b.WriteString(s.text)
			continue
		case rest:
			b.WriteString("{" + s.name + "...}")
		default:
			b.WriteString(s.text + "{" + s.name + "}" + s.suffix)
		}
		key := s.name
		for n := 2; used[key]; n++ {
			key = s.name + strconv.Itoa(n)
		}
		used[key] = true
		t.keys = append(t.keys, key)
	}
	t.text = b.String()
}

// String is the template in canonical spelling.
func (t *Template) String() string { return t.text }

// Keys names the placeholders from left to right: the name itself where it stands first, then with
// 2, 3, ... behind it. /{id}/items/{id} has the keys id and id2. `load.params` uses these keys.
func (t *Template) Keys() []string { return append([]string(nil), t.keys...) }

// Literal tells that the template has no placeholder, so that it is a path.
func (t *Template) Literal() bool { return len(t.keys) == 0 }

// Rest tells that the template ends in a wildcard over segments, so that it cannot be sent without
// declared values.
func (t *Template) Rest() bool {
	return len(t.segs) > 0 && t.segs[len(t.segs)-1].kind == rest
}

// Match takes the values of the placeholders from a raw path, still percent-encoded as they stand.
func (t *Template) Match(path string) ([]string, bool) {
	if !strings.HasPrefix(path, "/") {
		return nil, false
	}
	values := make([]string, 0, len(t.keys))
	left, more := path[1:], true
	for i := range t.segs {
		s := &t.segs[i]
		if !more {
			return nil, false
		}
		if s.kind == rest {
			return append(values, left), true
		}
		var p string
		p, left, more = strings.Cut(left, "/")
		switch s.kind {
		case literal:
			if p != s.text {
				return nil, false
			}
			continue
		case mixed:
			if len(p) <= len(s.text)+len(s.suffix) || !strings.HasPrefix(p, s.text) || !strings.HasSuffix(p, s.suffix) {
				return nil, false
			}
			p = p[len(s.text) : len(p)-len(s.suffix)]
		}
		if p == "" {
			return nil, false
		}
		values = append(values, p)
	}
	return values, !more
}

// Append writes the path with value(n) at the n-th placeholder. Values are written as they are, so
// they must be percent-encoded already; EscapeSegment does that. Append itself does not allocate.
func (t *Template) Append(dst []byte, value func(dst []byte, n int) []byte) []byte {
	n := 0
	for i := range t.segs {
		s := &t.segs[i]
		dst = append(dst, '/')
		dst = append(dst, s.text...)
		if s.kind != literal {
			dst = value(dst, n)
			n++
		}
		dst = append(dst, s.suffix...)
	}
	return dst
}

// Expand is Append for a slice of values, one per key.
func (t *Template) Expand(values []string) string {
	return string(t.Append(nil, func(dst []byte, n int) []byte { return append(dst, values[n]...) }))
}

// EscapeSegment percent-encodes a plain value so that it is one path segment. "." and ".." are
// encoded too, or they would not stay segments.
func EscapeSegment(v string) string {
	if v == "." || v == ".." {
		return strings.ReplaceAll(v, ".", "%2E")
	}
	var b []byte
	for i := 0; i < len(v); i++ {
		if c := v[i]; isAlnum(c) || strings.IndexByte("-._~!$&'()*+,=:@", c) >= 0 {
			b = append(b, c)
		} else {
			b = appendEscape(b, c)
		}
	}
	return string(b)
}

const upperHex = "0123456789ABCDEF"

func appendEscape(dst []byte, c byte) []byte {
	return append(dst, '%', upperHex[c>>4], upperHex[c&15])
}

// appendClean brings a recorded path or segment into one spelling: percent-escapes in upper case,
// and what may not stand in a request line, or would read as a placeholder, escaped. It decodes
// nothing, so it never changes what is asked for.
func appendClean(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			dst = append(dst, '%', upper(s[i+1]), upper(s[i+2]))
			i += 2
		case c <= ' ' || c >= 0x7f || c == '{' || c == '}' || c == '"' || c == '<' || c == '>' || c == '\\' || c == '?' || c == '#':
			dst = appendEscape(dst, c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// isClean tells that appendClean would change nothing.
func isClean(s []byte) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%':
			if i+2 < len(s) && (s[i+1] >= 'a' && s[i+1] <= 'f' || s[i+2] >= 'a' && s[i+2] <= 'f') {
				return false
			}
		case c <= ' ' || c >= 0x7f || c == '{' || c == '}' || c == '"' || c == '<' || c == '>' || c == '\\' || c == '?' || c == '#':
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isAlpha(c byte) bool { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }
func isHex(c byte) bool   { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func upper(c byte) byte {
	if isLower(c) {
		return c - 'a' + 'A'
	}
	return c
}
