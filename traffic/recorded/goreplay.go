package recorded

import (
	"bytes"
	"strconv"
)

// separator stands behind each record of a GoReplay file.
const separator = "\n\U0001f435\U0001f648\U0001f649\n"

// maxRecord is the longest GoReplay record that is looked at, in bytes: a body and its headers.
const maxRecord = MaxBody + 64<<10

// goReplay reads GoReplay files: a line that says what, which and when, then the bytes of a message.
type goReplay struct {
	reader
	buf   []byte
	r, w  int
	line  int64 // of the next byte
	open  bool
	ended bool
}

func newGoReplay(r reader) *goReplay {
	g := &goReplay{reader: r, buf: make([]byte, 64<<10)}
	g.decode = g.next
	return g
}

func (g *goReplay) next() step {
	if !g.open {
		if !g.set.Next() {
			return ended
		}
		g.enter(g.set.Name())
		g.open, g.ended, g.r, g.w, g.line = true, false, 0, 0, 1
	}
	at := g.line
	record, long, ok := g.cut()
	switch {
	case !ok:
		g.open = false
		if why := g.set.Problem(); why != "" {
			g.refuse(at, why)
		}
		return passed
	case long:
		g.refuse(at, "a record longer than a body of 1 MiB and its headers")
		return passed
	case len(bytes.TrimSpace(record)) == 0:
		return passed
	}
	return g.record(record, at)
}

// cut gives the bytes up to the next separator, and passes it. Of a record that is too long it gives
// nothing.
func (g *goReplay) cut() (record []byte, long, ok bool) {
	looked := 0
	for {
		if i := bytes.Index(g.buf[g.r+looked:g.w], []byte(separator)); i >= 0 {
			record = g.buf[g.r : g.r+looked+i]
			g.r += looked + i + len(separator)
			g.line += int64(bytes.Count(record, []byte("\n"))) + 2
			return record, long, true
		}
		if g.ended {
			record = g.buf[g.r:g.w]
			g.r = g.w
			return record, long, (len(record) > 0 || long) && g.set.Err() == nil
		}
		if g.w-g.r > maxRecord {
			long = true
			drop := g.w - g.r - len(separator)
			g.line += int64(bytes.Count(g.buf[g.r:g.r+drop], []byte("\n")))
			g.r += drop
		}
		looked = max(0, g.w-g.r-len(separator)+1)
		g.fill()
	}
}

func (g *goReplay) fill() {
	if g.r > 0 {
		copy(g.buf, g.buf[g.r:g.w])
		g.w -= g.r
		g.r = 0
	}
	if g.w == len(g.buf) {
		g.buf = append(g.buf, make([]byte, len(g.buf))...)
	}
	n, err := g.set.Read(g.buf[g.w:])
	g.w += n
	g.ended = err != nil
}

// isMeta tells the first line of a record: kind, identifier, nanoseconds and, in version 2, a latency.
func isMeta(line []byte) bool {
	f := bytes.Fields(line)
	return (len(f) == 3 || len(f) == 4) && len(f[0]) == 1 && f[0][0]-'1' <= 2 && digits(f[2]) == len(f[2]) && len(f[2]) > 9
}

func (g *goReplay) record(b []byte, line int64) step {
	meta, message, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !isMeta(meta) {
		g.refuse(line, "no line of GoReplay's at the start of a record")
		return passed
	}
	if meta[0] != '1' {
		g.skips.Parsed++
		g.unfit("a response")
		return passed
	}
	g.reset(line)
	at, err := strconv.ParseInt(string(bytes.Fields(meta)[2]), 10, 64)
	if err != nil {
		g.refuse(line, "a time that is out of range")
		return passed
	}
	g.req.UnixNano = at
	if why := g.message(message); why != "" {
		g.refuse(line, why)
		return passed
	}
	return found
}

// message reads the bytes of an HTTP/1.x request.
func (g *goReplay) message(b []byte) string {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	start, fields, _ := bytes.Cut(head, []byte("\r\n"))
	part := bytes.Split(start, []byte(" "))
	switch {
	case len(part) != 3 || !bytes.HasPrefix(part[2], []byte("HTTP/1.")):
		return "no request line"
	case !ok:
		return "the record is cut short"
	}
	g.req.Method, g.req.URL = g.keep(part[0]), g.keep(part[1])
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, ok := bytes.Cut(field, []byte(":"))
		if !ok || !isToken(name) {
			return "a malformed header"
		}
		g.field(name, value)
	}
	return g.body(body)
}

// body undoes the framing of a message.
func (g *goReplay) body(b []byte) string {
	q := &g.req
	if coding, ok := q.value("transfer-encoding"); ok {
		if !sameName(coding, "chunked") {
			return "a transfer coding that is not read"
		}
		return g.chunks(b)
	}
	length := 0
	if text, ok := q.value("content-length"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || digits([]byte(text)) != len(text) {
			return "a malformed Content-Length"
		}
		length = n
	}
	switch {
	case len(b) < length:
		return "the body is cut short"
	case len(b) > length:
		return "bytes behind the body"
	}
	q.Body = g.keep(b)
	return ""
}

// chunks puts a chunked body together; its trailers are dropped.
func (g *goReplay) chunks(b []byte) string {
	const bad = "a malformed chunked body"
	from := len(g.texts)
	for {
		size, rest, ok := bytes.Cut(b, []byte("\r\n"))
		size, _, _ = bytes.Cut(size, []byte(";"))
		size = trim(size)
		if !ok || len(size) == 0 || len(size) > 8 {
			return bad
		}
		n, err := strconv.ParseUint(string(size), 16, 32)
		if err != nil || n > uint64(len(rest)) {
			return bad
		}
		if n == 0 {
			break
		}
		g.texts = append(g.texts, rest[:n]...)
		if b, ok = bytes.CutPrefix(rest[n:], []byte("\r\n")); !ok {
			return bad
		}
	}
	g.req.Body = g.texts[from:len(g.texts):len(g.texts)]
	return ""
}
