package traffic

import (
	"bytes"
	"strings"
)

// maxLiteral is the longest segment that can stay a literal; longer ones are titles and tokens.
const maxLiteral = 96

// appendShape appends the segment as templating sees it: {id} when its shape is that of an
// identifier, with a placeholder inside for a file whose name holds one, else the segment itself in
// clean spelling (TR-20). hashole tells that a placeholder was put in. It is a pure function of seg.
func appendShape(dst, seg []byte) (out []byte, hashole bool) {
	if isWord(seg) {
		return append(dst, seg...), false
	}
	var buf [maxLiteral]byte
	plain, fits := unescape(buf[:0], seg)
	if !fits || isEmail(plain) {
		return append(dst, idHole...), true
	}
	if out, ok := appendFile(dst, seg, plain); ok {
		return out, true
	}
	if isIdentifier(plain) {
		return append(dst, idHole...), true
	}
	return appendClean(dst, seg), false
}

// isWord is a short way for the usual segment: no digit, nothing escaped, and too short for a token.
func isWord(seg []byte) bool {
	if len(seg) >= 16 {
		return false
	}
	for _, c := range seg {
		if !isAlpha(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// unescape decodes once into dst's capacity; fits is false when the segment is longer than that.
func unescape(dst, seg []byte) (plain []byte, fits bool) {
	for i := 0; i < len(seg); i++ {
		if len(dst) == cap(dst) || i >= 2*maxLiteral {
			return dst, false
		}
		c := seg[i]
		if c == '%' && i+2 < len(seg) && isHex(seg[i+1]) && isHex(seg[i+2]) {
			c = unhex(seg[i+1])<<4 | unhex(seg[i+2])
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}

func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case isLower(c):
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

// census is what the shape rules look at, counted in one pass.
type census struct {
	digits, lowers, uppers, hexes, seps, other int
	run                                        int // longest run of digits
	turns                                      int // changes between digits, lower and upper case; a capitalised word is no change
}

func count(s []byte) census {
	var n census
	run := 0
	var last byte
	for _, c := range s {
		class := byte('s')
		switch {
		case isDigit(c):
			n.digits++
			class = 'd'
		case isLower(c):
			n.lowers++
			class = 'l'
		case isUpper(c):
			n.uppers++
			class = 'u'
		case c == '-' || c == '_' || c == '.' || c == '+' || c == ',' || c == ' ':
			n.seps++
		default:
			n.other++
		}
		if isHex(c) {
			n.hexes++
		}
		if class == 'd' {
			run++
			n.run = max(n.run, run)
		} else {
			run = 0
		}
		if last != 0 && class != last && class != 's' && last != 's' && (last != 'u' || class != 'l') {
			n.turns++
		}
		last = class
	}
	return n
}

// isIdentifier tells whether a decoded segment has the shape of a value rather than of a name.
func isIdentifier(s []byte) bool {
	n := count(s)
	if n.digits == 0 {
		return isEmail(s) || isToken(s, n)
	}
	return isNumber(s, n) || isUUID(s) || isEmail(s) || isDate(s) || isToken(s, n) || isNumbered(s, n) || isSlug(s, n)
}

// isNumber takes digits with at most a sign and one decimal point, and lists of numbers.
func isNumber(s []byte, n census) bool {
	if n.lowers+n.uppers > 0 {
		return false
	}
	if s[0] == '-' || s[0] == '+' {
		s = s[1:]
	}
	for i, c := range s {
		if !isDigit(c) && (i == 0 || i == len(s)-1 || strings.IndexByte(",.;:-_", c) < 0) {
			return false
		}
	}
	return len(s) > 0
}

func isUUID(s []byte) bool {
	s = bytes.TrimPrefix(s, []byte("urn:uuid:"))
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if !isHex(c) {
			return false
		}
	}
	return true
}

func isEmail(s []byte) bool {
	at := bytes.IndexByte(s, '@')
	return at > 0 && bytes.IndexByte(s[at+1:], '.') > 0
}

// isDate takes 2024-01-31, 2024-01, 2024_01_31, 2024-W05, 31-01-2024 and an ISO time behind a date.
func isDate(s []byte) bool {
	i := 0
	groups := 0
	for i < len(s) && groups < 3 {
		from := i
		if groups > 0 && s[i] == 'W' {
			i++
		}
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if w := i - from; w == 0 || w > 4 {
			return false
		}
		groups++
		if i < len(s) && groups < 3 {
			if s[i] != '-' && s[i] != '_' && s[i] != '.' {
				return false
			}
			i++
		}
	}
	return groups >= 2 && (i == len(s) || groups == 3 && (s[i] == 'T' || s[i] == ' ' || s[i] == '_'))
}

// isToken takes hex, ULIDs and what base64 or an id generator makes.
func isToken(s []byte, n census) bool {
	l := len(s)
	switch {
	case n.hexes == l && (l >= 16 || l >= 8 && n.digits > 0 && n.digits < l):
		return true
	case l == 26 && n.digits > 0 && n.digits+n.uppers == l: // ULID, and the like
		return true
	case l >= 8 && s[l-1] == '=' && bytes.IndexByte(s, '=') >= l-2:
		return true
	case n.other > bytes.Count(s, []byte("=")):
		return false
	case l >= 20 && n.digits+n.lowers+n.uppers >= l-l/8 && n.turns >= l/5:
		return true
	case n.seps == 0 && n.digits > 0 && (l >= 12 && n.turns >= 4 || l >= 10 && n.turns >= 5):
		return true
	}
	return false
}

// isNumbered takes a short word and a number: abc-123, order_10293, p12590.
func isNumbered(s []byte, n census) bool {
	i := 0
	for i < len(s) && isAlpha(s[i]) {
		i++
	}
	if i == 0 || n.digits != n.run || !isDigit(s[len(s)-1]) {
		return false
	}
	digits := len(s) - i
	if s[i] == '-' || s[i] == '_' {
		return i <= 8 && digits-1 >= 3 && n.seps == 1 && n.run == digits-1
	}
	return i <= 3 && digits >= 4 && n.run == digits
}

// isSlug takes long slugs with digits, and shorter ones that begin or end in a long number.
func isSlug(s []byte, n census) bool {
	if n.seps == 0 || n.digits == 0 {
		return false
	}
	if n.seps >= 2 && len(s) >= 24 && !hasExtension(s) {
		return true
	}
	return n.run >= 5 && (endsInDigits(s, 5) || startsWithDigits(s, 5))
}

func startsWithDigits(s []byte, n int) bool {
	for i := 0; i < n; i++ {
		if i >= len(s) || !isDigit(s[i]) {
			return false
		}
	}
	return len(s) > n && !isAlpha(s[n])
}

func endsInDigits(s []byte, n int) bool {
	for i := len(s) - n; i < len(s); i++ {
		if i < 0 || !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// extension is where the extension's dot stands; -1 when the segment is no file name.
func extension(s []byte) int {
	dot := bytes.LastIndexByte(s, '.')
	if dot <= 0 || len(s)-dot < 2 || len(s)-dot > 8 {
		return -1
	}
	letters := false
	for _, c := range s[dot+1:] {
		if !isAlnum(c) {
			return -1
		}
		letters = letters || isAlpha(c)
	}
	if !letters {
		return -1
	}
	return dot
}

func hasExtension(s []byte) bool { return extension(s) > 0 }

// appendFile puts a placeholder into a file name that holds an identifier: {id}.jpg when the whole
// stem is one, app.{hash}.js when one part of it is. Escaped names are left alone: their literal
// ends could not be told from their raw spelling.
func appendFile(dst, seg, plain []byte) ([]byte, bool) {
	if len(seg) != len(plain) || !isClean(seg) {
		return dst, false
	}
	dot := extension(plain)
	if dot < 0 {
		return dst, false
	}
	if isIdentifier(plain[:dot]) {
		return append(append(dst, idHole...), plain[dot:]...), true
	}
	for from := 0; from < dot; {
		to := from
		for to < dot && plain[to] != '.' && plain[to] != '-' && plain[to] != '_' && plain[to] != '~' {
			to++
		}
		if isHash(plain[from:to]) {
			dst = append(dst, plain[:from]...)
			dst = append(dst, "{hash}"...)
			return append(dst, plain[to:]...), true
		}
		from = to + 1
	}
	return dst, false
}

// isHash takes what a bundler puts into a file name: hex of 6 or more with a digit and a letter, or
// mixed case with digits of 8 or more.
func isHash(s []byte) bool {
	n := count(s)
	l := len(s)
	if n.hexes == l && l >= 6 && n.digits > 0 && (n.digits < l || l >= 8) {
		return true
	}
	return l >= 8 && (n.digits > 0 && n.lowers > 0 && n.uppers > 0 && n.turns >= 3 || isToken(s, n))
}
