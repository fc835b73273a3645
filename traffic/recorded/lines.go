package recorded

import (
	"bytes"

	"seatrial/traffic/input"
)

// lines reads requests that stand on one line each, as JSON: ripley's and our own, Vegeta's, Linkerd's.
type lines struct {
	reader
	in  *input.Lines
	one func(line []byte) string
}

func newLines(r reader, format string) *lines {
	l := &lines{reader: r, in: input.NewLines(r.set)}
	switch format {
	case "vegeta":
		l.one = l.vegeta
	case "linkerd":
		l.one = l.linkerd
	default:
		l.one = l.ripley
	}
	l.decode = l.next
	return l
}

func (l *lines) next() step {
	if !l.in.Next() {
		return ended
	}
	line, number := l.in.Bytes(), l.in.Number()
	if number == 1 {
		l.enter(l.in.Input())
		line = bytes.TrimPrefix(line, bom)
	}
	if why := l.in.Fault(); why != "" {
		l.refuse(number, why)
		return passed
	}
	line = bytes.TrimLeft(line, " \t\r")
	if len(line) == 0 {
		l.skips.Blank++
		return passed
	}
	l.reset(number)
	why := checkJSON(line)
	switch {
	case why != "":
	case line[0] != '{':
		why = "not a JSON object"
	default:
		why = l.one(line)
	}
	if why != "" {
		l.refuse(number, why)
		return passed
	}
	return found
}

// take reads a member that is to be a string; null is as good as absent.
func (r *reader) take(dst *[]byte, v []byte, name string) string {
	if isNull(v) {
		return ""
	}
	if !isText(v) {
		return name + " is not a string"
	}
	var why string
	*dst, why = r.text(v)
	return why
}

// ripley reads url, method, timestamp, headers and body, and our own body_base64 and client. A timestamp
// of null says that no time was recorded; without a timestamp a line is refused.
func (l *lines) ripley(line []byte) string {
	q, timed, why := &l.req, false, ""
	for c := walk(line); c.next() && why == ""; {
		switch {
		case c.is("url"):
			why = l.take(&q.URL, c.val, "url")
		case c.is("method"):
			why = l.take(&q.Method, c.val, "method")
		case c.is("timestamp"):
			if timed = true; !isNull(c.val) {
				why = l.when(c.val)
			}
		case c.is("headers"):
			why = l.headers(c.val)
		case c.is("body"):
			why = l.take(&q.Body, c.val, "body")
		case c.is("body_base64"):
			q.Body, why = l.base64(c.val)
		case c.is("client"):
			why = l.take(&q.Client, c.val, "client")
		}
	}
	if why == "" && !timed {
		why = "no timestamp"
	}
	return why
}

// headers reads an object whose members are strings or lists of strings.
func (r *reader) headers(v []byte) string {
	if isNull(v) {
		return ""
	}
	if !isObject(v) {
		return "headers is not an object"
	}
	for c := walk(v); c.next(); {
		name, why := r.text(c.key)
		if why != "" {
			return why
		}
		values := walk(c.val)
		if values.object || values.b == nil {
			if why := r.header(name, c.val); why != "" {
				return why
			}
			continue
		}
		for values.next() {
			if why := r.header(name, values.val); why != "" {
				return why
			}
		}
	}
	return ""
}

func (r *reader) header(name, v []byte) string {
	if !isText(v) {
		return "a header that is not a string"
	}
	value, why := r.text(v)
	if why == "" {
		r.field(name, value)
	}
	return why
}

// vegeta reads a target of Vegeta's JSON format; its body is base64.
func (l *lines) vegeta(line []byte) string {
	q, why := &l.req, ""
	for c := walk(line); c.next() && why == ""; {
		switch {
		case c.is("url"):
			why = l.take(&q.URL, c.val, "url")
		case c.is("method"):
			why = l.take(&q.Method, c.val, "method")
		case c.is("header"):
			why = l.headers(c.val)
		case c.is("body") && !isNull(c.val):
			q.Body, why = l.base64(c.val)
		}
	}
	return why
}

// linkerd reads a line of the proxy's access log in JSON. It tells no headers but one, and no body.
func (l *lines) linkerd(line []byte) string {
	q, timed, why := &l.req, false, ""
	for c := walk(line); c.next() && why == ""; {
		switch {
		case c.is("uri"):
			why = l.take(&q.URL, c.val, "uri")
		case c.is("method"):
			why = l.take(&q.Method, c.val, "method")
		case c.is("client.addr"):
			why = l.take(&q.Client, c.val, "client.addr")
		case c.is("timestamp"):
			timed, why = true, l.when(c.val)
		case c.is("user_agent") && len(c.val) > 2:
			why = l.header([]byte("User-Agent"), c.val)
		case c.is("request_bytes"):
			if n := bytes.Trim(c.val, `"`); len(n) > 0 && n[0]-'1' <= 8 {
				l.note(noteNoBody)
			}
		}
	}
	if i := bytes.LastIndexByte(q.Client, ':'); i > 0 {
		q.Client = q.Client[:i] // the port is another one with each connection
	}
	if why == "" && !timed {
		why = "no timestamp"
	}
	return why
}
