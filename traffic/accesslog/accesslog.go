// Package accesslog reads web servers' access logs as traffic: the common log format, combined,
// vhost-combined, and each of them with further fields behind. The format is recognised by content.
package accesslog

import (
	"fmt"
	"maps"
	"strings"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
)

// Config says how lines are to be read.
type Config struct {
	// Format is the format that the user names; empty: recognised by content. The formats are one
	// grammar, so that lines of a sibling are read all the same; Skips.Format tells what was found.
	Format string
}

// Formats lists the formats that are read, as a user writes them.
func Formats() []string { return []string{"common", "combined", "vhost_combined"} }

// CheckFormat refuses a format that is not read, by name and with those that are (TRF-004).
func CheckFormat(format string) error {
	for _, f := range Formats() {
		if format == "" || format == f {
			return nil
		}
	}
	what := fmt.Sprintf("the log format %q is not known", format)
	switch {
	case strings.Contains(format, "$"):
		what = "an NGINX log_format string is not read by this build"
	case strings.Contains(format, "%"):
		what = "an Apache LogFormat string is not read by this build"
	case isLater(format):
		what = fmt.Sprintf("the log format %s is not read by this build", format)
	}
	return fault.New(fault.TRF004, "%s; %s are", what, strings.Join(Formats(), ", "))
}

// isLater knows formats that Seatrial means to read and cannot yet.
func isLater(format string) bool {
	switch strings.ToLower(format) {
	case "json", "nginx", "caddy", "traefik", "envoy", "alb", "cloudfront", "cloudflare", "haproxy", "w3c", "iis",
		"linkerd", "uwsgi", "ingress", "ingress_nginx", "ingress-nginx":
		return true
	}
	return false
}

// Source is a traffic.Source over access-log lines.
type Source struct {
	lines   *input.Lines
	set     *input.Set
	event   traffic.Event
	input   string // name of the current input
	clock   clock
	skips   traffic.Skips
	noReq   int64
	seen    [len(formatNames)]bool
	shapes  shapes
	damaged map[string]int64
	err     error
	done    bool
}

// shapes counts unparsable lines by what they look like, to say so when nothing was parsed.
type shapes struct{ json, w3c int64 }

// New reads the inputs of set as access-log lines. A Format that is not known is Err's, before the
// first event.
func New(set *input.Set, config Config) *Source {
	s := &Source{set: set, damaged: make(map[string]int64)}
	if s.err = CheckFormat(config.Format); s.err != nil {
		s.done = true
		return s
	}
	s.lines = input.NewLines(set)
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
		}
		if s.take() {
			return true
		}
	}
	s.done = true
	s.skips.EndInput(s.input)
	if s.err = s.set.Err(); s.err == nil && s.skips.Parsed == 0 {
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
	r, form := s.parse(line)
	switch r {
	case isRequest:
		s.seen[form] = true
		s.skips.Parsed++
		return true
	case noRequest:
		s.seen[form] = true
		s.skips.Parsed++
		s.noReq++
		return false
	}
	switch first := firstByte(line); first {
	case 0:
		s.skips.Blank++
	case '#':
		s.skips.Comment++
		if strings.HasPrefix(string(line[:min(len(line), 8)]), "#Fields:") {
			s.shapes.w3c++
		}
	default:
		if first == '{' {
			s.shapes.json++
		}
		s.refuse(r.String())
	}
	return false
}

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
	if s.noReq > 0 {
		s.skips.Reasons["no usable request"] = s.noReq
	}
	s.skips.Notes = maps.Clone(s.damaged)
	var names []string
	for form, seen := range s.seen {
		if seen {
			names = append(names, formatNames[form])
		}
	}
	s.skips.Format = strings.Join(names, ",")
	return &s.skips
}

// nothing says why an input gave nothing.
func (s *Source) nothing() error {
	tried := strings.Join(Formats(), ", ")
	if s.skips.Unparsable+s.skips.Comment == 0 {
		return fault.New(fault.TRF002, "%s is empty: it holds no line", s.set).
			WithNext("Give the file that production wrote.")
	}
	err := fault.New(fault.TRF002, "not one of %d lines of %s could be parsed; the formats tried are %s",
		s.skips.Unparsable+s.skips.Comment, s.set, tried)
	switch {
	case s.shapes.json > 0:
		err.Next = "The lines look like JSON: for OTLP traces use the source `otel`; JSON access logs are not read by this build."
	case s.shapes.w3c > 0:
		err.Next = "The file looks like a W3C extended log, which is not read by this build; export it in one of these formats."
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
