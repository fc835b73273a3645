package httpload

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/record"
)

// maxUnread bounds what is kept of a peer that sends during the handshake faster than it is read.
const maxUnread = 1 << 20

var (
	errGone  = errors.New("httpload: the connection was given up")
	errFlood = errors.New("httpload: too much was sent during the handshake")
)

// link is the net.Conn below a tls.Conn. During the handshake, which crypto/tls cannot interrupt and
// resume, a goroutine runs it and the loop feeds it; afterwards the loop alone reads and writes, and a
// read with nothing there says so (EG-3).
type link struct {
	conn *tls.Conn
	fd   int

	mu     sync.Mutex // during the handshake: everything below
	some   sync.Cond
	in     []byte // read and not yet taken
	inErr  error  // behind in
	waits  bool   // the handshake waits for an answer: all that it wrote is to go out
	out    []byte // given and not yet written
	outErr error
	shaken bool // the loop has taken over; no lock is needed any more

	over bool // the peer has closed, so that there is an end to be found
	cut  bool // the end came without the peer saying so in TLS: somebody may have cut the rest off
	dry  bool // the last read took all there was: the next one would give nothing
}

// handshake is one that has ended.
type handshake struct {
	c          *loopConn
	generation int32
	err        error
}

// startHandshake runs the handshake beside the loop.
func (l *loop) startHandshake(c *loopConn, spoke bool, now time.Duration) {
	k := &link{fd: c.fd}
	k.some.L = &k.mu
	k.conn = tls.Client(k, l.tls.config(uint64(c.generation)))
	c.link, c.state = k, loopShaking
	if l.cfg.Limits.TLS < l.cfg.Limits.Timeout {
		l.shake.add(&c.first.stage, now+l.cfg.Limits.TLS)
	}
	h := &handshake{c: c, generation: c.generation}
	l.shaking.Go(func() {
		if h.err = k.conn.Handshake(); h.err != nil {
			k.lastWords()
		}
		l.mu.Lock()
		l.shaken = append(l.shaken, h)
		first := len(l.shaken) == 1
		l.mu.Unlock()
		if first { // otherwise the loop is about to look
			l.poll.Wake()
		}
	})
	if spoke { // before its events were meant for the handshake
		k.arrived(l.buf, true)
	}
}

// takeOver goes on with connections whose handshake has ended.
func (l *loop) takeOver() {
	l.mu.Lock()
	ended := l.shaken
	l.shaken = nil
	l.mu.Unlock()
	for _, h := range ended {
		c := h.c
		if c.state != loopShaking {
			continue // given up meanwhile
		}
		now := l.epoch.Now()
		if h.err != nil {
			l.failed(c, record.TLSFailed, now)
			continue
		}
		c.shook = max(1, now-c.began-c.connect)
		c.link.shaken = true
		state := c.link.conn.ConnectionState()
		two, ok := l.cfg.HTTP.agreed(&state)
		if !ok {
			l.failed(c, record.TLSFailed, now)
			continue
		}
		l.result.shook(&state)
		l.established(c, two)
		if c.state != loopClosed && c.state != loopBusy {
			c.link.flush() // no request takes the last words of the handshake along
		}
		if c.state != loopClosed && (len(c.link.in) > 0 || c.link.inErr != nil) {
			l.read(c, c.link.inErr != nil) // no event will tell of what was read already
		}
	}
}

// arrived takes what came during the handshake to the goroutine that runs it. over says that there is
// an end behind it.
func (k *link) arrived(buf []byte, over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waits {
		k.flush()
	}
	for k.inErr == nil {
		n, err := receive(k.fd, buf)
		k.in = append(k.in, buf[:n]...)
		if err == errAgain || err == nil && n < len(buf) && !over { //nolint:errorlint // our own, never wrapped
			break
		}
		if len(k.in) > maxUnread {
			err = errFlood
		}
		k.inErr = err
	}
	k.some.Broadcast()
}

// lastWords sends what tells the peer why a handshake has failed.
func (k *link) lastWords() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
}

// fail ends a handshake that is given up. The descriptor is not touched afterwards.
func (k *link) fail() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inErr, k.outErr, k.in = errGone, errGone, nil
	k.some.Broadcast()
}

// Read implements net.Conn.
func (k *link) Read(p []byte) (int, error) {
	if !k.shaken {
		k.mu.Lock()
		defer k.mu.Unlock()
		for len(k.in) == 0 && k.inErr == nil {
			k.waits = true
			k.flush()
			k.some.Wait()
		}
		k.waits = false
	}
	if n := copy(p, k.in); n > 0 {
		if k.in = k.in[n:]; len(k.in) == 0 {
			k.in = nil
		}
		return n, nil
	}
	if k.inErr != nil {
		k.cut = true
		return 0, k.inErr
	}
	if k.dry {
		return 0, errAgain
	}
	n, err := receive(k.fd, p)
	k.dry = err == nil && n < len(p) && !k.over
	k.cut = k.cut || err == io.EOF //nolint:errorlint // our own, never wrapped
	return n, err
}

// Write implements net.Conn. It takes everything: a failed write would end the tls.Conn for good. In the
// handshake, what is written goes out when an answer is waited for, and its last words with the first
// request.
func (k *link) Write(p []byte) (int, error) {
	if !k.shaken {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.out = append(k.out, p...)
		return len(p), nil
	}
	k.out = append(k.out, p...)
	k.flush()
	return len(p), nil
}

// flush writes what the peer takes.
func (k *link) flush() {
	for len(k.out) > 0 && k.outErr == nil {
		n, e := writeRaw(k.fd, k.out)
		switch e {
		case 0:
			k.out = k.out[:copy(k.out, k.out[n:])]
		case unix.EINTR:
		case unix.EAGAIN:
			return
		default:
			k.outErr = e
		}
	}
}

// send encrypts the request if that was not done, and writes; false when the peer takes no more.
func (k *link) send(c *loopConn) bool {
	if c.written < len(c.out) {
		c.written = len(c.out)
		if _, err := k.conn.Write(c.out); err != nil {
			return false
		}
	}
	k.flush()
	return k.outErr == nil
}

// The rest of net.Conn. Closing and deadlines are the loop's.

// Close implements net.Conn.
func (k *link) Close() error { return nil }

// LocalAddr implements net.Conn.
func (k *link) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (k *link) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (k *link) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (k *link) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (k *link) SetWriteDeadline(time.Time) error { return nil }

var _ io.ReadWriter = (*link)(nil)
