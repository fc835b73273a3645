package recorded

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how many JSON values may stand within each other.
const maxDepth = 200

// The words for JSON that cannot be read.
const (
	notJSON    = "not JSON"
	tooDeep    = "values are nested too deep"
	halfPair   = "half of a surrogate pair within a string"
	notUnicode = "a string that is not UTF-8"
)

// checkJSON tells what keeps b from being one JSON value; empty when nothing does. Strings are checked
// for their grammar only: what they hold is looked at when they are used.
func checkJSON(b []byte) string {
	c := checker{b: b}
	if why := c.value(0); why != "" {
		return why
	}
	if c.space(); c.i != len(b) {
		return notJSON
	}
	return ""
}

type checker struct {
	b []byte
	i int
}

func (c *checker) space() {
	for c.i < len(c.b) && isSpace(c.b[c.i]) {
		c.i++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// peek is the next byte behind white space, 0 at the end.
func (c *checker) peek() byte {
	c.space()
	if c.i == len(c.b) {
		return 0
	}
	return c.b[c.i]
}

func (c *checker) value(depth int) string {
	if depth > maxDepth {
		return tooDeep
	}
	switch c.peek() {
	case '{':
		return c.list('}', depth)
	case '[':
		return c.list(']', depth)
	case '"':
		return c.text()
	}
	from := c.i
	for c.i < len(c.b) && isWord(c.b[c.i]) {
		c.i++
	}
	switch w := c.b[from:c.i]; {
	case string(w) == "true", string(w) == "false", string(w) == "null", isNumber(w):
		return ""
	}
	return notJSON
}

// list checks an object or an array, whose opening is the next byte.
func (c *checker) list(end byte, depth int) string {
	c.i++
	if c.peek() == end {
		c.i++
		return ""
	}
	for {
		if end == '}' {
			if c.peek() != '"' || c.text() != "" || c.peek() != ':' {
				return notJSON
			}
			c.i++
		}
		if why := c.value(depth + 1); why != "" {
			return why
		}
		switch c.peek() {
		case end:
			c.i++
			return ""
		case ',':
			c.i++
		default:
			return notJSON
		}
	}
}

// text checks a string, whose opening quote is the next byte.
func (c *checker) text() string {
	for c.i++; c.i < len(c.b); c.i++ {
		switch ch := c.b[c.i]; {
		case ch == '"':
			c.i++
			return ""
		case ch < 0x20:
			return notJSON
		case ch == '\\':
			c.i++
			if c.i == len(c.b) {
				return notJSON
			}
			if c.b[c.i] == 'u' {
				if _, ok := hex4(c.b[c.i+1:]); !ok {
					return notJSON
				}
				c.i += 4
			} else if unescaped(c.b[c.i]) == 0 {
				return notJSON
			}
		}
	}
	return notJSON
}

func isWord(c byte) bool {
	return c-'0' <= 9 || c-'a' <= 'z'-'a' || c == '-' || c == '+' || c == '.' || c == 'E'
}

// isNumber checks the grammar of RFC 8259, 6.
func isNumber(w []byte) bool {
	w = bytes.TrimPrefix(w, []byte("-"))
	whole := digits(w)
	if whole == 0 || whole > 1 && w[0] == '0' {
		return false
	}
	if w = w[whole:]; len(w) > 0 && w[0] == '.' {
		n := digits(w[1:])
		if n == 0 {
			return false
		}
		w = w[1+n:]
	}
	if len(w) > 0 && w[0]|0x20 == 'e' {
		if w = w[1:]; len(w) > 0 && (w[0] == '+' || w[0] == '-') {
			w = w[1:]
		}
		n := digits(w)
		return n > 0 && n == len(w)
	}
	return len(w) == 0
}

func digits(w []byte) int {
	n := 0
	for n < len(w) && w[n]-'0' <= 9 {
		n++
	}
	return n
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		d, ok := hexDigit(c)
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c-'0' <= 9:
		return c - '0', true
	case (c|0x20)-'a' <= 5:
		return (c | 0x20) - 'a' + 10, true
	}
	return 0, false
}

// unescaped is what an escape of one letter stands for, 0 when it is none.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// unquote appends what a checked JSON string stands for. It tells what is wrong with that, if anything:
// text that no sender could write out as it was.
func unquote(dst, s []byte) ([]byte, string) {
	s = s[1 : len(s)-1]
	from := len(dst)
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			dst = append(dst, s...)
			break
		}
		dst = append(dst, s[:i]...)
		s = s[i+1:]
		if s[0] != 'u' {
			dst = append(dst, unescaped(s[0]))
			s = s[1:]
			continue
		}
		r, _ := hex4(s[1:])
		s = s[5:]
		if utf16.IsSurrogate(r) {
			if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
				return dst, halfPair
			}
			low, _ := hex4(s[2:])
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return dst, halfPair
			}
			s = s[6:]
		}
		dst = utf8.AppendRune(dst, r)
	}
	if !utf8.Valid(dst[from:]) {
		return dst, notUnicode
	}
	return dst, ""
}

// cursor walks the members of a checked object, or the elements of a checked array.
type cursor struct {
	b      []byte
	i      int
	object bool
	key    []byte // of an object: the string as written, with its quotes
	val    []byte // as written
}

// walk gives a cursor over an object or an array; over anything else one that finds nothing.
func walk(v []byte) cursor {
	c := cursor{b: v, i: 1}
	if len(v) == 0 || v[0] != '{' && v[0] != '[' {
		c.b = nil
	}
	c.object = len(v) > 0 && v[0] == '{'
	return c
}

// next advances; false at the end.
func (c *cursor) next() bool {
	c.pass(',')
	if c.i >= len(c.b)-1 {
		return false
	}
	if c.object {
		c.key = c.take()
		c.pass(':')
	}
	c.val = c.take()
	return true
}

// pass goes over white space and one sort of punctuation.
func (c *cursor) pass(mark byte) {
	for c.i < len(c.b) && (isSpace(c.b[c.i]) || c.b[c.i] == mark) {
		c.i++
	}
}

// take gives the value that starts here, and stands behind it.
func (c *cursor) take() []byte {
	from, depth := c.i, 0
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; ch {
		case '"':
			c.i = endOfText(c.b, c.i)
		case '{', '[':
			depth++
			c.i++
		case '}', ']':
			depth--
			c.i++
		default:
			c.i++
			if depth == 0 {
				for c.i < len(c.b) && isWord(c.b[c.i]) {
					c.i++
				}
			}
		}
		if depth == 0 {
			break
		}
	}
	return c.b[from:c.i]
}

// endOfText is the index behind the string that starts at i.
func endOfText(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return i
}

// is tells whether the current key has this name. Names are plain ASCII; case does not matter, as it
// does not to the tools whose files these are.
func (c *cursor) is(name string) bool {
	k := c.key
	if len(k) != len(name)+2 {
		return false
	}
	for i := range len(name) {
		if k[i+1]|0x20 != name[i]|0x20 {
			return false
		}
	}
	return true
}

// find gives the last member of an object that has this name, nil when none has or it is null.
func find(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	var found []byte
	for c := walk(object); c.next(); {
		if c.is(name) {
			found = c.val
		}
	}
	if isNull(found) {
		return nil
	}
	return found
}

func isNull(v []byte) bool   { return len(v) == 0 || v[0] == 'n' }
func isText(v []byte) bool   { return len(v) > 0 && v[0] == '"' }
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }
func isArray(v []byte) bool  { return len(v) > 0 && v[0] == '[' }
