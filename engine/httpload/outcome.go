package httpload

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"seatrial/record"
)

// lack is what this machine lacked for a connection. It is counted, so that it is not held against the
// target.
type lack uint8

const (
	lacksNothing lack = iota
	lacksDescriptors
	lacksPorts
)

// connectOutcome classifies a connect that failed.
func connectOutcome(err error) (record.Outcome, lack) {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return record.ConnectRefused, lacksNothing
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return record.ConnectFailed, lacksDescriptors
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return record.ConnectFailed, lacksPorts
	case errors.Is(err, syscall.EAGAIN): // a Unix socket's backlog is full; the error calls itself a time-out
		return record.ConnectFailed, lacksNothing
	case isTimeout(err):
		return record.TimedOutConnect, lacksNothing
	default:
		return record.ConnectFailed, lacksNothing
	}
}

// brokenOutcome tells what the end of a connection, other than by a time-out, means for the request
// on its way: some says that a part of the answer had arrived, unwritten that the request was not
// taken whole.
func brokenOutcome(err error, some, unwritten bool) record.Outcome {
	var remote *net.OpError
	var header tls.RecordHeaderError
	switch {
	case !some && errors.As(err, &remote) && remote.Op == "remote error": // an alert; in TLS 1.3 a refused client certificate shows after the handshake
		return record.TLSFailed
	case unwritten && some:
		return record.EarlyClose
	case unwritten:
		return record.Reset
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if some {
			return record.EarlyClose
		}
		return record.Reset
	case errors.As(err, &header):
		return record.InvalidResponse
	default:
		return record.Reset
	}
}

// noticed is how late an engine may notice a time-out and still hold it against the target. Later than
// that, the generator stood still, and whether the answer was there in time is not known.
const noticed = 10 * time.Millisecond

// missed gives the outcome of a request whose time-out came at an offset and was noticed at now: o, or
// unseen when the generator was too late to tell.
func missed(o, unseen record.Outcome, at, now time.Duration) record.Outcome {
	if now-at > noticed {
		return unseen
	}
	return o
}

// late tells whether an arrival that found no connection within its time-out owes that to the generator:
// it was released when most of the time was over, or its end was noticed late.
func (w *waiting) late(timeout, now time.Duration) bool {
	own := max(0, w.since-w.Due) + w.held
	return own > noticed && own >= timeout/2 || now-w.Due-timeout > noticed
}

// unmet is the sample of an arrival that found no connection within its time-out.
func unmet(w waiting, route uint32, timeout, now time.Duration) record.Sample {
	done := w.Due + timeout
	s := record.Sample{Index: w.Index, Route: route, Outcome: record.UnsentLimit, Due: w.Due, Done: done, Wait: max(0, done-w.since)}
	if w.late(timeout, now) {
		s.Outcome, s.Done, s.Wait = record.UnsentLate, max(now, done), 0
	}
	return s
}

// expired sets when a request that timed out was over, however late that was noticed. A first byte that
// came behind it came too late to count.
func expired(s *record.Sample, timeout time.Duration) {
	s.Done = max(s.Sent, s.Due+timeout)
	if s.FirstByte > s.Done {
		s.FirstByte = 0
	}
}
