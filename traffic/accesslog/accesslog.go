// Package accesslog reads web servers' access logs as traffic: the lines of the usual servers, proxies
// and load balancers, as text and as JSON, with what collectors write before them, and lines of which an
// NGINX log_format or an Apache LogFormat string tells the format. Formats are recognised by content,
// line by line.
package accesslog

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
	"seatrial/traffic/logformat"
)

// Config says how lines are to be read.
type Config struct {
	// Format is the format that the user names, as CheckFormat takes it; empty: recognised by content.
	// Lines of another format than the named one are unparsable. Only common, combined and
	// vhost_combined are one grammar, so that lines of a sibling are read all the same; Skips.Format
	// tells what was found.
	Format string

	// Replay fills in Event.Query and Event.Client, which are for a replay alone.
	Replay bool
}

// Lines gives the lines of a log one after the other. input.Lines is one.
type Lines interface {
	// Next advances to the next line; false at the end or on an error that Err then gives.
	Next() bool
	// Bytes is the current line without its end, valid until the next call of Next.
	Bytes() []byte
	// Fault tells why the current line is not whole, as a short phrase; empty for a whole line.
	Fault() string
	// Number is the number of the current line within its input, from 1.
	Number() int64
	// Input is the name of the input that the current line stands in.
	Input() string
	// Err is the error that ended reading; nil after a good end.
	Err() error
}

// Source is a traffic.Source over access-log lines.
type Source struct {
	lines     Lines
	event     traffic.Event
	replay    bool
	input     string // name of the current input
	clock     clock
	named     decoder // of the format that the user named; nil: recognised by content
	only      []form  // what named may find; nil: anything
	favourite decoder // of the last good line that is no JSON
	template  *logformat.Template
	values    logformat.Values
	table     table
	object    object
	inner     []byte // a line that stood within a record of a collector
	texts     []byte // the texts of the current line that had escapes
	form      form   // of the current line
	own       bool   // the current line's request was sent by Seatrial
	reason    string // of the result noMatch
	skips     traffic.Skips
	noReq     int64
	notAccess int64
	ownCount  int64
	unitless  int64
	seen      [forms]int64
	shapes    shapes
	damaged   map[string]int64
	err       error
	done      bool
}

// shapes counts unparsable lines by what they look like, to say so when nothing was parsed.
type shapes struct{ json, w3c int64 }

// New reads the inputs of set as access-log lines. A Format that is not known is Err's, before the
// first event.
func New(set *input.Set, config Config) *Source { return NewFrom(input.NewLines(set), config) }

// NewFrom reads lines from anywhere. A Format that is not known is Err's, before the first event. Lines
// that are a fmt.Stringer name their origin in errors.
func NewFrom(lines Lines, config Config) *Source {
	s := &Source{lines: lines, replay: config.Replay, damaged: make(map[string]int64)}
	switch {
	case config.Format == "":
	case logformat.IsTemplate(config.Format):
		if s.template, s.err = logformat.Compile(config.Format); s.err == nil {
			s.named = (*Source).templated
		}
	default:
		if s.err = CheckFormat(config.Format); s.err == nil {
			s.named, s.only = named(logformat.Canonical(config.Format))
		}
	}
	s.done = s.err != nil
	return s
}

// Event implements traffic.Source.
func (s *Source) Event() *traffic.Event { return &s.event }

// Err implements traffic.Source. Inputs in which nothing at all could be parsed are an error, TRF-002.
func (s *Source) Err() error { return s.err }

// Scan implements traffic.Source.
func (s *Source) Scan() bool {
	if s.done {
		return false
	}
	for s.lines.Next() {
		if s.lines.Number() == 1 {
			s.skips.EndInput(s.input)
			s.input = s.lines.Input()
			s.table = table{}
		}
		if s.take() {
			return true
		}
	}
	s.done = true
	s.skips.EndInput(s.input)
	if s.err = s.lines.Err(); s.err == nil && s.skips.Parsed == s.notAccess {
		s.err = s.nothing()
	}
	return false
}

// take reads the current line; true when it is an event.
func (s *Source) take() bool {
	line := s.lines.Bytes()
	if problem := s.lines.Fault(); problem != "" {
		s.damaged[problem]++
		s.refuse(problem)
		return false
	}
	s.own, s.texts = false, s.texts[:0]
	r := s.unpack(line)
	if r <= noRequest && !s.allowed() {
		r = otherFormat
	}
	switch r {
	case isRequest, noRequest:
		s.seen[s.form]++
		s.skips.Parsed++
		return s.counts(r)
	case notAccess:
		s.skips.Parsed++
		s.notAccess++
		return false
	}
	s.other(r, line)
	return false
}

// counts tells whether a line that was read is an event.
func (s *Source) counts(r result) bool {
	switch {
	case r == noRequest:
		s.noReq++
		return false
	case s.own:
		s.ownCount++
		return false
	}
	return true
}

// unpack reads a line with what a collector wrote before it. A format string may begin as such a prefix
// does, and is tried on the whole line first.
func (s *Source) unpack(line []byte) result {
	if s.template != nil {
		if r := s.read(line); r != noMatch {
			return r
		}
	}
	return s.read(s.strip(line))
}

// read reads a line whose prefix is removed.
func (s *Source) read(line []byte) result {
	s.event = traffic.Event{Duration: -1, RequestSize: -1, ResponseSize: -1}
	if s.named != nil {
		return s.named(s, line)
	}
	return s.recognise(line)
}

