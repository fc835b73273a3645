package httpload

import (
	"bytes"
	"errors"
	"math"
)

// What the parser refuses. Each is an InvalidResponse.
var (
	ErrStatusLine  = errors.New("httpload: malformed status line")
	ErrHeader      = errors.New("httpload: malformed header line")
	ErrFraming     = errors.New("httpload: contradictory or malformed framing")
	ErrChunk       = errors.New("httpload: malformed chunk")
	ErrHeaderBytes = errors.New("httpload: headers exceed the limit")
	ErrBodyBytes   = errors.New("httpload: body exceeds the limit")
	ErrInterim     = errors.New("httpload: too many interim responses")
	ErrSwitch      = errors.New("httpload: switched protocols without being asked")
	ErrTruncated   = errors.New("httpload: connection closed in the middle of a response")
)

const (
	defaultMaxHeader = 64 << 10
	defaultMaxBody   = 64 << 20
	maxInterim       = 16       // 1xx responses before the final one
	maxChunkExcess   = 16 << 10 // bytes of chunk lines that no data pays for
	keepLine         = 4 << 10  // a larger line buffer is given back between responses
)

type phase uint8

const (
	inStatus phase = iota
	inHeader
	inFixed     // body of a known length
	inChunkSize // line with the size of the next chunk
	inChunkData
	inChunkEnd // CRLF after the data
	inTrailer
	inClose // body until the peer closes
	complete
)

// Parser is a strict incremental parser of HTTP/1.x responses (RFC 9112). It takes any cut of the
// byte stream, counts the body and keeps none of it, and holds at most one header line. Where the
// RFC leaves a choice to recipients it refuses: bare LF, folded headers, space before a colon,
// Content-Length together with Transfer-Encoding, differing lengths, any coding but chunked.
//
// Reset it before each response. It does not allocate in steady state.
type Parser struct {
	maxHeader int
	maxBody   int64

	phase   phase
	head    bool // the request was HEAD: no body follows
	line    []byte
	used    int   // bytes of status line and headers, or of trailers
	left    int64 // bytes of the body or chunk to come
	excess  int64
	interim int
	body    int64
	status  int
	minor   byte  // of the version
	length  int64 // Content-Length, -1 when absent
	chunked bool
	close   bool
	keep    bool

	check *checker // looks at the final response; nil: nothing does
}

// NewParser makes a parser with the limits; zero means the defaults of 64 KiB and 64 MiB.
func NewParser(maxHeader int, maxBody int64) *Parser {
	if maxHeader <= 0 {
		maxHeader = defaultMaxHeader
	}
	if maxBody <= 0 {
		maxBody = defaultMaxBody
	}
	return &Parser{maxHeader: maxHeader, maxBody: maxBody, length: -1}
}

// Reset prepares for the response to a request of the method.
func (p *Parser) Reset(method string) {
	line := p.line[:0]
	if cap(line) > keepLine {
		line = nil
	}
	*p = Parser{maxHeader: p.maxHeader, maxBody: p.maxBody, line: line, length: -1, head: method == "HEAD"}
}

// watch lets an expectation look at the response that comes next. It follows Reset.
func (p *Parser) watch(c *checker) {
	if c.want != nil {
		p.check = c
	}
}

// Status is the status of the final response, 0 before it is known.
func (p *Parser) Status() int { return p.status }

// Body is the number of body bytes until now, chunk framing excluded.
func (p *Parser) Body() int64 { return p.body }

// Reusable tells, after a complete response, whether the connection may carry another request.
func (p *Parser) Reusable() bool {
	return p.phase == complete && !p.close && (p.minor == '1' || p.keep)
}

// Feed takes the next bytes. It gives how many belong to this response; done when it is complete,
// and then b[n:] is not part of it. After an error the parser must be Reset.
func (p *Parser) Feed(b []byte) (n int, done bool, err error) {
	for n < len(b) && p.phase != complete {
		k, err := p.step(b[n:])
		n += k
		if err != nil {
			return n, false, err
		}
	}
	return n, p.phase == complete, nil
}

