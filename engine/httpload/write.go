package httpload

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
)

// writer builds the bytes of requests. All but the request line and the trace are the same for every
// request and are built once.
type writer struct {
	tail  []byte // from the version to the last static header
	seed  uint64
	run   uint64  // tells the traces of two runs with one seed apart
	trace float64 // share sampled
}

func newWriter(c *Config, run uint64) *writer {
	b := []byte(" HTTP/1.1\r\nHost: ")
	b = append(b, c.Host...)
	b = append(b, '\r', '\n')
	line := func(name, value string) {
		b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
	}
	for _, h := range c.static() {
		line(h.Name, h.Value)
	}
	if c.single() {
		line("Connection", "close")
	}
	return &writer{tail: b, seed: c.Seed, run: run, trace: c.Trace}
}

// static are the headers that all requests carry. A user agent of the user's wins over ours.
func (c *Config) static() []Header {
	own := slices.ContainsFunc(c.Headers, func(h Header) bool { return equalFold([]byte(h.Name), "user-agent") })
	if c.UserAgent == "" || own {
		return c.Headers
	}
	return append(slices.Clone(c.Headers), Header{"User-Agent", c.UserAgent})
}

// append adds the bytes of request i. A method that usually has a body says that there is none:
// servers answer 411 otherwise.
func (w *writer) append(b []byte, i uint64, r *Request) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, w.tail...)
	for i := range r.Fields {
		f := &r.Fields[i]
		b = append(append(append(append(b, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if len(r.Body) > 0 || usuallyHasBody(r.Method) {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(r.Body)), 10)
		b = append(b, '\r', '\n')
	}
	b = append(b, "traceparent: "...)
	b = w.traceparent(b, i)
	b = append(b, "\r\n\r\n"...)
	return append(b, r.Body...)
}

func usuallyHasBody(method string) bool {
	return method == "POST" || method == "PUT" || method == "PATCH"
}

// traceparent adds a W3C trace context, version 00. Which requests are sampled is a pure function of
// (seed, i); the identifiers are of this run.
func (w *writer) traceparent(b []byte, i uint64) []byte {
	hi, lo, span := mix(w.run^w.seed, 3*i), mix(w.run+w.seed, 3*i+1), mix(w.run^w.seed, 3*i+2)
	b = append(b, "00-"...)
	b = appendHex(appendHex(b, hi), lo|1) // neither identifier may be zero
	b = append(b, '-')
	b = appendHex(b, span|1)
	if float64(mix(w.seed, i)) < w.trace*math.MaxUint64 {
		return append(b, "-01"...)
	}
	return append(b, "-00"...)
}

func appendHex(b []byte, v uint64) []byte {
	const digits = "0123456789abcdef"
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], v)
	for _, c := range raw {
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood 2014) at position i of stream seed.
func mix(seed, i uint64) uint64 {
	z := seed + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// sendable tells whether a request can be written without becoming something else: a target with a
// space or a line end would split it, and so would a field. Such a request is counted UnsentPolicy.
func sendable(r *Request) bool {
	if r.Refuse || r.Method == "" || r.Method == "CONNECT" || len(r.Target) == 0 || r.Target[0] != '/' {
		return false
	}
	for i := range len(r.Method) {
		if !token(r.Method[i]) {
			return false
		}
	}
	for _, c := range r.Target {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	for i := range r.Fields {
		if !fieldSendable(r.Fields[i].Name) || !plain(r.Fields[i].Value) {
			return false
		}
	}
	return true
}

// fieldSendable tells whether a field of this name may stand in a request: what frames it is the
// engine's own.
func fieldSendable(name string) bool {
	for i := range len(name) {
		if !token(name[i]) {
			return false
		}
	}
	for _, own := range ours {
		if len(name) == len(own) && strings.EqualFold(name, own) {
			return false
		}
	}
	return name != ""
}

// ours are the fields that frame a request or name where it goes, in any version of HTTP.
var ours = [...]string{"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect",
	"keep-alive", "proxy-connection"}
