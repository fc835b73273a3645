package http2

import (
	"bytes"
	"errors"
)

// tableSize is the dynamic table that every peer may assume without asking (RFC 9113, 6.5.2). Other
// sizes are not announced: no table at all would make servers that use theirs write every field anew.
const tableSize = 4096

// entryOverhead is what an entry counts for besides its bytes (RFC 7541, 4.1).
const entryOverhead = 32

var errHPACK = errors.New("http2: malformed header block")

// class is what a field means for the framing of a response. It is found out once for each literal
// and stays with it in the table.
type class uint8

const (
	ordinary  class = iota
	status          // :status
	length          // content-length
	te              // te, which may only say "trailers"
	pseudo          // a pseudo-header that no response has
	hop             // belongs to one connection, and not into HTTP/2
	malformed       // a name or value that no message may hold
)

// field is one decoded field. The bytes are valid until the next call of the decoder.
type field struct {
	class class
	name  []byte
	value []byte
}

func (f *field) size() int { return len(f.name) + len(f.value) + entryOverhead }

// decoder decodes header blocks (RFC 7541). The decoder of x/net gives strings, and so allocates for
// every literal of a server that uses the table little, e.g. nginx; this one keeps its table in one
// buffer and gives bytes.
type decoder struct {
	max     int // bound that the peer's encoder chose
	size    int
	entries []entry // ring; its length is a power of two
	oldest  int
	count   int
	arena   []byte // bytes of the entries in order of age; those of evicted ones before them
	base    uint32 // position of arena[0] among all bytes that were ever added
	name    []byte // scratch
	value   []byte
}

// entry is a field in the dynamic table.
type entry struct {
	at          uint32 // position among all bytes that were ever added
	name, value uint16
	class       class
	named       class // of the name alone
}

func newDecoder() decoder { return decoder{max: tableSize} }

// begin takes the changes of the table size that may stand before the first field.
func (d *decoder) begin(b []byte) (n int, err error) {
	for n < len(b) && b[n]&0xe0 == 0x20 {
		size, k := integer(b[n:], 5)
		if k == 0 || size > tableSize {
			return n, errHPACK
		}
		n += k
		d.max = int(size)
		d.evict(d.max)
	}
	return n, nil
}

// next decodes the field that b, which is not empty, begins with.
func (d *decoder) next(b []byte) (f field, n int, err error) {
	switch c := b[0]; {
	case c&0x80 != 0:
		i, k := integer(b, 7)
		f, _, ok := d.at(i)
		if k == 0 || !ok {
			return f, 0, errHPACK
		}
		return f, k, nil
	case c&0xc0 == 0x40:
		return d.literal(b, 6, true)
	case c&0xe0 == 0x20:
		return f, 0, errHPACK // a change of the size after a field
	default:
		return d.literal(b, 4, false)
	}
}

// literal decodes a field whose value, and perhaps name, is written out.
func (d *decoder) literal(b []byte, prefix uint, insert bool) (f field, n int, err error) {
	i, n := integer(b, prefix)
	if n == 0 {
		return f, 0, errHPACK
	}
	var named class
	if i > 0 {
		var ok bool
		if f, named, ok = d.at(i); !ok {
			return f, 0, errHPACK
		}
		if insert && i > staticLen { // its entry may have to go for the new one
			d.name = append(d.name[:0], f.name...)
			f.name = d.name
		}
	} else {
		var k int
		if f.name, k = textAt(b[n:], &d.name); k == 0 {
			return f, 0, errHPACK
		}
		n += k
		named = classify(f.name)
	}
	var k int
	if f.value, k = textAt(b[n:], &d.value); k == 0 {
		return f, 0, errHPACK
	}
	if f.class = named; !plain(f.value) {
		f.class = malformed
	}
	if insert {
		d.insert(&f, named)
	}
	return f, n + k, nil
}

// textAt decodes a string literal that b begins with; n is 0 when it is malformed.
func textAt(b []byte, scratch *[]byte) (s []byte, n int) {
	size, n := integer(b, 7)
	if n == 0 || size > uint64(len(b)-n) {
		return nil, 0
	}
	s = b[n : n+int(size)]
	if b[0]&0x80 != 0 {
		var ok bool
		if *scratch, ok = appendHuffman((*scratch)[:0], s); !ok {
			return nil, 0
		}
		s = *scratch
	}
	return s, n + int(size)
}

