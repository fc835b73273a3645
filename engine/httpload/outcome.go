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
	case unwritten && some:
		return record.EarlyClose
	case unwritten:
		return record.Reset
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		if some {
			return record.EarlyClose
		}
		return record.Reset
	case !some && errors.As(err, &remote) && remote.Op == "remote error": // an alert; in TLS 1.3 a refused client certificate shows after the handshake
		return record.TLSFailed
	case errors.As(err, &header):
		return record.InvalidResponse
	default:
		return record.Reset
	}
}

// expired sets when a request that timed out was over, however late that was noticed. A first byte that
// came behind it came too late to count.
func expired(s *record.Sample, timeout time.Duration) {
	s.Done = max(s.Sent, s.Due+timeout)
	if s.FirstByte > s.Done {
		s.FirstByte = 0
	}
}
