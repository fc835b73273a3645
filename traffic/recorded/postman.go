package recorded

import (
	"bytes"
	"net/url"
)

// collection is a Postman collection that is being read.
type collection struct {
	items     [][]byte
	given     int
	variables map[string]string
	one       bool // version 1
}

// open finds the requests of a collection, folders within folders, and its variables.
func (d *document) collection(b []byte) string {
	c := collection{variables: map[string]string{}}
	for _, key := range [...]string{"variable", "variables"} {
		for w := walk(find(b, key)); w.next(); {
			name := firstOf(w.val, "key", "id")
			value := find(w.val, "value")
			if isText(name) && isText(value) && string(find(w.val, "disabled")) != "true" {
				n, _ := unquote(nil, name)
				v, _ := unquote(nil, value)
				c.variables[string(n)] = string(v)
			}
		}
	}
	switch {
	case isArray(find(b, "item")):
		c.folder(find(b, "item"))
	case isArray(find(b, "requests")):
		c.one = true
		c.ordered(find(b, "requests"), find(b, "order"))
	default:
		return "no list of requests"
	}
	d.coll = c
	return ""
}

// folder adds the requests of a list of items. What was checked is not nested deeper than maxDepth.
func (c *collection) folder(items []byte) {
	for w := walk(items); w.next(); {
		if sub := find(w.val, "item"); isArray(sub) {
			c.folder(sub)
			continue
		}
		c.items = append(c.items, w.val)
	}
}

// ordered adds the requests of version 1 in the order that the collection gives; others come last.
func (c *collection) ordered(requests, order []byte) {
	rest := map[string]int{}
	var all [][]byte
	for w := walk(requests); w.next(); {
		rest[string(find(w.val, "id"))] = len(all)
		all = append(all, w.val)
	}
	for w := walk(order); w.next(); {
		if i, ok := rest[string(w.val)]; ok && all[i] != nil {
			c.items = append(c.items, all[i])
			all[i] = nil
		}
	}
	for _, v := range all {
		if v != nil {
			c.items = append(c.items, v)
		}
	}
}

func firstOf(v []byte, keys ...string) []byte {
	for _, k := range keys {
		if f := find(v, k); f != nil {
			return f
		}
	}
	return nil
}

// item reads one request of a collection.
func (d *document) item(v []byte) string {
	q, request := &d.req, v
	if !d.coll.one {
		if request = find(v, "request"); isText(request) {
			return d.filled(&q.URL, request)
		}
	}
	if !isObject(request) {
		return "no request"
	}
	if isObject(find(request, "auth")) || isObject(find(v, "auth")) {
		d.note(noteAuth)
	}
	if why := d.take(&q.Method, find(request, "method"), "method"); why != "" {
		return why
	}
	if why := d.address(find(request, "url")); why != "" {
		return why
	}
	if why := d.postmanHeaders(firstOf(request, "header", "headers")); why != "" {
		return why
	}
	if d.coll.one {
		if string(find(request, "dataMode")) == `"raw"` {
			return d.filled(&q.Body, find(request, "rawModeData"))
		}
		if w := walk(find(request, "data")); w.next() {
			return "a form of version 1, which is not read; export the collection as v2.1"
		}
		return ""
	}
	return d.postmanBody(find(request, "body"))
}

// filled reads a string and puts the collection's variables into it.
func (d *document) filled(dst *[]byte, v []byte) string {
	if why := d.take(dst, v, "a text"); why != "" {
		return why
	}
	b := *dst
	if !bytes.Contains(b, []byte("{{")) {
		return ""
	}
	var out []byte
	for range maxDepth { // a variable may name others
		from := bytes.Index(b, []byte("{{"))
		end := bytes.Index(b[max(from, 0):], []byte("}}"))
		if from < 0 || end < 0 {
			*dst = append(out, b...)
			return ""
		}
		name := string(bytes.TrimSpace(b[from+2 : from+end]))
		value, ok := d.coll.variables[name]
		if !ok {
			return "the variable {{" + name[:min(len(name), 64)] + "}} has no value in the collection"
		}
		out = append(out, b[:from]...)
		b = append([]byte(value), b[from+end+2:]...)
		if len(out)+len(b) > MaxBody {
			return longBody
		}
	}
	return "more variables than are filled in"
}

// address reads a URL: a string, or an object whose raw form it is. Path variables are filled in.
func (d *document) address(v []byte) string {
	q, raw := &d.req, v
	if isObject(v) {
		if raw = find(v, "raw"); raw == nil {
			return "a URL without its raw form"
		}
	}
	if why := d.filled(&q.URL, raw); why != "" {
		return why
	}
	for w := walk(find(v, "variable")); w.next(); {
		var name, value []byte
		if why := d.take(&name, firstOf(w.val, "key", "id"), "a variable's name"); why != "" {
			return why
		}
		if why := d.filled(&value, find(w.val, "value")); why != "" {
			return why
		}
		if len(name) > 0 && len(value) > 0 {
			q.URL = fillSegment(q.URL, name, value)
		}
	}
	if len(q.URL) > 0 && q.URL[0] != '/' && !bytes.Contains(q.URL, []byte("://")) {
		q.URL = append([]byte("http://"), q.URL...)
	}
	q.URL = bytes.ReplaceAll(q.URL, []byte(" "), []byte("%20"))
	return ""
}

