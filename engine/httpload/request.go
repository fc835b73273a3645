// Package httpload sends HTTP requests when they are due and classifies what comes back.
package httpload

import "seatrial/engine/httpload/http2"

// Request is one concrete request. The driver owns it and reuses it.
type Request struct {
	Route  uint32
	Method string
	Target []byte // request-target, escaped, e.g. /orders/42
	Refuse bool   // the route policy forbids this concrete request: count it UnsentPolicy, write nothing

	Fields []Field // besides those of the run
	Body   []byte
	Expect *Expect // what the answer must be; nil asks nothing of it
}

// Field is one header field of a single request. Its name is sent in lower case by HTTP/2 and 3.
type Field = http2.Field

// Requests gives request number i: a pure function of (seed, plan, i). At fills r and must not
// allocate once r's buffers have grown. It is called from several goroutines at once. It may set
// Fields, Body and Expect to what it keeps itself, which nobody changes.
type Requests interface {
	At(i uint64, r *Request)
}

// Header is one header line that every request carries.
type Header struct{ Name, Value string }
