package recorded

import (
	"bytes"

	"seatrial/traffic/input"
)

// MaxBody is the longest body of one request, in bytes. A request with a longer one is refused.
const MaxBody = input.MaxLine

const (
	maxMethod  = 32
	maxHeaders = 256 // fields of one request
	longBody   = "a body longer than 1 MiB"
	control    = "a control character in a header"
)

// Notes: what was changed in requests that are given.
const (
	noteUser     = "a user name or password in the URL, removed"
	noteFragment = "a fragment in the URL, removed"
	noteMethod   = "no method: GET is meant"
	noteName     = "a header whose name HTTP does not allow, removed"
	noteNoBody   = "a body that was not recorded"
	noteAuth     = "credentials that the tool would have added, left out"
)

// check makes the request one that can be sent, or tells why it is none. refused is a record that is
// damaged; unfit is one that is sound and that HTTP has no use for.
func (r *reader) check() (refused, unfit string) {
	q := &r.req
	if len(q.Method) == 0 {
		r.note(noteMethod)
		q.Method = append(q.Method, "GET"...)
	}
	if !isToken(q.Method) || len(q.Method) > maxMethod {
		return "a method that HTTP does not allow", ""
	}
	for i, c := range q.Method {
		if c-'a' <= 'z'-'a' {
			q.Method[i] = c - 0x20
		}
	}
	if string(q.Method) == "CONNECT" {
		return "", "CONNECT is no request to a service"
	}
	if refused, unfit = r.checkURL(); refused != "" || unfit != "" {
		return refused, unfit
	}
	if why := r.checkHeader(); why != "" {
		return why, ""
	}
	if len(q.Body) > MaxBody {
		return longBody, ""
	}
	if len(q.Body) == 0 {
		q.Body = nil
	}
	return "", ""
}

func (r *reader) checkURL() (refused, unfit string) {
	q := &r.req
	if len(q.URL) == 0 {
		return "no URL", ""
	}
	for _, c := range q.URL {
		if c <= ' ' || c == 0x7f {
			return "a space or control character in the URL", ""
		}
	}
	if i := bytes.IndexByte(q.URL, '#'); i >= 0 {
		q.URL = q.URL[:i]
		r.note(noteFragment)
	}
	if len(q.URL) > 0 && q.URL[0] == '/' {
		return "", ""
	}
	colon := bytes.IndexByte(q.URL, ':')
	if colon <= 0 || !isScheme(q.URL[:colon]) {
		return "a URL that is neither absolute nor a path", ""
	}
	switch scheme := q.URL[:colon]; {
	case !bytes.EqualFold(scheme, []byte("http")) && !bytes.EqualFold(scheme, []byte("https")):
		return "", "not HTTP (" + string(scheme[:min(len(scheme), 16)]) + ")"
	case !bytes.HasPrefix(q.URL[colon:], []byte("://")):
		return "a URL that is neither absolute nor a path", ""
	}
	return r.checkHost(colon + len("://")), ""
}

// isScheme is the grammar of RFC 3986, 3.1.
func isScheme(b []byte) bool {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c-'0' > 9 && c != '+' && c != '.' && c != '-') {
			return false
		}
	}
	return len(b) > 0
}

// checkHost looks at the authority that starts at from, and removes who it says asks.
func (r *reader) checkHost(from int) string {
	q := &r.req
	end := len(q.URL)
	if i := bytes.IndexAny(q.URL[from:], `/?\`); i >= 0 {
		end = from + i
	}
	if end < len(q.URL) && q.URL[end] == '\\' { // readers differ about where the host ends
		return "a backslash in the URL's host"
	}
	if at := bytes.LastIndexByte(q.URL[from:end], '@'); at >= 0 {
		r.note(noteUser)
		cut := at + 1
		q.URL = append(q.URL[:from], q.URL[from+cut:]...)
		end -= cut
	}
	if !isHost(q.URL[from:end]) {
		return "a URL without a usable host"
	}
	return ""
}

// isHost tells a name or an address with an optional port.
func isHost(h []byte) bool {
	rest := h
	if len(h) > 0 && h[0] == '[' {
		i := bytes.IndexByte(h, ']')
		if i < 3 {
			return false
		}
		for _, c := range h[1:i] {
			if _, hex := hexDigit(c); !hex && c != ':' && c != '.' {
				return false
			}
		}
		rest = h[i+1:]
		if len(rest) == 0 {
			return true
		}
	} else {
		i := bytes.IndexByte(h, ':')
		if i < 0 {
			i = len(h)
		}
		for _, c := range h[:i] {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			if !letter && c-'0' > 9 && c != '.' && c != '-' && c != '_' && c < 0x80 {
				return false
			}
		}
		if rest = h[i:]; i == 0 {
			return false
		}
		if len(rest) == 0 {
			return true
		}
	}
	return rest[0] == ':' && len(rest) <= 6 && digits(rest[1:]) == len(rest)-1
}

// checkHeader removes what is no business of a recorded request: how its recorder framed it. The body
// is whole here, and a sender frames it anew; two accounts of its length would be request smuggling.
func (r *reader) checkHeader() string {
	q := &r.req
	kept := q.Header[:0]
	for _, f := range q.Header {
		if hasControl(f.Name) || hasControl(f.Value) {
			return control
		}
		switch {
		case len(f.Name) > 1 && f.Name[0] == ':', isFraming(f.Name):
		case !isTokenText(f.Name):
			r.note(noteName)
		default:
			kept = append(kept, f)
		}
	}
	q.Header = kept
	if len(kept) > maxHeaders {
		return "more than 256 headers"
	}
	return ""
}

// hasControl tells whether a name or a value could end its line, or holds what HTTP forbids in it.
func hasControl(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// framing is the fields that belong to one connection (RFC 9110, 7.6.1) or to the length of a message.
var framing = [...]string{"content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection",
	"te", "trailer", "upgrade", "expect", "http2-settings"}

func isFraming(name string) bool {
	for _, f := range framing {
		if sameName(name, f) {
			return true
		}
	}
	return false
}

// sameName compares the names of fields.
func sameName(a, lower string) bool {
	if len(a) != len(lower) {
		return false
	}
	for i := range len(a) {
		c := a[i]
		if c-'A' <= 'Z'-'A' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func isToken(b []byte) bool {
	for _, c := range b {
		if !isTokenByte(c) {
			return false
		}
	}
	return len(b) > 0
}

func isTokenText(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// isTokenByte is the grammar of RFC 9110, 5.6.2.
func isTokenByte(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return c-'0' <= 9 || (c|0x20)-'a' <= 'z'-'a'
}

// value gives the first field of a name, in lower case; false when there is none.
func (q *Request) value(lower string) (string, bool) {
	for _, f := range q.Header {
		if sameName(f.Name, lower) {
			return f.Value, true
		}
	}
	return "", false
}
