// Package recorded reads requests that were recorded one by one, to be sent again at their times: its
// own JSON Lines, which are ripley's, and what other tools write.
package recorded

import "seatrial/traffic"

// Request is one recorded request. Its slices belong to the Source and are valid until the next Scan.
type Request struct {
	UnixNano int64   // when it was sent or received; 0 when the source has no time
	Method   []byte  // upper case, e.g. GET
	URL      []byte  // as recorded: absolute, or a path that may have a query
	Header   []Field // in order, as recorded
	Body     []byte  // nil when none was recorded
	Client   []byte  // what tells clients apart; nil when unknown. It is hashed at once and never written
	Line     int64   // where it stands in its input: the line, or the number of the record
}

// Field is one header field.
type Field struct{ Name, Value string }

// Source yields recorded requests in the order of its inputs, in constant memory. Times may be out of
// order.
type Source interface {
	// Scan advances to the next request; false at the end or on an error that Err then gives.
	Scan() bool
	// Request is the current request, valid until the next Scan.
	Request() *Request
	// Skipped tells what was read and did not become a request. It may be called at any time.
	Skipped() *traffic.Skips
	// Err is the first error that ended reading; unparsable records are not errors.
	Err() error
}
