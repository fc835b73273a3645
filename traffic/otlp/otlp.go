// Package otlp reads OpenTelemetry traces as traffic: OTLP/JSON as one document, as JSON Lines or as
// documents behind each other, in camelCase and snake_case and as Tempo answers them; OTLP protobuf as
// one message, as it is posted, or with a length before each message, as the collector's file exporter
// writes it, which may compress each on its own. Which of them an input is, its content tells. Only
// server spans of HTTP become events. Documents are read as a stream, so that memory does not grow
// with them.
package otlp

import (
	"fmt"
	"strings"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
)

// Counts is what the traces held, whether or not it became an event. Documents in which nothing could
// be parsed add nothing to the counts of spans.
type Counts struct {
	Documents  int64 // well-formed
	Unparsable int64
	Spanless   int64 // of Documents, those without a resource that could hold spans: other signals, empty documents
	Spans      int64
	ByKind     ByKind
	HTTPServer int64 // server spans of HTTP
	Own        int64 // of HTTPServer, those of requests that Seatrial sent: they are no events
	NotHTTP    int64 // other server spans
	Routeless  int64 // of HTTPServer, those with neither route nor path, or without a usable method: they are no events
	NoDuration int64 // of HTTPServer, those without a duration
}

// ByKind counts spans by kind.
type ByKind struct{ Unspecified, Internal, Server, Client, Producer, Consumer, Unknown int64 }

// The bounds of one document that is held until its end is read, so that of a damaged document nothing
// is taken. Past them its events are given out as they come.
const (
	maxHeld      = 1 << 14 // events
	maxHeldBytes = 4 << 20 // bytes of their texts
	maxNamed     = 8       // spellings of unknown kinds that are named
)

// Config shapes a Source.
type Config struct {
	Replay bool // give the query and the client of each event, which a profile has no use for
}

// Source is a traffic.Source over OTLP traces.
type Source struct {
	set      *input.Set
	in       scanner
	frames   frames // below in, where messages have their length before them
	framing  framing
	form     form   // of the current document
	within   bool   // in is within a message of frames
	messages int64  // of the current input, how many were begun
	input    string // name of the current input
	stack    []frame
	doc      document
	span     span
	total    tally
	seen     [forms]bool // of the documents that were sound
	skips    traffic.Skips
	notes    map[string]int64
	event    traffic.Event
	held     []heldEvent
	texts    []byte // the texts of held
	given    int    // of held, how many were given out
	ready    bool   // held is to be given out
	opened   bool
	done     bool
	err      error
	unknown  []spelling
}

// heldEvent is an event whose texts lie in Source.texts.
type heldEvent struct {
	at, duration        int64
	status              int
	method, route, path extent
	query, client       extent
}

// spelling counts an unknown kind by how it is written.
type spelling struct {
	text           string
	pending, total int64
}

// document is the state of the document that is being read.
type document struct {
	line    int64 // where it starts
	tally   tally
	flushed bool // a part of it was given out already
	hasRS   bool // it has a resource that could hold spans
	hasSpan bool // it has a span
	signal  signal
}

// tally is what is counted while a document is read, and added up when it is found sound.
type tally struct {
	kinds   [kinds]int64
	reasons [reasons]int64
	http    int64
	noTime  int64
	// Events whose route says little of what was asked for.
	unmatched, catchAll int64
}

func (t *tally) add(o *tally) {
	for i, n := range o.kinds {
		t.kinds[i] += n
	}
	for i, n := range o.reasons {
		t.reasons[i] += n
	}
	t.http += o.http
	t.noTime += o.noTime
	t.unmatched += o.unmatched
	t.catchAll += o.catchAll
}

// reason is why a span is no event.
type reason uint8

const (
	isEvent reason = iota
	unspecifiedKind
	internalSpan
	clientSpan
	producerSpan
	consumerSpan
	unknownKind
	notHTTPRPC
	notHTTPMessaging
	notHTTPFaaS
	notHTTP
	noRoute
	noMethod
	badText
	badQuery
	ownRequest
	reasons // how many there are
)

// reasonNames are the keys of Skips.Reasons.
var reasonNames = [reasons]string{
	unspecifiedKind: "unspecified kind", internalSpan: "internal span", clientSpan: "client span",
	producerSpan: "producer span", consumerSpan: "consumer span", unknownKind: "unknown kind",
	notHTTPRPC: "not HTTP (rpc)", notHTTPMessaging: "not HTTP (messaging)", notHTTPFaaS: "not HTTP (faas)",
	notHTTP: "not HTTP", noRoute: "no route and no path", noMethod: "no usable method",
	badText: "control character in the path", badQuery: "control character in the query", ownRequest: traffic.OwnReason,
}

// New reads the inputs of set as OTLP traces, for a profile.
func New(set *input.Set) *Source { return NewWith(set, Config{}) }