// fillSegment replaces the segments of a path that are ":name".
func fillSegment(address, name, value []byte) []byte {
	path, query, has := bytes.Cut(address, []byte("?"))
	segments := bytes.Split(path, []byte("/"))
	for i, s := range segments {
		if len(s) > 1 && s[0] == ':' && bytes.Equal(s[1:], name) {
			segments[i] = []byte(url.PathEscape(string(value)))
		}
	}
	path = bytes.Join(segments, []byte("/"))
	if has {
		path = append(append(path, '?'), query...)
	}
	return path
}

// off tells an entry that is switched off.
func off(v []byte) bool {
	return string(find(v, "disabled")) == "true" || string(find(v, "enabled")) == "false"
}

// pairs calls f with the key and value of each entry that is on.
func (d *document) pairs(v []byte, f func(entry, key, value []byte) string) string {
	for w := walk(v); w.next(); {
		if off(w.val) {
			continue
		}
		var key, value []byte
		if string(find(w.val, "type")) == `"file"` {
			return "a file that is not in the collection"
		}
		if why := d.filled(&key, find(w.val, "key")); why != "" {
			return why
		}
		if why := d.filled(&value, find(w.val, "value")); why != "" {
			return why
		}
		if why := f(w.val, key, value); why != "" {
			return why
		}
	}
	return ""
}

func (d *document) postmanHeaders(v []byte) string {
	if isText(v) { // lines
		var text []byte
		if why := d.filled(&text, v); why != "" {
			return why
		}
		for line := range bytes.Lines(text) {
			if name, value, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":")); ok {
				d.field(name, value)
			}
		}
		return ""
	}
	return d.pairs(v, func(_, key, value []byte) string {
		if len(key) > 0 {
			d.field(key, value)
		}
		return ""
	})
}

// typed adds a Content-Type unless there is one.
func (d *document) typed(kind string) {
	if _, ok := d.req.value("content-type"); !ok {
		d.field([]byte("Content-Type"), []byte(kind))
	}
}

// graphQL writes a query and its variables, which the collection holds as text, as one JSON object.
func (d *document) graphQL(v []byte) string {
	var query, variables []byte
	if why := d.filled(&query, find(v, "query")); why != "" {
		return why
	}
	if why := d.filled(&variables, find(v, "variables")); why != "" {
		return why
	}
	if len(bytes.TrimSpace(variables)) == 0 {
		variables = []byte("{}")
	}
	if checkJSON(variables) != "" {
		return "variables of a query that are not JSON"
	}
	body := append(appendText([]byte(`{"query":`), query), `,"variables":`...)
	d.req.Body = append(append(body, variables...), '}')
	d.typed("application/json")
	return ""
}

func (d *document) postmanBody(v []byte) string {
	q := &d.req
	if off(v) {
		return ""
	}
	switch string(find(v, "mode")) {
	case "":
	case `"raw"`:
		if string(find(find(find(v, "options"), "raw"), "language")) == `"json"` {
			d.typed("application/json")
		}
		return d.filled(&q.Body, find(v, "raw"))
	case `"graphql"`:
		return d.graphQL(find(v, "graphql"))
	case `"urlencoded"`:
		why := d.pairs(find(v, "urlencoded"), func(_, key, value []byte) string {
			if len(q.Body) > 0 {
				q.Body = append(q.Body, '&')
			}
			q.Body = append(append(append(q.Body, encoded(key)...), '='), encoded(value)...)
			return ""
		})
		if len(q.Body) > 0 {
			d.typed("application/x-www-form-urlencoded")
		}
		return why
	case `"formdata"`:
		const boundary = "seatrial-part-of-a-form"
		why := d.pairs(find(v, "formdata"), func(_, key, value []byte) string {
			if bytes.ContainsAny(key, "\r\n\"\x00") {
				return "a control character in a part's header"
			}
			q.Body = append(q.Body, "--"+boundary+"\r\nContent-Disposition: form-data; name=\""+string(key)+"\"\r\n\r\n"+string(value)+"\r\n"...)
			return ""
		})
		if len(q.Body) > 0 {
			q.Body = append(q.Body, "--"+boundary+"--\r\n"...)
			d.typed("multipart/form-data; boundary=" + boundary)
		}
		return why
	default:
		return "a body of a mode that is not read"
	}
	return ""
}