// integer decodes a number with a prefix of the given bits (RFC 7541, 5.1); n is 0 when it does not
// end or is too large.
func integer(b []byte, prefix uint) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	mask := uint64(1)<<prefix - 1
	if v = uint64(b[0]) & mask; v < mask {
		return v, 1
	}
	for shift := uint(0); shift < 63; shift += 7 {
		if n++; n == len(b) {
			return 0, 0
		}
		v += uint64(b[n]&0x7f) << shift
		if b[n]&0x80 == 0 {
			return v, n + 1
		}
	}
	return 0, 0
}

// at gives the field at an index of both tables, and the class of its name alone.
func (d *decoder) at(i uint64) (f field, named class, ok bool) {
	if i == 0 || i > uint64(staticLen+d.count) {
		return f, 0, false
	}
	if i <= staticLen {
		f = static[i-1]
		return f, f.class, true
	}
	e := d.entries[(d.oldest+d.count-(int(i)-staticLen))&(len(d.entries)-1)]
	b := d.arena[e.at-d.base:]
	name, size := int(e.name), int(e.name)+int(e.value)
	return field{e.class, b[:name:name], b[name:size:size]}, e.named, true
}

// insert adds a field to the dynamic table. One that is larger than the table empties it.
func (d *decoder) insert(f *field, named class) {
	size := f.size()
	if size > d.max {
		d.evict(0)
		return
	}
	d.evict(d.max - size)
	d.makeRoom(size - entryOverhead)
	at := d.base + uint32(len(d.arena))
	d.arena = append(append(d.arena, f.name...), f.value...)
	d.entries[(d.oldest+d.count)&(len(d.entries)-1)] = entry{at, uint16(len(f.name)), uint16(len(f.value)), f.class, named}
	d.count++
	d.size += size
}

// evict drops the oldest entries until no more than size is used.
func (d *decoder) evict(size int) {
	for d.size > size {
		e := d.entries[d.oldest]
		d.size -= int(e.name) + int(e.value) + entryOverhead
		d.oldest = (d.oldest + 1) & (len(d.entries) - 1)
		d.count--
	}
}

// makeRoom makes place for one more entry of n bytes. The buffer grows to half more than the table,
// so that the bytes of evicted entries are dropped once in a while and not for each.
func (d *decoder) makeRoom(n int) {
	if d.count == len(d.entries) {
		bigger := make([]entry, max(8, 2*d.count))
		for i := range d.count {
			bigger[i] = d.entries[(d.oldest+i)&(d.count-1)]
		}
		d.entries, d.oldest = bigger, 0
	}
	if len(d.arena)+n <= tableSize*3/2 {
		return
	}
	dead := len(d.arena)
	if d.count > 0 {
		dead = int(d.entries[d.oldest].at - d.base)
	}
	d.arena = d.arena[:copy(d.arena, d.arena[dead:])]
	d.base += uint32(dead)
}

// classify tells what a field of the name means, and refuses names that no message may hold: upper
// case is malformed in HTTP/2 (RFC 9113, 8.2).
func classify(name []byte) class {
	if len(name) == 0 {
		return malformed
	}
	if name[0] == ':' {
		if string(name) == ":status" {
			return status
		}
		return pseudo
	}
	for _, c := range name {
		if folded[c] != c || c == 0 {
			return malformed
		}
	}
	switch string(name) {
	case "content-length":
		return length
	case "te":
		return te
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return hop
	default:
		return ordinary
	}
}

// folded gives a byte that may stand in a field name (RFC 9110, 5.6.2) in lower case, 0 for others.
var folded = foldTable()

func foldTable() (table [256]byte) {
	for c := range table {
		c := byte(c)
		switch {
		case c >= 'A' && c <= 'Z':
			table[c] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0:
			table[c] = c
		}
	}
	return table
}

// plain tells whether b holds no control character but tab. White space around a value is allowed,
// against RFC 9113, 8.2.1: servers send it, browsers take it, and no framing depends on it.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

const staticLen = 61

// static is the static table (RFC 7541, appendix A).
var static = staticTable()

func staticTable() (table [staticLen]field) {
	for i, line := range bytes.Split([]byte(staticText), []byte("\n")) {
		name, value, _ := bytes.Cut(line, []byte(" "))
		table[i] = field{classify(name), name, value}
	}
	return table
}

const staticText = `:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`
