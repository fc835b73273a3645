// Package record keeps what happened: one fixed-memory shard per worker, merged at the end. Exact
// counters decide; histograms are for people. It is in the hot set: Add does not allocate.
package record

import "time"

// Sample is one ended arrival. All times are offsets from the run's epoch.
type Sample struct {
	Index     uint64
	Route     uint32
	Outcome   Outcome
	Status    uint16        // HTTP status, 0 when none
	Expected  bool          // the status is one that the request names as right: no error, whatever its class
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

// Written tells whether the first byte of the request went out.
func (s *Sample) Written() bool { return s.Sent > 0 || s.Outcome == Answered }

// Error tells whether the sample counts as an error: by its outcome, or by a status of 500 or above.
func (s *Sample) Error() bool {
	return s.Outcome.Error() || (s.Outcome == Answered && s.Status >= 500 && !s.Expected)
}

// StatusClasses is the length of the Status arrays: 1 to 5 are the classes, 0 is anything outside 100 to
// 599, and 6 is an answer of 400 or above that the request names as right.
const StatusClasses = 7

func (s *Sample) statusClass() int {
	if s.Expected && s.Status >= 400 {
		return StatusClasses - 1
	}
	if c := int(s.Status) / 100; c <= 5 {
		return c
	}
	return 0
}
