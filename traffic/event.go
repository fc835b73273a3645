// Package traffic turns what production served into a profile: routes with weights, an arrival
// rate, baselines. It decides which requests may be sent at all, and which route request number i
// takes. It keeps no identifier longer than a run needs it.
package traffic

import "time"

// Event is one request that production answered. Its slices belong to the Source and are valid
// until the next Scan.
type Event struct {
	UnixNano     int64         // start of the request; 0 when the source has no readable time
	Method       []byte        // upper case, e.g. GET
	Path         []byte        // as recorded, without scheme, authority, query and fragment; not decoded; nil when unknown
	Route        []byte        // the template that the source itself declares (http.route); nil when none
	Status       int           // 0 when the source has none
	Duration     time.Duration // negative when unknown
	RequestSize  int64         // bytes; negative when unknown
	ResponseSize int64         // bytes; negative when unknown

	// What follows is given only by a source that was asked for it, for a replay; a profile has no use
	// for it and must not come near it (TR-20).

	Query  []byte // of the target, as recorded, without the question mark; nil when none
	Client []byte // what tells clients apart: an address as a rule; nil when unknown. It is hashed at once and never written
}

// OwnReason is the key of Skips.Reasons under which a source counts requests that Seatrial itself sent:
// they are no traffic of production's.
const OwnReason = "sent by Seatrial"

// IsOwn tells by its User-Agent whether a request was sent by Seatrial.
func IsOwn(agent []byte) bool {
	const own = "seatrial/"
	return len(agent) >= len(own) && string(agent[:len(own)]) == own
}

// Source yields events from one or more inputs in constant memory.
type Source interface {
	// Scan advances to the next event; false at the end or on an error that Err then gives.
	Scan() bool
	// Event is the current event, valid until the next Scan.
	Event() *Event
	// Skipped tells what was read and did not become an event. It may be called at any time.
	Skipped() *Skips
	// Err is the first error that ended reading; unparsable records are not errors.
	Err() error
}

// Skips counts what a source read, and what of it did not become an event, by reason.
type Skips struct {
	Format     string           `json:"format"`                    // what the input was recognised as, e.g. "combined"; comma-separated when several
	Recognised []Recognised     `json:"recognised,omitempty"`      // the formats that were found, for people, with how many lines and by what
	Read       int64            `json:"read"`                      // lines or documents that were not blank or comments
	Parsed     int64            `json:"parsed"`                    // of those, well-formed
	Unparsable int64            `json:"unparsable"`                // of those, not well-formed; Read = Parsed + Unparsable
	Blank      int64            `json:"blank"`                     // blank lines
	Comment    int64            `json:"comment"`                   // comment lines
	Reasons    map[string]int64 `json:"reasons,omitempty"`         // well-formed records that are no sendable request, by reason: "no usable request", "client span", "not HTTP (rpc)", ...
	First      []Skip           `json:"first,omitempty"`           // the first few unparsable records
	Notes      map[string]int64 `json:"notes,omitempty"`           // what else is worth telling, counted: records of other signals, events without a duration, damaged files; such a record may be an event all the same
	Bad        []BadFile        `json:"bad_files,omitempty"`       // the first few inputs of which too much did not parse
	BadFiles   int64            `json:"bad_files_count,omitempty"` // how many such inputs there are
	ended      BadFile          // the sums at the end of the last input
}

// Recognised is a format that an input was found to have.
type Recognised struct {
	Format string `json:"format"` // for people, e.g. "nginx JSON"
	Lines  int64  `json:"lines"`
	Why    string `json:"why"` // by what it was recognised
}

// Skip names an unparsable record by where it is and why, never by what it holds.
type Skip struct {
	Input  string `json:"input"` // base name of the file, "-" for standard input
	Line   int64  `json:"line"`  // line number, or document number for JSON documents
	Reason string `json:"reason"`
}

// MaxFirst is how many unparsable records Skips.First keeps.
const MaxFirst = 10
