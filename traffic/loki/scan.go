package loki

import (
	"errors"
	"io"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"seatrial/traffic/input"
)

// The bounds of what is held at once.
const (
	scanBuffer = 64 << 10 // bytes
	maxDepth   = 64       // JSON values within each other
	maxKey     = 64       // bytes of a key that is looked at; a longer one is none that matters
)

// errCut is an answer that ends within a value: it was cut on its way.
var errCut = errors.New("the answer is cut short")

// malformed is an answer that is no JSON, or JSON of another shape.
type malformed string

// Error implements error.
func (m malformed) Error() string { return string(m) }

// notJSON is what is said of text that breaks the grammar.
const notJSON = malformed("the answer is not well-formed JSON")

// scanner reads JSON tokens from a stream without holding more than one of them. A method that fails
// sets err and gives false; every caller returns at once.
type scanner struct {
	src  io.Reader
	buf  []byte
	r, w int // unread bytes are buf[r:w]
	key  []byte
	err  error
}

// reset starts over with another stream, nil for the bytes of text alone.
func (s *scanner) reset(src io.Reader, text []byte) {
	s.src, s.err = src, nil
	if src == nil {
		s.buf, s.r, s.w = text, 0, len(text)
		return
	}
	if len(s.buf) < scanBuffer {
		s.buf = make([]byte, scanBuffer)
	}
	s.r, s.w = 0, 0
}

// fail ends the reading. It gives false, to be returned.
func (s *scanner) fail(err error) bool {
	if s.err == nil {
		s.err = err
	}
	return false
}

// fill reads more bytes, after all were consumed; false at the end, with err set unless it is a good one.
func (s *scanner) fill() bool {
	if s.src == nil || s.err != nil {
		return false
	}
	s.r, s.w = 0, 0
	for {
		n, err := s.src.Read(s.buf)
		s.w = n
		if n > 0 {
			return true
		}
		if errors.Is(err, io.EOF) {
			return false
		}
		if err != nil {
			return s.fail(err)
		}
	}
}

// next consumes one byte within a value.
func (s *scanner) next() (byte, bool) {
	if s.r == s.w && !s.fill() {
		return 0, s.fail(errCut)
	}
	c := s.buf[s.r]
	s.r++
	return c, true
}

// end tells whether nothing but white space is left.
func (s *scanner) end() bool {
	for {
		for s.r < s.w {
			switch s.buf[s.r] {
			case ' ', '\t', '\r', '\n':
				s.r++
			default:
				return false
			}
		}
		if !s.fill() {
			return true
		}
	}
}

// peek gives the next byte after white space without consuming it.
func (s *scanner) peek() (byte, bool) {
	if s.end() {
		return 0, s.fail(errCut)
	}
	return s.buf[s.r], true
}

// take consumes c after white space.
func (s *scanner) take(c byte) bool {
	got, ok := s.peek()
	if !ok {
		return false
	}
	if got != c {
		return s.fail(notJSON)
	}
	s.r++
	return true
}

// more steps from one element of a list or an object to the next; done after the closing byte, which
// it consumes. first tells that none has been read.
func (s *scanner) more(closing byte, first bool) (done, ok bool) {
	c, ok := s.peek()
	switch {
	case !ok:
		return false, false
	case c == closing:
		s.r++
		return true, true
	case first:
		return false, true
	}
	if !s.take(',') {
		return false, false
	}
	if c, ok = s.peek(); ok && c == closing { // [1,]
		return false, s.fail(notJSON)
	}
	return false, ok
}

// name consumes the key of an object's member and its colon. It is valid until the next call.
func (s *scanner) name() ([]byte, bool) {
	key, long, ok := s.text(s.key[:0], maxKey)
	if s.key = key; !ok || !s.take(':') {
		return nil, false
	}
	if long {
		return nil, true
	}
	return key, true
}

