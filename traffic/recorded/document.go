package recorded

import (
	"bytes"
	"io"
	"net/url"
)

// maxDocument is the longest JSON document that is read, in bytes: it is held until it is checked.
const maxDocument = 32 << 20

// document reads requests out of one JSON document for each input: HAR, and lists of k6's kind.
type document struct {
	reader
	items cursor
	n     int64
	har   bool
	coll  collection
	post  bool // Postman
}

func newDocument(r reader, format string) *document {
	d := &document{reader: r, har: format == "har", post: format == "postman"}
	d.decode = d.next
	return d
}

func (d *document) next() step {
	v, ok := d.element()
	if !ok {
		return d.load()
	}
	d.n++
	d.reset(d.n)
	why := ""
	switch {
	case d.har:
		why = d.entry(v)
	case d.post:
		why = d.item(v)
	default:
		why = d.target(v)
	}
	if why != "" {
		d.refuse(d.n, why)
		return passed
	}
	return found
}

// element gives the next element of the current list.
func (d *document) element() ([]byte, bool) {
	if !d.post {
		ok := d.items.next()
		return d.items.val, ok
	}
	if d.coll.given == len(d.coll.items) {
		return nil, false
	}
	d.coll.given++
	return d.coll.items[d.coll.given-1], true
}

// load reads the next input whole, checks it and finds its list.
func (d *document) load() step {
	if !d.set.Next() {
		return ended
	}
	d.enter(d.set.Name())
	d.items, d.n, d.coll = cursor{}, 0, collection{}
	b, err := io.ReadAll(io.LimitReader(d.set, maxDocument+1))
	if err != nil {
		d.err = err
		return ended
	}
	why := d.set.Problem()
	b = bytes.TrimSpace(bytes.TrimPrefix(b, bom))
	switch {
	case why != "":
	case len(b) == 0:
		return passed
	case len(b) > maxDocument:
		why = "a document longer than 32 MiB"
	default:
		why = checkJSON(b)
	}
	list := b
	if why == "" && d.har {
		list = find(find(b, "log"), "entries")
	}
	if why == "" && d.post {
		if why = d.collection(b); why == "" {
			return passed
		}
	}
	if why == "" && !isArray(list) {
		why = "no list of requests"
	}
	if why != "" {
		d.refuse(1, why)
		return passed
	}
	d.items = walk(list)
	return passed
}

// entry reads an entry of a HAR file.
func (d *document) entry(v []byte) string {
	q, request := &d.req, find(v, "request")
	if !isObject(request) {
		return "no request"
	}
	if at := find(v, "startedDateTime"); at != nil {
		if why := d.when(at); why != "" {
			return why
		}
	}
	if why := d.take(&q.Method, find(request, "method"), "method"); why != "" {
		return why
	}
	if why := d.take(&q.URL, find(request, "url"), "url"); why != "" {
		return why
	}
	for c := walk(find(request, "headers")); c.next(); {
		if why := d.pair(c.val); why != "" {
			return why
		}
	}
	if bytes.IndexByte(q.URL, '?') < 0 { // the URL is what was sent; the list only says it again
		query, why := d.form(find(request, "queryString"))
		if why != "" {
			return why
		}
		if len(query) > 0 {
			q.URL = d.keep(append(append(bytes.Clone(q.URL), '?'), query...))
		}
	}
	return d.postData(find(request, "postData"))
}

// pair reads a header of {name, value}.
func (d *document) pair(v []byte) string {
	var name, value []byte
	if why := d.take(&name, find(v, "name"), "a header's name"); why != "" {
		return why
	}
	if why := d.take(&value, find(v, "value"), "a header's value"); why != "" {
		return why
	}
	d.field(name, value)
	return ""
}

// postData reads a body. What stands as text was sent so; parameters beside it only say it again.
func (d *document) postData(v []byte) string {
	if v == nil {
		return ""
	}
	var kind []byte
	if why := d.take(&kind, find(v, "mimeType"), "mimeType"); why != "" {
		return why
	}
	text, params := find(v, "text"), find(v, "params")
	multipart := bytes.HasPrefix(bytes.ToLower(kind), []byte("multipart/"))
	var why string
	switch {
	case isText(text) && len(text) > 2:
		if walked := walk(params); walked.next() {
			d.note("parameters beside a text, which was taken")
		}
		if code := find(v, "encoding"); string(code) == `"base64"` {
			d.req.Body, why = d.base64(text)
		} else {
			d.req.Body, why = d.text(text)
		}
	case isArray(params) && multipart:
		kind, why = d.multipart(params, kind)
	case isArray(params):
		d.req.Body, why = d.form(params)
	}
	if _, ok := d.req.value("content-type"); why == "" && !ok && len(kind) > 0 {
		d.field([]byte("Content-Type"), kind)
	}
	return why
}