// EOF tells what it means that the peer closes here: nil when that ends the response properly.
func (p *Parser) EOF() error {
	if p.phase == inClose || p.phase == complete {
		p.phase, p.close = complete, true
		return nil
	}
	return ErrTruncated
}

// step consumes a part of b, which is not empty.
func (p *Parser) step(b []byte) (int, error) {
	switch p.phase {
	case inFixed, inChunkData:
		return p.data(b)
	case inClose:
		p.body += int64(len(b))
		if p.check != nil {
			p.check.data(b)
		}
		if p.body > p.maxBody {
			return len(b), ErrBodyBytes
		}
		return len(b), nil
	default:
		return p.lines(b)
	}
}

// data counts bytes of a body or chunk whose length is known and within the limit.
func (p *Parser) data(b []byte) (int, error) {
	n := min(int64(len(b)), p.left)
	p.left -= n
	p.body += n
	if p.check != nil {
		p.check.data(b[:n])
	}
	if p.left == 0 {
		if p.phase == inFixed {
			p.phase = complete
		} else {
			p.phase = inChunkEnd
		}
	}
	return int(n), nil
}

// lines consumes up to the end of one line and handles it when it is whole.
func (p *Parser) lines(b []byte) (int, error) {
	n := bytes.IndexByte(b, '\n') + 1
	part := b
	if n > 0 {
		part = b[:n]
	}
	if p.phase == inChunkSize || p.phase == inChunkEnd {
		if len(p.line)+len(part) > p.maxHeader {
			return len(part), ErrChunk
		}
	} else if p.used += len(part); p.used > p.maxHeader {
		return len(part), ErrHeaderBytes
	}
	if n == 0 {
		p.line = append(p.line, part...)
		return len(part), p.prefix()
	}
	line := part
	if len(p.line) > 0 {
		p.line = append(p.line, part...)
		line = p.line
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return n, p.malformed()
	}
	err := p.handle(line[:len(line)-2])
	p.line = p.line[:0]
	return n, err
}

// prefix refuses early what can no longer become a status line, so that a peer which speaks another
// protocol and sends no line end is not waited for.
func (p *Parser) prefix() error {
	const magic = "HTTP/1."
	if p.phase == inChunkEnd && string(p.line) != "\r" {
		return ErrChunk
	}
	if p.phase == inStatus {
		n := min(len(p.line), len(magic))
		if string(p.line[:n]) != magic[:n] {
			return ErrStatusLine
		}
	}
	return nil
}

func (p *Parser) malformed() error {
	switch p.phase {
	case inStatus:
		return ErrStatusLine
	case inHeader, inTrailer:
		return ErrHeader
	default:
		return ErrChunk
	}
}

// handle takes one whole line without its end.
func (p *Parser) handle(line []byte) error {
	switch p.phase {
	case inStatus:
		return p.statusLine(line)
	case inHeader:
		if len(line) == 0 {
			return p.headersEnd()
		}
		return p.header(line)
	case inTrailer:
		if len(line) == 0 {
			p.phase = complete
			return nil
		}
		_, _, err := field(line)
		return err
	case inChunkEnd:
		if len(line) != 0 {
			return ErrChunk
		}
		p.phase = inChunkSize
		return nil
	default:
		return p.chunkSize(line)
	}
}

// statusLine reads HTTP/1.x SP 3DIGIT [SP reason]. Servers that leave the last space out are common.
func (p *Parser) statusLine(b []byte) error {
	if len(b) < 12 || string(b[:7]) != "HTTP/1." || b[7] != '0' && b[7] != '1' || b[8] != ' ' {
		return ErrStatusLine
	}
	status := 0
	for _, c := range b[9:12] {
		if c < '0' || c > '9' {
			return ErrStatusLine
		}
		status = 10*status + int(c-'0')
	}
	if status < 100 || status > 599 || len(b) > 12 && b[12] != ' ' || !plain(b[12:]) {
		return ErrStatusLine
	}
	if status == 101 {
		return ErrSwitch
	}
	p.minor, p.status, p.phase = b[7], status, inHeader
	return nil
}

