package otlp

import (
	"encoding/binary"
	"math/bits"
)

// The bounds of what is held at once.
const (
	maxString = 1 << 20 // bytes of one string that is looked at; a longer one is passed over
	maxDepth  = 200     // JSON values within each other
)

// scanner reads JSON tokens, and protobuf fields, from a stream. It checks what it passes over, so that
// a damaged document is found, and holds no more than one string or span. A method that fails sets why,
// and every caller returns at once.
type scanner struct {
	window
	line int64 // of the next byte, from 1
	// inList tells that documents are elements of an array, where each may start a line.
	inList bool
	why    string // why the document is damaged; empty while it is not
	fresh  bool   // the damage was found at the start of a line, which is to be read
}

// bad ends the current document. It gives false, to be returned.
func (s *scanner) bad(why string) bool {
	if s.why == "" {
		s.why = why
	}
	return false
}

// space passes white space and gives the next byte without consuming it; false at the end of the
// input, or where a cut document is followed by the next.
func (s *scanner) space() (byte, bool) {
	for {
		for s.r < s.w {
			switch c := s.buf[s.r]; c {
			case ' ', '\t', '\r':
			case '\n':
				s.line++
				s.r++
				if !s.inList && s.another() {
					s.fresh = true
					return 0, s.bad("the document is cut short")
				}
				continue
			default:
				return c, true
			}
			s.r++
		}
		if _, ok := s.more(s.r); !ok {
			return 0, false
		}
	}
}

// another tells whether a line starts with a document's first key. Within a document, that is the next
// document of JSON Lines, so that the one before it was cut between two tokens.
func (s *scanner) another() bool {
	const enough = 40 // bytes hold the longest of the keys, and some space before it
	if s.r < s.w && s.buf[s.r] != '{' {
		return false
	}
	for s.w-s.r < enough {
		if _, ok := s.more(s.r); !ok {
			break
		}
	}
	b := s.buf[s.r:min(s.w, s.r+enough)]
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	b = b[1:]
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	if len(b) == 0 || b[0] != '"' {
		return false
	}
	b = b[1:]
	for i, c := range b {
		if c == '"' {
			return documentKey(b[:i]) != otherKey
		}
	}
	return false
}

// next consumes the next byte behind white space.
func (s *scanner) next() (byte, bool) {
	if s.r < s.w && s.buf[s.r] > ' ' { // most tokens follow each other
		s.r++
		return s.buf[s.r-1], true
	}
	c, ok := s.space()
	if !ok {
		return 0, s.bad("the document is cut short")
	}
	s.r++
	return c, true
}

// want consumes one given byte.
func (s *scanner) want(c byte, why string) bool {
	got, ok := s.next()
	return ok && (got == c || s.bad(why))
}

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// special marks, in the top bit of each byte of x, the bytes that end the plain run of a string: a
// quote, a backslash, a control character. Only the lowest mark is exact: a borrow may set more above.
func special(x uint64) uint64 {
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x) & tops
}

// plain is how many bytes at the start of b are neither quote nor backslash nor control character.
func plain(b []byte) int {
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// text reads a string whose opening quote is consumed. The bytes are as written, escapes and all, and
// valid until the next read; long tells that the string is longer than maxString, and gives none.
func (s *scanner) text() (raw []byte, escaped, long, ok bool) {
	start, at := s.r, s.r
	for {
		at += plain(s.buf[at:s.w])
		if at < s.w {
			switch c := s.buf[at]; {
			case c == '"':
				s.r = at + 1
				return s.buf[start:at], escaped, false, true
			case c < 0x20:
				s.r = at
				return nil, false, false, s.bad("a control character within a string")
			}
			if at+1 < s.w {
				if !isEscape(s.buf[at+1]) {
					s.r = at
					return nil, false, false, s.bad("an unknown escape within a string")
				}
				escaped = true
				at += 2
				continue
			}
		}
		if at-start > maxString {
			s.r = at
			return nil, false, true, s.pass()
		}
		moved, more := s.more(start)
		start, at = start-moved, at-moved
		if !more {
			s.r = s.w
			return nil, false, false, s.bad("the document is cut short")
		}
	}
}

// pass consumes the rest of a string without keeping it.
func (s *scanner) pass() bool {
	for {
		s.r += plain(s.buf[s.r:s.w])
		if s.r < s.w {
			switch c := s.buf[s.r]; {
			case c == '"':
				s.r++
				return true
			case c < 0x20:
				return s.bad("a control character within a string")
			}
			if s.r+1 < s.w {
				if !isEscape(s.buf[s.r+1]) {
					return s.bad("an unknown escape within a string")
				}
				s.r += 2
				continue
			}
		}
		if _, ok := s.more(s.r); !ok {
			s.r = s.w
			return s.bad("the document is cut short")
		}
	}
}

func isEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u':
		return true
	}
	return false
}

