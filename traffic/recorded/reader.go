package recorded

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
)

// step is what one step of a decoder came to.
type step uint8

const (
	ended  step = iota // the inputs are read
	passed             // nothing to give; it is counted already
	found              // the reader's req is a request, to be checked
)

// reader is what all the sources share: the account, the current request and its memory.
type reader struct {
	set    *input.Set
	decode func() step
	req    Request
	texts  []byte // the texts of req
	names  names
	skips  traffic.Skips
	format string
	reason map[string]int64
	notes  map[string]int64
	name   string // of the current input
	done   bool
	err    error
}

func newReader(set *input.Set, format string) reader {
	return reader{set: set, format: format, reason: map[string]int64{}, notes: map[string]int64{}, names: names{}}
}

// Scan implements Source.
func (r *reader) Scan() bool {
	for !r.done {
		switch r.decode() {
		case ended:
			r.finish()
		case found:
			refused, unfit := r.check()
			switch {
			case refused != "":
				r.refuse(r.req.Line, refused)
			case unfit != "":
				r.skips.Parsed++
				r.unfit(unfit)
			default:
				r.skips.Parsed++
				return true
			}
		}
	}
	return false
}

// finish closes the account.
func (r *reader) finish() {
	r.done = true
	r.skips.EndInput(r.name)
	if r.err == nil {
		r.err = r.set.Err()
	}
	if r.err == nil && r.skips.Parsed == 0 {
		r.err = r.nothing()
	}
}

// enter closes the account of one input and opens that of the next.
func (r *reader) enter(name string) {
	r.skips.EndInput(r.name)
	r.name = name
}

// reset makes an empty request that stands at line.
func (r *reader) reset(line int64) {
	q := &r.req
	*q = Request{Header: q.Header[:0], Line: line}
	r.texts = r.texts[:0]
}

// Request implements Source.
func (r *reader) Request() *Request { return &r.req }

// Err implements Source. Inputs in which nothing at all could be parsed are an error, TRF-002.
func (r *reader) Err() error { return r.err }

// Skipped implements Source.
func (r *reader) Skipped() *traffic.Skips {
	r.skips.Format = r.format
	r.skips.Read = r.skips.Parsed + r.skips.Unparsable
	r.skips.Reasons = maps.Clone(r.reason)
	r.skips.Notes = maps.Clone(r.notes)
	return &r.skips
}

// note counts something that is worth telling.
func (r *reader) note(what string) { r.notes[what]++ }

// maxReasons bounds the reasons and notes that name what a file holds.
const maxReasons = 32

// unfit counts a sound record that is no request to send.
func (r *reader) unfit(why string) {
	if _, known := r.reason[why]; !known && len(r.reason) >= maxReasons {
		why = "other"
	}
	r.reason[why]++
}

// refuse counts a record that could not be read.
func (r *reader) refuse(line int64, why string) {
	r.skips.Unparsable++
	if len(r.skips.First) < traffic.MaxFirst {
		r.skips.First = append(r.skips.First, traffic.Skip{Input: r.name, Line: line, Reason: why})
	}
}

// nothing says why the inputs gave nothing.
func (r *reader) nothing() error {
	if r.skips.Unparsable == 0 {
		return fault.New(fault.TRF002, "%s holds no request", r.set).WithNext("Give the file that was recorded.")
	}
	var detail strings.Builder
	for _, f := range r.skips.First {
		fmt.Fprintf(&detail, "%s:%d: %s\n", f.Input, f.Line, f.Reason)
	}
	return fault.New(fault.TRF002, "not one of %d records of %s could be read as %s", r.skips.Unparsable, r.set, r.format).
		WithNext("Name another format with --format: %s.", strings.Join(Formats(), ", ")).WithDetail(detail.String())
}

// keep copies b into the request's memory.
func (r *reader) keep(b []byte) []byte {
	from := len(r.texts)
	r.texts = append(r.texts, b...)
	return r.texts[from:len(r.texts):len(r.texts)]
}

// text reads a JSON string into the request's memory.
func (r *reader) text(v []byte) ([]byte, string) {
	from := len(r.texts)
	var why string
	r.texts, why = unquote(r.texts, v)
	return r.texts[from:len(r.texts):len(r.texts)], why
}

// base64 reads a JSON string that holds base64 into the request's memory.
func (r *reader) base64(v []byte) ([]byte, string) {
	const bad = "body is not base64"
	if !isText(v) {
		return nil, bad
	}
	b, why := r.text(v)
	if why != "" {
		return nil, bad
	}
	n, err := base64.StdEncoding.Decode(b, b) // it never writes past what it has read
	if err != nil {
		return nil, bad
	}
	return b[:n], ""
}

// field adds one header field.
func (r *reader) field(name, value []byte) {
	r.req.Header = append(r.req.Header, Field{r.names.get(trim(name)), r.names.get(trim(value))})
}

// trim removes the white space that is no part of a field's name or value.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// when reads a time of RFC 3339 into the request; it tells what is wrong with it.
func (r *reader) when(v []byte) string {
	const bad = "a time that is not RFC 3339"
	if !isText(v) || len(v) > 64 {
		return bad
	}
	var at time.Time
	if err := at.UnmarshalText(v[1 : len(v)-1]); err != nil {
		return bad
	}
	if at.Year() < 1678 || at.Year() > 2261 || at.UnixNano() == 0 {
		return "a time that is out of range"
	}
	r.req.UnixNano = at.UnixNano()
	return ""
}

// names gives the same string for the same bytes: the names of header fields, and most of their values,
// come again and again.
type names map[string]string

const (
	maxNames = 2048
	maxName  = 256 // bytes; longer ones are not kept
)

func (n names) get(b []byte) string {
	if len(b) > maxName {
		return string(b)
	}
	if s, ok := n[string(b)]; ok {
		return s
	}
	if len(n) >= maxNames {
		clear(n)
	}
	s := string(b)
	n[s] = s
	return s
}
