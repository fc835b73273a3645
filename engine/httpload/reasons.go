package httpload

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"unicode"

	"seatrial/record"
)

// Reasons counts in words why connections did not come about and answers did not arrive whole. They are
// few and short, whatever a peer does.
type Reasons map[string]uint64

const (
	maxReasons = 16
	maxReason  = 200 // runes
)

// OtherReasons is where reasons are counted that are one kind too many.
const OtherReasons = "other reasons"

// What an engine was doing when something failed.
const (
	connecting = "connecting"
	shaking    = "TLS handshake"
	answering  = "answer"
)

var (
	errSpokeFirst = errors.New("the target spoke before it was asked")
	errNotAgreed  = errors.New("the target did not agree on the version of HTTP that is demanded")
	errTooLong    = errors.New("it took longer than its time-out")
)

// note counts a failure.
func (r *Reasons) note(doing string, err error) { r.add(doing+": "+words(err), 1) }

func (r *Reasons) add(text string, n uint64) {
	if *r == nil {
		*r = Reasons{}
	}
	named := len(*r)
	if (*r)[OtherReasons] > 0 {
		named--
	}
	if _, known := (*r)[text]; !known && named >= maxReasons {
		text = OtherReasons
	}
	(*r)[text] += n
}

// broke counts an answer that the end of its connection cut off or kept from coming.
func (r *Reasons) broke(o record.Outcome, err error) {
	if o.Error() && !nothingNow(err) {
		r.note(answering, err)
	}
}

// Merge adds the reasons of another slice.
func (r *Reasons) Merge(o Reasons) {
	for text, n := range o {
		r.add(text, n)
	}
}

// words says what went wrong, without what differs from connection to connection.
func words(err error) string {
	text := ""
	var expired x509.CertificateInvalidError
	var op *net.OpError
	var call *os.SyscallError
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		text = "the target closed the connection"
	case errors.As(err, &expired) && expired.Reason == x509.Expired: // its text holds the time of day
		text = fmt.Sprintf("the certificate is valid from %s to %s", expired.Cert.NotBefore.UTC().Format("2006-01-02"), expired.Cert.NotAfter.UTC().Format("2006-01-02"))
	case isTimeout(err):
		text = errTooLong.Error()
	case errors.As(err, &op) && op.Op == "remote error":
		text = "the target's alert: " + op.Err.Error()
	case errors.As(err, &call):
		text = call.Err.Error()
	case op != nil: // its text holds addresses
		text = op.Err.Error()
	default:
		text = strings.TrimPrefix(err.Error(), "httpload: ")
	}
	return short(text)
}

// short keeps a text that a peer may have a hand in to one harmless line.
func short(text string) string {
	runes := []rune(strings.ToValidUTF8(text, "?"))
	if len(runes) > maxReason {
		runes = append(runes[:maxReason], '…')
	}
	for i, c := range runes {
		if !unicode.IsPrint(c) {
			runes[i] = '?'
		}
	}
	return string(runes)
}