// other counts a line that is no access line.
func (s *Source) other(r result, line []byte) {
	switch first := firstByte(line); first {
	case 0:
		s.skips.Blank++
	case '#':
		s.skips.Comment++
		s.directive(line)
	default:
		if first == '{' {
			s.shapes.json++
		}
		if r == noMatch {
			s.refuse(s.reason)
			return
		}
		s.refuse(r.String())
	}
}

// took sets how long the request took. Where the time of the line is when it was done, the event's time
// becomes the start, as far as the line tells times: of a whole second only whole seconds are taken away.
func (s *Source) took(d int64, end bool) {
	s.event.Duration = time.Duration(d)
	if end && s.event.UnixNano > 0 {
		s.event.UnixNano -= d - d%s.clock.unit
	}
}

// agent notes who sent the request.
func (s *Source) agent(b []byte) { s.own = s.own || traffic.IsOwn(b) }

// refuse counts an unparsable line.
func (s *Source) refuse(reason string) {
	s.skips.Unparsable++
	if len(s.skips.First) < traffic.MaxFirst {
		s.skips.First = append(s.skips.First, traffic.Skip{
			Input: s.lines.Input(), Line: s.lines.Number(), Reason: reason,
		})
	}
}

// firstByte is the first byte of a line that is no white space, 0 for a blank line.
func firstByte(line []byte) byte {
	for _, c := range line {
		if c != ' ' && (c < '\t' || c > '\r') {
			return c
		}
	}
	return 0
}

// Skipped implements traffic.Source.
func (s *Source) Skipped() *traffic.Skips {
	s.skips.Read = s.skips.Parsed + s.skips.Unparsable
	s.skips.Reasons = map[string]int64{}
	for reason, n := range map[string]int64{noRequestReason: s.noReq, notAccessReason: s.notAccess, traffic.OwnReason: s.ownCount} {
		if n > 0 {
			s.skips.Reasons[reason] = n
		}
	}
	s.skips.Notes = maps.Clone(s.damaged)
	if s.unitless > 0 {
		s.skips.Notes["a duration without a unit"] = s.unitless
	}
	var names []string
	s.skips.Recognised = nil
	for f, n := range s.seen {
		if n == 0 {
			continue
		}
		names = append(names, formats[f].name)
		why := formats[f].why
		if s.named != nil {
			why = "it was named"
		}
		s.skips.Recognised = append(s.skips.Recognised, traffic.Recognised{Format: formats[f].label, Lines: n, Why: why})
	}
	s.skips.Format = strings.Join(names, ",")
	return &s.skips
}

// origin names what is read, for messages.
func (s *Source) origin() string {
	if named, ok := s.lines.(fmt.Stringer); ok {
		return named.String()
	}
	return s.lines.Input()
}

// nothing says why an input gave nothing.
func (s *Source) nothing() error {
	lines := s.skips.Unparsable + s.skips.Comment + s.notAccess
	if lines == 0 {
		return fault.New(fault.TRF002, "%s is empty: it holds no line", s.origin()).
			WithNext("Give the file that production wrote.")
	}
	tried := strings.Join(Formats(), ", ")
	switch {
	case s.template != nil:
		tried = "the format string that was given"
	case s.named != nil:
		tried = "the one that was named"
	}
	err := fault.New(fault.TRF002, "not one of %d lines of %s could be parsed as an access log; the formats tried are %s", lines, s.origin(), tried)
	switch {
	case s.named != nil:
		err.Next = "Leave the format out so that it is recognised by content, or mend it."
	case s.shapes.json+s.notAccess > 0:
		err.Next = "The lines are JSON without a request that is known: for OTLP traces use the source `otel`; for another log give the format string that writes it."
	case s.shapes.w3c > 0:
		err.Next = "The file looks like a W3C extended log whose columns do not name a time and a request; log at least date, time, cs-method and cs-uri-stem."
	default:
		err.Next = "Give the server's own format string as the format: NGINX's log_format or Apache's LogFormat."
	}
	var detail strings.Builder
	for _, f := range s.skips.First {
		fmt.Fprintf(&detail, "%s:%d: %s\n", f.Input, f.Line, f.Reason)
	}
	return err.WithDetail(detail.String())
}

// Warning is a sentence to show loudly when more than one in 20 of at least 100 lines or documents
// could not be parsed, of all that was read or of one input (TR-3); empty otherwise. It holds for the
// counts of any source.
func Warning(s *traffic.Skips) string {
	const loss = "could not be parsed and are no part of the traffic"
	share := func(bad, read int64) float64 { return 100 * float64(bad) / float64(read) }
	read := s.Parsed + s.Unparsable
	if traffic.TooMany(read, s.Unparsable) {
		return fmt.Sprintf("%d of %d records (%.1f%%) %s", s.Unparsable, read, share(s.Unparsable, read), loss)
	}
	if len(s.Bad) == 0 {
		return ""
	}
	b := s.Bad[0]
	text := fmt.Sprintf("%d of %d records of %s (%.1f%%) %s", b.Unparsable, b.Read, b.Input, share(b.Unparsable, b.Read), loss)
	if s.BadFiles > 1 {
		text += fmt.Sprintf("; so it is with %d more inputs", s.BadFiles-1)
	}
	return text
}
