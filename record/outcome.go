package record

// Outcome is how one intended arrival ended. Each arrival has exactly one.
type Outcome uint8

// The outcomes. Answered covers every complete and valid response, whatever its status. The classes
// from ConnectRefused to CheckFailed are failures; the last four groups stand for themselves in
// the account.
const (
	Lost            Outcome = iota // never accounted for by a worker; the zero value on purpose
	Unwatched                      // the generator stood still when its time-out came: whether it was answered in time is not known; lost to the account
	Answered                       // complete, valid response
	ConnectRefused                 // the peer refused the connection
	ConnectFailed                  // no route, no address, name not found, other connect errors
	TLSFailed                      // handshake failed
	Reset                          // connection reset or broken before the response was complete
	EarlyClose                     // peer closed in the middle of a response
	InvalidResponse                // not HTTP, contradictory framing, bounds exceeded
	StreamReset                    // HTTP/2 and 3: the peer gave this request up and kept the connection
	StreamRefused                  // HTTP/2 and 3: the peer refused the request before it looked at it
	WentAway                       // HTTP/2 and 3: the peer said goodbye before it took the request, on one connection after the other
	CheckFailed                    // complete and valid, and not what the request expected
	TimedOutConnect                // connect or TLS time-out
	TimedOutFirst                  // no first byte in time
	TimedOut                       // not complete within the request's time-out from its due time
	Abandoned                      // sent, and given up because the run was stopped
	UnsentLimit                    // never sent: waited for a connection (limit reached) until its time-out; an error, the user never got an answer
	UnsentRate                     // never sent: the target's max_rate; the generator's side, no error of the target
	UnsentStop                     // never sent: the run was stopped
	UnsentPolicy                   // never sent: the route policy forbade the concrete request
	UnsentLate                     // never sent: the generator came to it too late; its own fault, no error of the target
	NumOutcomes
)

// String gives the stable word that files use.
func (o Outcome) String() string {
	switch o {
	case Lost:
		return "lost"
	case Unwatched:
		return "unwatched"
	case Answered:
		return "answered"
	case ConnectRefused:
		return "connect_refused"
	case ConnectFailed:
		return "connect_failed"
	case TLSFailed:
		return "tls_failed"
	case Reset:
		return "reset"
	case EarlyClose:
		return "early_close"
	case InvalidResponse:
		return "invalid_response"
	case StreamReset:
		return "stream_reset"
	case StreamRefused:
		return "stream_refused"
	case WentAway:
		return "went_away"
	case CheckFailed:
		return "check_failed"
	case TimedOutConnect:
		return "timeout_connect"
	case TimedOutFirst:
		return "timeout_first_byte"
	case TimedOut:
		return "timeout"
	case Abandoned:
		return "abandoned"
	case UnsentLimit:
		return "unsent_limit"
	case UnsentRate:
		return "unsent_max_rate"
	case UnsentStop:
		return "unsent_stop"
	case UnsentPolicy:
		return "unsent_policy"
	case UnsentLate:
		return "unsent_late"
	default:
		return "unknown"
	}
}

// Words gives the outcome in words for people.
func (o Outcome) Words() string {
	switch o {
	case Lost:
		return "lost by a worker"
	case Unwatched:
		return "not seen through: the generator stood still"
	case Answered:
		return "answered"
	case ConnectRefused:
		return "connection refused"
	case ConnectFailed:
		return "could not connect"
	case TLSFailed:
		return "TLS handshake failed"
	case Reset:
		return "connection reset"
	case EarlyClose:
		return "closed in the middle of a response"
	case InvalidResponse:
		return "invalid response"
	case StreamReset:
		return "stream reset by the peer"
	case StreamRefused:
		return "stream refused by the peer"
	case WentAway:
		return "connection closed by the peer before it took the request"
	case CheckFailed:
		return "not what was expected"
	case TimedOutConnect:
		return "timed out while connecting"
	case TimedOutFirst:
		return "timed out before the first byte"
	case TimedOut:
		return "timed out"
	case Abandoned:
		return "abandoned at the stop"
	case UnsentLimit:
		return "not sent: no connection within the time-out"
	case UnsentRate:
		return "not sent: max_rate of the target"
	case UnsentStop:
		return "not sent: the run was stopped"
	case UnsentPolicy:
		return "not sent: forbidden by the route policy"
	case UnsentLate:
		return "not sent: the generator was too late"
	default:
		return "unknown"
	}
}

// Failed tells whether the arrival failed other than by a time-out.
func (o Outcome) Failed() bool { return o >= ConnectRefused && o <= CheckFailed }

// TimedOut tells whether a time-out ended the arrival after its sending had begun.
func (o Outcome) TimedOut() bool { return o >= TimedOutConnect && o <= TimedOut }

// Unsent tells whether the arrival was held back and never sent.
func (o Outcome) Unsent() bool { return o >= UnsentLimit && o < NumOutcomes }

// Sent tells whether the arrival was taken to the target: answered, failed, timed out or abandoned.
func (o Outcome) Sent() bool { return o >= Answered && o <= Abandoned }

// Error tells whether the outcome is an error of its own, whatever the status: every failure, every
// time-out, and an arrival that got no connection within its time-out. A stop, a declared rate limit,
// a forbidden request and a late generator say nothing about the target and are no errors.
func (o Outcome) Error() bool { return o.Failed() || o.TimedOut() || o == UnsentLimit }

// Response tells whether the outcome counts for the error rate: it is an answer or an error.
func (o Outcome) Response() bool { return o == Answered || o.Error() }

// Timed tells whether the outcome enters the response time. Answers do, and failures of a connection
// that was there (reset, early close, invalid response, a stream given up, a check that failed). Time-outs do with their full time, and so
// does an arrival that waited for a connection until its time-out: leaving out those who waited
// longest would flatter the percentiles. Refused and failed connections and failed handshakes do not:
// they end at once, and a dead server would look fast. They count as errors.
func (o Outcome) Timed() bool {
	switch o {
	case Answered, Reset, EarlyClose, InvalidResponse, StreamReset, StreamRefused, WentAway, CheckFailed, UnsentLimit:
		return true
	default:
		return o.TimedOut()
	}
}
