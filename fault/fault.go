// Package fault holds every failure that a user can meet: a stable code, one sentence that names
// the thing at fault, and one next step. It imports nothing of the project.
package fault

import (
	"errors"
	"fmt"
)

// Code is a stable identifier of the form FAM-NNN. Codes are never reused for another meaning.
type Code string

// Kind groups codes by what they mean for the caller. Package cli alone turns a Kind into an exit
// number.
type Kind uint8

// The kinds, in the order in which spec words them.
const (
	Internal   Kind = iota // a defect of Seatrial itself
	Usage                  // wrong flags or arguments
	Manifest               // the manifest is invalid
	Dependency             // an environment, tool, profile or file that is needed is not there or stale
	Refused                // refused for safety
	Check                  // a declared check was measured and did not hold
	Unproved               // blocked or unverified: nothing was proved
	Cancelled              // cancelled, or past its deadline
	Leftover               // tear-down left something behind
)

// Entry is one row of the catalogue.
type Entry struct {
	Code  Code
	Kind  Kind
	Title string // what the code says, without the particulars
	Why   string // what it means and how one comes to see it, for `explain CODE` and docs/errors.md
	Next  string // the default next step, one sentence
}

// Error is a failure for people. Message is one sentence and names the thing at fault; Next says
// what to do. It wraps a cause, which is shown only with -v.
type Error struct {
	Code    Code
	Message string
	Next    string
	Detail  string // optional further lines: a source excerpt, a list, log lines
	Cause   error
}

// New makes an Error of a code of the catalogue. It panics for a code that the catalogue lacks:
// that is a defect which the package's tests find first.
func New(code Code, format string, args ...any) *Error {
	e, ok := Lookup(code)
	if !ok {
		panic("fault: code " + string(code) + " is not in the catalogue")
	}
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Next: e.Next}
}

// WithNext replaces the default next step.
func (e *Error) WithNext(format string, args ...any) *Error {
	e.Next = fmt.Sprintf(format, args...)
	return e
}

// WithDetail adds lines that are printed below the sentence, unchanged.
func (e *Error) WithDetail(detail string) *Error {
	e.Detail = detail
	return e
}

// Because records the underlying cause.
func (e *Error) Because(cause error) *Error {
	e.Cause = cause
	return e
}

// Error gives the code and the sentence on one line.
func (e *Error) Error() string { return string(e.Code) + " " + e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Kind gives the kind of the error's code.
func (e *Error) Kind() Kind {
	entry, _ := Lookup(e.Code)
	return entry.Kind
}

// As finds the first *Error in err's tree.
func As(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// List is several problems found at once; a reader is told all of them.
type List []*Error

// Error joins the sentences.
func (l List) Error() string {
	s := ""
	for i, e := range l {
		if i > 0 {
			s += "\n"
		}
		s += e.Error()
	}
	return s
}

// Unwrap lets errors.Is and errors.As see each problem.
func (l List) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// Lookup finds a code in the catalogue.
func Lookup(code Code) (Entry, bool) {
	for _, e := range catalogue {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}

// Catalogue returns a copy of all entries, in code order.
func Catalogue() []Entry { return append([]Entry(nil), catalogue[:]...) }