// word reads a number or a literal (true, false, null) that starts at the next byte, valid until the
// next read.
func (s *scanner) word() ([]byte, bool) {
	start, at := s.r, s.r
	for {
		for at < s.w && isWord(s.buf[at]) {
			at++
		}
		if at < s.w || at-start > 64 {
			break
		}
		moved, more := s.more(start)
		start, at = start-moved, at-moved
		if !more {
			break
		}
	}
	s.r = at
	w := s.buf[start:at]
	if !isLiteral(w) && !isNumber(w) {
		return nil, s.bad("a value that is not JSON")
	}
	return w, true
}

func isWord(c byte) bool {
	return c-'0' <= 9 || c-'a' <= 'z'-'a' || c == '-' || c == '+' || c == '.' || c == 'E'
}

func isLiteral(w []byte) bool {
	switch string(w) {
	case "true", "false", "null":
		return true
	}
	return false
}

// isNumber checks the grammar of RFC 8259, 6.
func isNumber(w []byte) bool {
	if len(w) > 0 && w[0] == '-' {
		w = w[1:]
	}
	whole := digits(w)
	if whole == 0 || whole > 1 && w[0] == '0' {
		return false
	}
	w = w[whole:]
	if len(w) > 0 && w[0] == '.' {
		n := digits(w[1:])
		if n == 0 {
			return false
		}
		w = w[1+n:]
	}
	if len(w) > 0 && w[0]|0x20 == 'e' {
		w = w[1:]
		if len(w) > 0 && (w[0] == '+' || w[0] == '-') {
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

// skip passes over one value.
func (s *scanner) skip(depth int) bool {
	c, ok := s.space()
	if !ok {
		return s.bad("the document is cut short")
	}
	switch c {
	case '"':
		s.r++
		return s.pass()
	case '{':
		s.r++
		return s.skipObject(depth + 1)
	case '[':
		s.r++
		return s.skipArray(depth + 1)
	}
	_, ok = s.word()
	return ok
}

func (s *scanner) skipObject(depth int) bool {
	if depth > maxDepth {
		return s.bad("values are nested too deep")
	}
	for first := true; ; first = false {
		c, ok := s.member(first)
		if !ok || c == '}' {
			return ok
		}
		if !s.pass() || !s.want(':', "a key without a colon") || !s.skip(depth) {
			return false
		}
	}
}

func (s *scanner) skipArray(depth int) bool {
	if depth > maxDepth {
		return s.bad("values are nested too deep")
	}
	for first := true; ; first = false {
		end, ok := s.element(first)
		if !ok || end {
			return ok
		}
		if !s.skip(depth) {
			return false
		}
	}
}

// member consumes what stands before the next key of an object and the key's opening quote, or the
// object's end: it gives '"' or '}'.
func (s *scanner) member(first bool) (byte, bool) {
	c, ok := s.next()
	if !ok {
		return 0, false
	}
	if c == '}' {
		return c, true
	}
	if !first {
		if c != ',' {
			return 0, s.bad("two members without a comma")
		}
		if c, ok = s.next(); !ok {
			return 0, false
		}
	}
	if c != '"' {
		return 0, s.bad("an object's key is not a string")
	}
	return c, true
}

// element consumes what stands before the next element of an array, or the array's end, which it
// tells.
func (s *scanner) element(first bool) (end, ok bool) {
	c, ok := s.space()
	if !ok {
		return false, s.bad("the document is cut short")
	}
	switch {
	case c == ']':
		s.r++
		return true, true
	case first:
		return false, true
	case c != ',':
		return false, s.bad("two elements without a comma")
	}
	s.r++
	if c, ok = s.space(); !ok {
		return false, s.bad("the document is cut short")
	}
	if c == ']' {
		return false, s.bad("a comma before the end of an array")
	}
	return false, true
}
