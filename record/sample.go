// Package record keeps what happened: one fixed-memory shard per worker, merged at the end. Exact
// counters decide; histograms are for people. It is in the hot set: Add does not allocate.
package record

import "time"

// Outcome is how one intended arrival ended. Each arrival has exactly one.
type Outcome uint8

// The outcomes. Answered covers every complete and valid response, whatever its status. The classes
// from ConnectRefused to InvalidResponse are failures; the last four groups stand for themselves in
// the account.
const (
	Lost            Outcome = iota // never accounted for by a worker; the zero value on purpose
	Answered                       // complete, valid response
	ConnectRefused                 // the peer refused the connection
	ConnectFailed                  // no route, no address, name not found, other connect errors
	TLSFailed                      // handshake failed
	Reset                          // connection reset or broken before the response was complete
	EarlyClose                     // peer closed in the middle of a response
	InvalidResponse                // not HTTP, contradictory framing, bounds exceeded
	TimedOutConnect                // connect or TLS time-out
	TimedOutFirst                  // no first byte in time
	TimedOut                       // not complete within the request's time-out from its due time
	Abandoned                      // sent, and given up because the run was stopped
	UnsentLimit                    // never sent: waited for a connection (limit reached) until its time-out; an error, the user never got an answer
	UnsentRate                     // never sent: the target's max_rate; the generator's side, no error of the target
	UnsentStop                     // never sent: the run was stopped
	UnsentPolicy                   // never sent: the route policy forbade the concrete request
	NumOutcomes
)

// Sample is one ended arrival. All times are offsets from the run's epoch.
type Sample struct {
	Index     uint64
	Route     uint32
	Outcome   Outcome
	Status    uint16        // HTTP status, 0 when none
	Due       time.Duration // when the schedule said
	Sent      time.Duration // first byte written; 0 when nothing was written
	FirstByte time.Duration // first byte of the response; 0 when none
	Done      time.Duration // end of the response body, or the moment of failure
	Wait      time.Duration // time spent waiting for a connection: pool limit, connect, TLS
	Connect   time.Duration // TCP connect, 0 when a connection was reused
	TLS       time.Duration // TLS handshake, 0 when none
	BytesIn   uint64
	BytesOut  uint64
}

// Response is the response time: Done - Due. What users wait.
func (s *Sample) Response() time.Duration { return s.Done - s.Due }

// Service is the service time: Done - Sent.
func (s *Sample) Service() time.Duration { return s.Done - s.Sent }

// SendDelay is the generator's own error: from due to first byte written, less the wait for a
// connection, which is the target's doing or a declared limit and stays inside response time.
func (s *Sample) SendDelay() time.Duration { return max(0, s.Sent-s.Due-s.Wait) }
