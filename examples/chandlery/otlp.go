package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// batchSpans and batchAge bound how many spans wait, and how long while requests come in, before
// they are written as one line.
const (
	batchSpans = 200
	batchAge   = time.Second
)

// otlpFile writes OTLP/JSON Lines in the collector file exporter's shape: one TracesData per line,
// 64-bit integers as strings, ids in hex (OTLP specification, "JSON Protobuf Encoding"). Each
// request gives two spans: the server span, and as its child a client span of the shop's own look-up,
// so that a reader who does not filter by kind counts twice.
type otlpFile struct {
	mu    sync.Mutex
	file  io.WriteCloser
	spans []span
	first time.Time // when the oldest waiting span was added
	err   error     // the first error of writing
}

func newOTLP(file io.WriteCloser) sink { return &otlpFile{file: file} }

// The parts of TracesData that are written. Names and values follow the OTLP specification and the
// stable HTTP semantic conventions.
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"` // 2 server, 3 client
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     spanStatus  `json:"status"`
	}
	spanStatus struct {
		Code int `json:"code,omitempty"` // 2 error
	}
	attribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
)

func text(key, value string) attribute {
	return attribute{key, map[string]any{"stringValue": value}}
}

func integer(key string, value int64) attribute {
	return attribute{key, map[string]any{"intValue": strconv.FormatInt(value, 10)}}
}

// record implements sink.
func (o *otlpFile) record(s *served) {
	pair := spansOf(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.spans) == 0 {
		o.first = s.end
	}
	o.spans = append(o.spans, pair[:]...)
	if len(o.spans) >= batchSpans || s.end.Sub(o.first) >= batchAge {
		o.flush()
	}
}

// flush writes the waiting spans as one line; mu is held.
func (o *otlpFile) flush() {
	if len(o.spans) == 0 {
		return
	}
	line, err := json.Marshal(tracesData{[]resourceSpans{{
		Resource:   resource{[]attribute{text("service.name", "chandlery")}},
		ScopeSpans: []scopeSpans{{scope{"chandlery"}, o.spans}},
	}}})
	if err == nil {
		_, err = o.file.Write(append(line, '\n'))
	}
	o.err = errors.Join(o.err, err)
	o.spans = o.spans[:0]
}

// Close implements sink.
func (o *otlpFile) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	return joinClose(o.err, o.file)
}

// joinClose closes c and joins its error to err.
func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }

// spansOf gives the server span of a request and the client span below it.
func spansOf(s *served) [2]span {
	trace, parent := traceOf(s.parent)
	name := s.method
	attrs := []attribute{
		text("http.request.method", s.method), text("url.scheme", "http"), text("url.path", s.path),
		text("network.protocol.version", s.proto), text("client.address", s.client),
	}
	if _, query, ok := strings.Cut(s.target, "?"); ok {
		attrs = append(attrs, text("url.query", query))
	}
	if s.agent != "" {
		attrs = append(attrs, text("user_agent.original", s.agent))
	}
	if host, port, err := net.SplitHostPort(s.host); err == nil {
		attrs = append(attrs, text("server.address", host))
		if n, err := strconv.ParseInt(port, 10, 32); err == nil {
			attrs = append(attrs, integer("server.port", n))
		}
	}
	if s.route != "" {
		name += " " + s.route
		attrs = append(attrs, text("http.route", s.route))
	}
	status := spanStatus{}
	if s.status != statusGone { // nobody was answered: there is no status to tell
		attrs = append(attrs, integer("http.response.status_code", int64(s.status)))
	}
	if s.status >= 500 || s.status == statusGone {
		status.Code = 2
	}
	server := span{
		TraceID: trace, SpanID: randomHex(8), Parent: parent, Name: name, Kind: 2,
		Start: nano(s.start), End: nano(s.end), Attributes: attrs, Status: status,
	}
	client := span{
		TraceID: trace, SpanID: randomHex(8), Parent: server.SpanID, Name: "GET", Kind: 3,
		Start: nano(s.start), End: nano(s.end),
		Attributes: []attribute{
			text("http.request.method", "GET"), text("url.full", "http://stock.internal/shelves"),
			text("server.address", "stock.internal"), integer("http.response.status_code", 200),
		},
	}
	return [2]span{server, client}
}

// traceOf takes trace and parent id from a W3C traceparent header, or makes a new trace.
func traceOf(header string) (trace, parent string) {
	parts := strings.Split(header, "-")
	if len(parts) >= 4 && validID(parts[1], 32) && validID(parts[2], 16) {
		return parts[1], parts[2]
	}
	return randomHex(16), ""
}

// validID tells whether s is n lower-case hexadecimal digits that are not all zero.
func validID(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" && strings.Trim(s, "0") != ""
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails (crypto/rand)
	return hex.EncodeToString(b)
}

func nano(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
