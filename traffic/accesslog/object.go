package accesslog

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The reader of JSON is lenient, because an NGINX log_format that looks like JSON often is none: without
// escape=json it writes \x22 within texts, and a dash or nothing where a number is missing. It makes one
// pass over a line and keeps what the keys that are known hold, as slices of the line.

// key is what a value of a JSON line means.
type key uint8

const (
	keyNone key = iota
	keyRequest
	keyMethod
	keyTarget
	keyPath
	keyQuery
	keyStatus
	keyStart // of the request
	keyTime  // of the line
	keyEnd
	keyMessage // a text that may be a log line itself
	keyWrapped // the same, in the record of a collector
	keyLogger
	keyAgent
	keyClient
	keyForwarded
	keyRequestSize
	keyResponseSize
	keyText    // a duration with its unit behind
	keyBare    // a duration of which the format of the line tells the unit
	keySeconds // durations
	keyMillis
	keyMicros
	keyNanos
	keyCount
)

// scope is an object within a line in which other keys are known.
type scope uint8

const (
	inLine scope = iota
	inRequest
	inResponse
	inHeaders
	inGoogle
	inLatencies
	inHTTP // the groups of the Elastic Common Schema
	inURL
	inAgent
	inClient
	inEvent
	passing
)

// object is the line that is being read.
type object struct {
	b       []byte
	at      int
	values  [keyCount][]byte
	escaped [keyCount]bool
	text    [keyCount]bool // it stood in quotes
	form    form
}

// maxDepth bounds how deep values may be nested.
const maxDepth = 64

const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// read reads one object, which must be all of the line.
func (o *object) read(line []byte) result {
	o.b, o.at, o.form = line, 0, jsonOther
	clear(o.values[:])
	clear(o.escaped[:])
	o.space()
	if o.at >= len(o.b) || o.b[o.at] != '{' {
		return noObject
	}
	if r := o.members(inLine, 0); r != isRequest {
		return r
	}
	o.space()
	if o.at < len(o.b) {
		return badJSON
	}
	return isRequest
}

func (o *object) space() {
	for o.at < len(o.b) && (o.b[o.at] == ' ' || o.b[o.at] == '\t') {
		o.at++
	}
}

// members reads an object from its brace on.
func (o *object) members(in scope, depth int) result {
	if depth > maxDepth {
		return badJSON
	}
	o.at++
	for first := true; ; first = false {
		o.space()
		if o.at >= len(o.b) {
			return cutJSON
		}
		switch c := o.b[o.at]; {
		case c == '}':
			o.at++
			return isRequest
		case c == ',' && !first:
			o.at++
			o.space()
		case !first:
			return badJSON
		}
		if r := o.member(in, depth); r != isRequest {
			return r
		}
	}
}

// member reads a key and its value.
func (o *object) member(in scope, depth int) result {
	if o.at >= len(o.b) {
		return cutJSON
	}
	if o.b[o.at] != '"' {
		return badJSON
	}
	name, _, ok := o.string()
	if !ok {
		return cutJSON
	}
	o.space()
	if o.at >= len(o.b) {
		return cutJSON
	}
	if o.b[o.at] != ':' {
		return badJSON
	}
	o.at++
	o.space()
	if o.at >= len(o.b) {
		return cutJSON
	}
	switch o.b[o.at] {
	case '{':
		return o.members(o.inner(in, name), depth+1)
	case '[':
		return o.list(in, name, depth+1)
	}
	return o.scalar(o.meaning(in, name))
}

// scalar reads a text, a number or a word.
func (o *object) scalar(k key) result {
	if o.b[o.at] == '"' {
		value, escaped, ok := o.string()
		if !ok {
			return cutJSON
		}
		o.keep(k, value, escaped, true)
		return isRequest
	}
	from := o.at
	for {
		for o.at < len(o.b) && o.b[o.at] != ',' && o.b[o.at] != '}' && o.b[o.at] != ']' {
			if o.b[o.at] == '"' || o.b[o.at] == '{' || o.b[o.at] == '[' {
				return badJSON
			}
			o.at++
		}
		if o.at >= len(o.b) {
			return cutJSON
		}
		if o.b[o.at] != ',' || !o.goesOn() {
			break
		}
		o.at++
	}
	value := o.b[from:o.at]
	for len(value) > 0 && value[len(value)-1] == ' ' {
		value = value[:len(value)-1]
	}
	if len(value) > 0 && string(value) != "null" {
		o.keep(k, value, false, false)
	}
	return isRequest
}