// text consumes a string and appends what it says to dst. Of one longer than limit, in bytes, nothing
// is appended and long is true.
func (s *scanner) text(dst []byte, limit int) (_ []byte, long, ok bool) {
	if !s.take('"') {
		return dst, false, false
	}
	from := len(dst)
	for {
		run := s.r
		for s.r < s.w && s.buf[s.r] != '"' && s.buf[s.r] != '\\' && s.buf[s.r] >= ' ' {
			s.r++
		}
		dst = append(dst, s.buf[run:s.r]...)
		if len(dst)-from > limit {
			dst, long = dst[:from], true
		}
		c, ok := s.next()
		switch {
		case !ok:
			return dst[:from], long, false
		case c == '"':
			if long {
				dst = dst[:from]
			}
			return dst, long, true
		case c == '\\':
			if dst, ok = s.escape(dst); !ok {
				return dst[:from], long, false
			}
		case c < ' ':
			return dst[:from], long, s.fail(notJSON)
		default:
			s.r-- // the first byte of a new buffer
		}
	}
}

// escape consumes what follows a backslash.
func (s *scanner) escape(dst []byte) ([]byte, bool) {
	c, ok := s.next()
	if !ok {
		return dst, false
	}
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return s.unicode(dst)
	default:
		return dst, s.fail(notJSON)
	}
	return append(dst, c), true
}

// unicode consumes the four digits after \u, and the second half of a pair that may follow. Half a
// pair becomes U+FFFD, as it does in encoding/json.
func (s *scanner) unicode(dst []byte) ([]byte, bool) {
	r, ok := s.hex()
	for ok && utf16.IsSurrogate(r) {
		if c, is := s.next(); !is || c != '\\' {
			s.back(is)
			return utf8.AppendRune(dst, utf8.RuneError), s.err == nil
		}
		if c, is := s.next(); !is || c != 'u' {
			s.back(is)
			return s.escape(utf8.AppendRune(dst, utf8.RuneError))
		}
		var second rune
		if second, ok = s.hex(); !ok {
			break
		}
		if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
			return utf8.AppendRune(dst, both), true
		}
		dst, r = utf8.AppendRune(dst, utf8.RuneError), second
	}
	return utf8.AppendRune(dst, r), ok
}

// back returns the byte that next gave, if it gave one.
func (s *scanner) back(given bool) {
	if given {
		s.r--
	}
}

func (s *scanner) hex() (rune, bool) {
	var r rune
	for range 4 {
		c, ok := s.next()
		if !ok {
			return 0, false
		}
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, s.fail(notJSON)
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// skip consumes a value of any kind. Within it only the brackets and the strings are looked at.
func (s *scanner) skip() bool {
	depth, objects := 0, uint64(0) // a bit for each open bracket: whether it is an object's
	for {
		c, ok := s.peek()
		if !ok {
			return false
		}
		switch c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return s.fail(malformed("the answer is nested too deeply"))
			}
			objects <<= 1
			if c == '{' {
				objects |= 1
			}
			s.r++
		case '}', ']':
			if depth == 0 || objects&1 == 1 != (c == '}') {
				return s.fail(notJSON)
			}
			depth, objects = depth-1, objects>>1
			s.r++
		case '"':
			if s.key, _, ok = s.text(s.key[:0], maxKey); !ok {
				return false
			}
		case ',', ':':
			if depth == 0 {
				return s.fail(notJSON)
			}
			s.r++
		default:
			if !s.word() {
				return false
			}
		}
		if depth == 0 {
			return true
		}
	}
}

// word consumes a number, true, false or null.
func (s *scanner) word() bool {
	n := 0
	for ; s.r < s.w || s.fill(); n++ {
		c := s.buf[s.r]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' {
			break
		}
		s.r++
	}
	if n == 0 {
		return s.fail(notJSON)
	}
	return s.err == nil
}

// nanoseconds reads a whole number as a time since 1970; false where it is none or too large.
func nanoseconds(digits []byte) (int64, bool) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		high, low := bits.Mul64(n, 10)
		if c < '0' || c > '9' || high != 0 || low > 1<<63-10 {
			return 0, false
		}
		n = low + uint64(c-'0')
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// maxLine is the longest line, in bytes, that is given whole, as for files.
const maxLine = input.MaxLine