// header reads one field and keeps what framing needs.
func (p *Parser) header(line []byte) error {
	name, value, err := field(line)
	if err != nil {
		return err
	}
	if p.check != nil && p.status >= 200 {
		p.check.field(name, value)
	}
	switch len(name) {
	case len("Connection"):
		if equalFold(name, "connection") {
			p.connection(value)
		}
	case len("Content-Length"):
		if equalFold(name, "content-length") {
			return p.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if equalFold(name, "transfer-encoding") {
			if p.chunked || !equalFold(value, "chunked") {
				return ErrFraming
			}
			p.chunked = true
		}
	}
	return nil
}

// field splits a header line. A line that begins with white space is a fold, and is refused.
func field(line []byte) (name, value []byte, err error) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return nil, nil, ErrHeader
	}
	name, value = line[:colon], trim(line[colon+1:])
	for _, c := range name {
		if !token(c) {
			return nil, nil, ErrHeader
		}
	}
	if !plain(value) {
		return nil, nil, ErrHeader
	}
	return name, value, nil
}

func (p *Parser) contentLength(v []byte) error {
	if len(v) == 0 {
		return ErrFraming
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return ErrFraming
		}
		n = 10*n + int64(c-'0')
	}
	if p.length >= 0 && p.length != n {
		return ErrFraming
	}
	p.length = n
	return nil
}

func (p *Parser) connection(v []byte) {
	for len(v) > 0 {
		item := v
		if i := bytes.IndexByte(v, ','); i >= 0 {
			item, v = v[:i], v[i+1:]
		} else {
			v = nil
		}
		switch item = trim(item); {
		case equalFold(item, "close"):
			p.close = true
		case equalFold(item, "keep-alive"):
			p.keep = true
		}
	}
}

// headersEnd decides how the body is framed (RFC 9112, 6.3).
func (p *Parser) headersEnd() error {
	if p.chunked && (p.length >= 0 || p.minor == '0') {
		return ErrFraming
	}
	if p.status < 200 {
		return p.nextInterim()
	}
	switch {
	case p.head || p.status == 204 || p.status == 304:
		p.phase = complete
	case p.chunked:
		p.phase, p.used = inChunkSize, 0
	case p.length > p.maxBody:
		return ErrBodyBytes
	case p.length == 0:
		p.phase = complete
	case p.length > 0:
		p.phase, p.left = inFixed, p.length
	default:
		p.phase, p.close = inClose, true
	}
	return nil
}

// nextInterim drops a 1xx response. Its bytes stay counted against the limit of headers.
func (p *Parser) nextInterim() error {
	if p.interim++; p.interim > maxInterim {
		return ErrInterim
	}
	p.phase, p.status, p.length, p.chunked = inStatus, 0, -1, false
	p.close, p.keep = false, false
	return nil
}

// chunkSize reads 1*HEXDIG [BWS ";" extension]. Lines that carry little data are bounded as a whole,
// or a peer could send extensions for ever.
func (p *Parser) chunkSize(b []byte) error {
	var size int64
	i := 0
	for ; i < len(b); i++ {
		d := unhex(b[i])
		if d < 0 {
			break
		}
		if size > (math.MaxInt64-15)/16 {
			return ErrChunk
		}
		size = 16*size + int64(d)
	}
	rest := trim(b[i:])
	if i == 0 || len(b) > i && (len(rest) == 0 || rest[0] != ';') || !plain(rest) {
		return ErrChunk
	}
	if size > p.maxBody-p.body {
		return ErrBodyBytes
	}
	p.excess = max(0, p.excess+int64(len(b))-16-2*size)
	if p.excess > maxChunkExcess {
		return ErrChunk
	}
	if size == 0 {
		p.phase, p.used = inTrailer, 0
		return nil
	}
	p.phase, p.left = inChunkData, size
	return nil
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

// trim removes optional white space: space and tab only.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// plain tells whether b holds no control character but tab.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// equalFold compares with a word in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// token tells whether c may stand in a field name or method (RFC 9110, 5.6.2).
func token(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	default:
		return bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
	}
}