// NewWith is New with a Config.
func NewWith(set *input.Set, cfg Config) *Source {
	return &Source{set: set, span: span{replay: cfg.Replay}, notes: make(map[string]int64)}
}

// Event implements traffic.Source.
func (s *Source) Event() *traffic.Event { return &s.event }

// Err implements traffic.Source. Inputs in which nothing at all could be parsed, documents that hold no
// traces, and binary formats that are not known, are an error, TRF-002.
func (s *Source) Err() error { return s.err }

// Scan implements traffic.Source.
func (s *Source) Scan() bool {
	for {
		if s.ready {
			if s.given < len(s.held) {
				s.give()
				return true
			}
			s.held, s.texts, s.given, s.ready = s.held[:0], s.texts[:0], 0, false
		}
		if s.done {
			return false
		}
		s.step()
	}
}

// give makes the next held event the current one.
func (s *Source) give() {
	h := &s.held[s.given]
	s.given++
	s.event = traffic.Event{
		UnixNano: h.at, Method: s.text(h.method), Path: s.text(h.path), Route: s.text(h.route),
		Status: h.status, Duration: time.Duration(h.duration), RequestSize: -1, ResponseSize: -1,
		Query: s.text(h.query), Client: s.text(h.client),
	}
}

func (s *Source) text(e extent) []byte {
	if e.from == e.to {
		return nil
	}
	return s.texts[e.from:e.to:e.to]
}

// Counts gives what was read so far.
func (s *Source) Counts() Counts {
	k := &s.total.kinds
	c := Counts{
		Documents: s.skips.Parsed, Unparsable: s.skips.Unparsable,
		ByKind:     ByKind{k[unspecified], k[internal], k[server], k[client], k[producer], k[consumer], k[unknown]},
		HTTPServer: s.total.http, NotHTTP: k[server] - s.total.http, Own: s.total.reasons[ownRequest],
		Routeless: s.total.reasons[noRoute] + s.total.reasons[noMethod] + s.total.reasons[badText] +
			s.total.reasons[badQuery],
		NoDuration: s.total.noTime,
	}
	for _, n := range k {
		c.Spans += n
	}
	for sig := noSignal; sig < signals; sig++ {
		c.Spanless += s.notes[signalNames[sig]]
	}
	return c
}

// Skipped implements traffic.Source. Read, Parsed and Unparsable count documents; Reasons count spans.
func (s *Source) Skipped() *traffic.Skips {
	k := &s.skips
	var formats []string
	for f, seen := range s.seen {
		if seen {
			formats = append(formats, formNames[f])
		}
	}
	k.Format = strings.Join(formats, ",")
	k.Read = k.Parsed + k.Unparsable
	k.Reasons = map[string]int64{}
	for i, n := range s.total.reasons {
		if n > 0 && reason(i) != isEvent {
			k.Reasons[reasonNames[i]] = n
		}
	}
	k.Notes = map[string]int64{}
	for name, n := range s.notes {
		k.Notes[name] = n
	}
	for name, n := range map[string]int64{"no duration": s.total.noTime, "route / of an unmatched request": s.total.unmatched,
		"route of a catch-all": s.total.catchAll} {
		if n > 0 {
			k.Notes[name] = n
		}
	}
	for _, u := range s.unknown {
		if u.total > 0 {
			k.Notes["kind "+u.text] = u.total
		}
	}
	return k
}

// foreign says that what was read holds no traces: other signals, access logs, anything else.
func (s *Source) foreign() error {
	var held strings.Builder
	for sig := noSignal; sig < signals; sig++ {
		if n := s.notes[signalNames[sig]]; n > 0 {
			fmt.Fprintf(&held, "%s: %d\n", signalNames[sig], n)
		}
	}
	return fault.New(fault.TRF002, "%s holds no traces: not one of %d documents has resourceSpans", s.set, s.skips.Parsed).
		WithNext("Check that the file is an OTLP trace export; access logs are read by the source `access_log`.").
		WithDetail(held.String())
}

// tried lists what is read, for messages.
const tried = "OTLP/JSON as one document, JSON Lines, documents behind each other, " +
	"OTLP protobuf as one message or with a length before each"

// nothing says why the inputs gave nothing.
func (s *Source) nothing() error {
	if s.skips.Unparsable == 0 {
		return fault.New(fault.TRF002, "%s holds no document; tried to read %s", s.set, tried)
	}
	var detail strings.Builder
	for _, f := range s.skips.First {
		fmt.Fprintf(&detail, "%s:%d: %s\n", f.Input, f.Line, f.Reason)
	}
	return fault.New(fault.TRF002, "not one of %d documents of %s could be parsed; the formats tried are %s",
		s.skips.Unparsable, s.set, tried).
		WithNext("Check that the file is an OTLP trace export; access logs are read by the source `access_log`.").
		WithDetail(detail.String())
}
