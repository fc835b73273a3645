package httpload

import (
	"errors"
	"time"

	"seatrial/engine/httpload/http2"
	"seatrial/record"
)

// maxResent is how often a request is sent again because connection after connection ended before its
// peer looked at it.
const maxResent = 3

// flight is one request on its way.
type flight struct {
	w      waiting
	req    Request
	sample record.Sample
	check  checker
	wrong  error  // what was not as expected, when that is how it ended
	stream uint32 // HTTP/2
	tag    uint32

	conn       *loopConn // of a loop
	end, stage deadline

	over  bool        // of the portable engine: it has ended
	again bool        // the same: to be sent again
	timer *time.Timer // the same: its time-out
}

// begin notes a request as about to be written; Sent is set when it is.
func (f *flight) begin(w waiting, now time.Duration) {
	f.w = w
	f.sample = record.Sample{Index: w.Index, Route: f.req.Route, Due: w.Due}
	if !w.found {
		f.sample.Wait = max(0, now-w.since-w.held)
	}
	f.check.reset(f.req.Expect)
}

// judge gives the outcome of a complete and valid response.
func (f *flight) judge(status int) record.Outcome {
	f.sample.Status, f.sample.Expected = uint16(status), f.check.named()
	if f.wrong = f.check.wrong(status); f.wrong == nil {
		return record.Answered
	}
	return record.CheckFailed
}

// multiplex is what both engines do with one HTTP/2 connection: requests in, samples out. It belongs to
// one goroutine at a time.
type multiplex struct {
	conn    *http2.Conn
	out     *writer
	flights []*flight // by tag; nil where none is
	free    []uint32
	events  []http2.Event
	unsent  []*flight // opened and not yet written
	fields  []Field
	trace   []byte
	lastIn  time.Duration // when bytes came last
	spoke   bool          // the peer has spoken HTTP/2
}

func newMultiplex(k *http2.Client, out *writer) *multiplex {
	m := &multiplex{out: out}
	m.conn = k.Conn(m)
	return m
}

// newClient makes what the HTTP/2 connections of a run have in common.
func (c *Config) newClient() (*http2.Client, error) {
	k := http2.Config{Scheme: c.Target.Base().Scheme, Authority: c.Host, Streams: c.Connections.Streams, MaxHeader: c.Limits.MaxHeader,
		MaxBody: c.Limits.MaxBody}
	for _, h := range c.static() {
		k.Fields = append(k.Fields, http2.Field{Name: h.Name, Value: []byte(h.Value)})
	}
	return http2.NewClient(k)
}

// Field implements http2.Observer.
func (m *multiplex) Field(tag uint32, name, value []byte) { m.flights[tag].check.field(name, value) }

// Data implements http2.Observer.
func (m *multiplex) Data(tag uint32, b []byte) { m.flights[tag].check.data(b) }

// open queues a request, whose begin was called.
func (m *multiplex) open(f *flight) error {
	m.trace = m.out.traceparent(m.trace[:0], f.w.Index)
	m.fields = append(append(m.fields[:0], f.req.Fields...), Field{Name: "traceparent", Value: m.trace})
	if n := len(m.free); n > 0 {
		f.tag, m.free = m.free[n-1], m.free[:n-1]
	} else {
		f.tag = uint32(len(m.flights))
		m.flights = append(m.flights, nil)
	}
	stream, err := m.conn.Open(&http2.Request{Tag: f.tag, Method: f.req.Method, Target: f.req.Target, Fields: m.fields, Body: f.req.Body})
	if err != nil {
		m.free = append(m.free, f.tag)
		return err
	}
	f.stream, m.flights[f.tag] = stream, f
	m.unsent = append(m.unsent, f)
	return nil
}

// sent notes the moment in which what was opened is written.
func (m *multiplex) sent(now time.Duration) {
	for i, f := range m.unsent {
		f.sample.Sent = max(1, now)
		m.unsent[i] = nil
	}
	m.unsent = m.unsent[:0]
}

// feed takes bytes that came. The events are there for apply, whatever the error is.
func (m *multiplex) feed(b []byte, now time.Duration) error {
	var err error
	m.lastIn = now
	m.events, err = m.conn.Feed(b, m.events[:0])
	return err
}

// speaks is true once, when the peer is known to speak HTTP/2.
func (m *multiplex) speaks() bool {
	was := m.spoke
	m.spoke = true
	return !was
}

// ended takes the end of the connection.
func (m *multiplex) ended() { m.events = m.conn.Close(m.events[:0]) }

// cancel gives a request up.
func (m *multiplex) cancel(f *flight) {
	in, out := m.conn.Bytes(f.stream)
	f.sample.BytesIn, f.sample.BytesOut = uint64(in), uint64(out)
	m.conn.Cancel(f.stream)
	m.forget(f)
}

func (m *multiplex) forget(f *flight) {
	m.flights[f.tag] = nil
	m.free = append(m.free, f.tag)
	for i, u := range m.unsent {
		if u == f {
			m.unsent = append(m.unsent[:i], m.unsent[i+1:]...)
			break
		}
	}
}

// happened is what an event means for the engine.
type happened uint8

const (
	nothing happened = iota
	begun            // the first byte of the response came
	ended            // the sample is complete
	unseen           // the peer never looked at the request: it may be sent again
)

// apply applies an event to its request. cause is why the connection ended, when it did, and
// unwritten says that it took not all that was to be written.
func (m *multiplex) apply(e *http2.Event, now time.Duration, cause error, unwritten bool) (*flight, happened) {
	if e.Kind == http2.GoAway || e.Kind == http2.Headers {
		return nil, nothing
	}
	f := m.flights[e.Tag]
	s := &f.sample
	if e.Kind == http2.FirstByte {
		s.FirstByte = now
		return f, begun
	}
	m.forget(f)
	s.Done, s.BytesIn, s.BytesOut = max(now, s.Sent), uint64(e.BytesIn), uint64(e.BytesOut)
	switch e.Kind {
	case http2.End:
		s.Outcome = f.judge(int(e.Status))
	case http2.Reset:
		s.Outcome = record.StreamReset
	case http2.Refused:
		if e.Code == http2.RefusedStream {
			s.Outcome = record.StreamRefused
			break
		}
		switch {
		case !m.spoke && cause != nil: // it would look for another such connection for ever
			s.Outcome = m.broken(s, cause, unwritten)
		case f.w.resent < maxResent:
			return f, unseen
		default:
			s.Outcome = record.WentAway
		}
	case http2.Invalid:
		s.Outcome = record.InvalidResponse
	default:
		s.Outcome = m.broken(s, cause, unwritten)
	}
	return f, ended
}

// broken tells what the end of the connection means for a request on its way.
func (m *multiplex) broken(s *record.Sample, cause error, unwritten bool) record.Outcome {
	var violated *http2.ConnError
	if errors.As(cause, &violated) {
		return record.InvalidResponse
	}
	return brokenOutcome(cause, s.BytesIn > 0, unwritten)
}