// form encodes a list of {name, value} as a query. What is encoded already stays as it is.
func (d *document) form(v []byte) (out []byte, why string) {
	for c := walk(v); c.next() && why == ""; {
		var name, value []byte
		if why = d.take(&name, find(c.val, "name"), "a parameter's name"); why != "" {
			return nil, why
		}
		why = d.take(&value, find(c.val, "value"), "a parameter's value")
		if len(out) > 0 {
			out = append(out, '&')
		}
		out = append(append(append(out, encoded(name)...), '='), encoded(value)...)
	}
	return out, why
}

// encoded gives text in the form of a query. Browsers write parameters encoded and people write them
// plain: text that holds an escape and nothing that would need one is left alone.
func encoded(b []byte) string {
	escapes := 0
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '%' && i+2 < len(b):
			_, one := hexDigit(b[i+1])
			_, two := hexDigit(b[i+2])
			if !one || !two {
				return url.QueryEscape(string(b))
			}
			escapes++
		case c-'0' > 9 && (c|0x20)-'a' > 'z'-'a' && bytes.IndexByte([]byte("*-._+~"), c) < 0:
			return url.QueryEscape(string(b))
		}
	}
	if escapes == 0 {
		return url.QueryEscape(string(b))
	}
	return string(b)
}

// multipart builds a body of parts, with the boundary of its type or, when that has none, one of ours.
func (d *document) multipart(params, kind []byte) ([]byte, string) {
	header, ok := d.req.value("content-type")
	if !ok {
		header = string(kind)
	}
	_, boundary, ok := bytes.Cut([]byte(header), []byte("boundary="))
	boundary, _, _ = bytes.Cut(bytes.Trim(boundary, `"`), []byte(";"))
	if !ok || len(boundary) == 0 || len(boundary) > 70 {
		boundary = []byte("seatrial-part-of-a-form")
		kind = append(bytes.Clone(kind), "; boundary="+string(boundary)...)
	}
	var b bytes.Buffer
	for c := walk(params); c.next(); {
		text := map[string][]byte{}
		for _, key := range [...]string{"name", "value", "fileName", "contentType"} {
			var v []byte
			if why := d.take(&v, find(c.val, key), "a part's "+key); why != "" {
				return kind, why
			}
			if key != "value" && bytes.ContainsAny(v, "\r\n\"\x00") {
				return kind, "a control character in a part's header"
			}
			text[key] = v
		}
		if len(text["fileName"]) > 0 && len(text["value"]) == 0 {
			return kind, "a file whose content was not recorded"
		}
		b.WriteString("--" + string(boundary) + "\r\nContent-Disposition: form-data; name=\"" + string(text["name"]) + "\"")
		if name := text["fileName"]; len(name) > 0 {
			b.WriteString("; filename=\"" + string(name) + "\"")
		}
		if t := text["contentType"]; len(t) > 0 {
			b.WriteString("\r\nContent-Type: " + string(t))
		}
		b.WriteString("\r\n\r\n" + string(text["value"]) + "\r\n")
	}
	b.WriteString("--" + string(boundary) + "--\r\n")
	d.req.Body = b.Bytes()
	return kind, ""
}

// target reads an element of a k6-style list.
func (d *document) target(v []byte) string {
	q := &d.req
	if isText(v) {
		return d.take(&q.URL, v, "url")
	}
	if !isObject(v) {
		return "an element that is no object"
	}
	why := d.take(&q.URL, find(v, "url"), "url")
	if why == "" {
		why = d.take(&q.Method, find(v, "method"), "method")
	}
	if why == "" {
		why = d.take(&q.Body, find(v, "body"), "body")
	}
	for _, headers := range [...][]byte{find(v, "headers"), find(find(v, "params"), "headers")} {
		if why == "" {
			why = d.headers(headers)
		}
	}
	return why
}