// goesOn tells whether the comma belongs to the value, as in 0.010, 0.020, which NGINX writes of several
// upstreams.
func (o *object) goesOn() bool {
	for _, c := range o.b[o.at+1:] {
		if c != ' ' {
			return isDigit(c) || c == '-'
		}
	}
	return false
}

// keep notes a value, the first one of its key.
func (o *object) keep(k key, value []byte, escaped, text bool) {
	if k != keyNone && o.values[k] == nil && value != nil {
		o.values[k], o.escaped[k], o.text[k] = value, escaped, text
	}
}

// list reads an array from its bracket on. Of texts in it the first one is kept, as a header may have
// several values.
func (o *object) list(in scope, name []byte, depth int) result {
	if depth > maxDepth {
		return badJSON
	}
	o.at++
	k := o.meaning(in, name)
	for first := true; ; first = false {
		o.space()
		if o.at >= len(o.b) {
			return cutJSON
		}
		switch c := o.b[o.at]; {
		case c == ']':
			o.at++
			return isRequest
		case c == ',' && !first:
			o.at++
			o.space()
		case !first:
			return badJSON
		}
		if o.at >= len(o.b) {
			return cutJSON
		}
		var r result
		switch o.b[o.at] {
		case '{':
			r = o.members(passing, depth+1)
		case '[':
			r = o.list(passing, nil, depth+1)
		default:
			r = o.element(k)
		}
		if r != isRequest {
			return r
		}
	}
}

// element reads a text, a number or a word within an array.
func (o *object) element(k key) result {
	if o.b[o.at] == '"' {
		return o.scalar(k)
	}
	from := o.at
	for o.at < len(o.b) && o.b[o.at] != ',' && o.b[o.at] != ']' && o.b[o.at] != '}' && o.b[o.at] != '"' {
		o.at++
	}
	switch {
	case o.at >= len(o.b):
		return cutJSON
	case o.at == from || o.b[o.at] == '}' || o.b[o.at] == '"':
		return badJSON
	}
	return isRequest
}

// string reads a text whose opening quote is next: as written, escapes and all. It is false when the
// line ends within it.
func (o *object) string() (value []byte, escaped, ok bool) {
	o.at++
	from := o.at
	for {
		o.at += plain(o.b[o.at:])
		if o.at >= len(o.b) {
			return nil, false, false
		}
		if o.b[o.at] == '"' {
			value = o.b[from:o.at:o.at]
			o.at++
			return value, escaped, true
		}
		escaped = true
		o.at += 2
		if o.at > len(o.b) {
			return nil, false, false
		}
	}
}

// plain is how many bytes at the start of b are neither quote nor backslash.
func plain(b []byte) int {
	i := 0
	for ; len(b)-i >= 8; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^ones*'"', x^ones*'\\'
		// only the lowest mark is exact: a borrow may set more above it
		if m := ((quote-ones)&^quote | (slash-ones)&^slash) & tops; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// unescape appends text with the escapes of JSON resolved. Others, such as \x22, stay as they are.
func unescape(to, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+1 == len(text) {
			to = append(to, c)
			continue
		}
		i++
		switch text[i] {
		case '"', '\\', '/':
			to = append(to, text[i])
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 't':
			to = append(to, '\t')
		case 'u':
			r, n := unicode(text[i+1:])
			if n == 0 {
				to = append(to, '\\', 'u')
				continue
			}
			to = utf8.AppendRune(to, r)
			i += n
		default:
			to = append(to, '\\', text[i])
		}
	}
	return to
}

// unicode reads what follows \u: four digits, or a surrogate pair. n is 0 when it is none.
func unicode(b []byte) (r rune, n int) {
	r = hex4(b)
	if r < 0 {
		return 0, 0
	}
	if r >= 0xd800 && r < 0xdc00 && len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low := hex4(b[6:]); low >= 0xdc00 && low < 0xe000 {
			return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, 10
		}
	}
	return r, 4
}

// hex4 reads four hexadecimal digits, -1 when they are none.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
