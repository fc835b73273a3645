package httpload

import (
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"iter"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"seatrial/record"
)

// errGone says that a connection was given up in its handshake.
var errGone = errors.New("httpload: the connection was given up")

// link is the net.Conn below a tls.Conn. A read with nothing there says so (EG-3); in the handshake,
// which crypto/tls cannot interrupt and resume, it waits: the handshake is a coroutine on the loop's own
// thread, which is left there and entered again when something has happened. Handing it to another
// thread and back would cost a quarter of the handshake.
type link struct {
	conn *tls.Conn
	fd   int

	shaker *shaker       // runs the handshake; nil when it has ended or not begun
	queued bool          // it can go on, and is to
	since  time.Duration // it can
	gone   bool          // it was given up

	out    []byte // given and not yet written
	outErr error

	over bool // the peer has closed, so that there is an end to be found
	cut  bool // the end came without the peer saying so in TLS: somebody may have cut the rest off
	dry  bool // the last read took all there was: the next one would give nothing
}

// shaker is a coroutine that runs handshakes, one after the other: its stack has grown already.
type shaker struct {
	link  *link
	err   error               // of the last handshake
	next  func() (bool, bool) // goes on; true when the handshake has ended
	stop  func()
	yield func(ended bool) bool
}

func newShaker() *shaker {
	s := &shaker{}
	s.next, s.stop = iter.Pull(func(yield func(bool) bool) {
		s.yield = yield
		for {
			s.err = s.link.conn.Handshake()
			if !yield(true) {
				return
			}
		}
	})
	return s
}

// wait leaves the handshake until something has happened; false when the connection was given up.
func (s *shaker) wait() bool { return s.yield(false) && !s.link.gone }

// startHandshake has the handshake begun.
func (l *loop) startHandshake(c *loopConn, spoke bool, now time.Duration) {
	k := &link{fd: c.fd, over: spoke} // what came before has no event any more
	k.conn = tls.Client(k, l.tls.config(uint64(c.generation)))
	c.link, c.state = k, loopShaking
	if l.cfg.Limits.TLS < l.cfg.Limits.Timeout {
		l.shake.add(&c.first.stage, now+l.cfg.Limits.TLS)
	}
	l.goesOn(c, now)
}

// goesOn queues a handshake in which something has happened.
func (l *loop) goesOn(c *loopConn, now time.Duration) {
	if k := c.link; !k.queued {
		k.queued, k.since = true, now
		l.shaking = append(l.shaking, handshake{c, c.generation})
	}
}

// handshake is a connection as it was when its handshake was queued.
type handshake struct {
	c          *loopConn
	generation int32
}

// shakeOne takes one handshake as far as it goes, which may be a tenth of a millisecond's work: between
// two of them the loop looks at what is due and what has come. The time that one stood ready is the
// generator's and not the target's.
func (l *loop) shakeOne() {
	for len(l.shaking) > 0 {
		h := l.shaking[0]
		if l.shaking = l.shaking[1:]; len(l.shaking) == 0 {
			l.shaking = nil
		}
		if c := h.c; c.generation == h.generation && c.state == loopShaking {
			l.shakes(c)
			return
		}
	}
}

func (l *loop) shakes(c *loopConn) {
	k := c.link
	k.queued = false
	c.given.held += max(0, l.epoch.Now()-k.since)
	if k.shaker == nil {
		k.shaker = l.shaker()
		k.shaker.link = k
	}
	l.stepping = c
	ended, _ := k.shaker.next()
	l.stepping = nil
	if !ended {
		return
	}
	err := k.shaker.err
	l.shakers, k.shaker = append(l.shakers, k.shaker), nil
	k.flush() // no request takes the last words of the handshake along, or those that say why it failed
	l.shook(c, err)
}

func (l *loop) shaker() *shaker {
	n := len(l.shakers)
	if n == 0 {
		return newShaker()
	}
	s := l.shakers[n-1]
	l.shakers = l.shakers[:n-1]
	return s
}

// shook goes on with a connection whose handshake has ended.
func (l *loop) shook(c *loopConn, err error) {
	now := l.epoch.Now()
	if err != nil {
		l.unmade(shaking, err)
		l.failed(c, record.TLSFailed, now)
		return
	}
	c.shook = max(1, now-c.began-c.connect)
	state := c.link.conn.ConnectionState()
	two, ok := l.cfg.HTTP.agreed(&state)
	if !ok {
		l.unmade(shaking, errNotAgreed)
		l.failed(c, record.TLSFailed, now)
		return
	}
	l.result.shook(&state)
	l.established(c, two)
	if c.state != loopClosed {
		l.read(c, c.link.over) // no event will tell of what was read with the handshake
	}
}

// endHandshake ends a handshake that is on its way.
func (l *loop) endHandshake(k *link) {
	if k == nil || k.shaker == nil {
		return
	}
	k.gone = true
	for ended := false; !ended; {
		ended, _ = k.shaker.next()
	}
	l.shakers, k.shaker = append(l.shakers, k.shaker), nil
}

// signer signs for a client certificate beside the loop: RSA takes milliseconds.
type signer struct {
	crypto.Signer
	loop *loop
}

// signBeside takes the signatures of the handshakes off the loop.
func (l *loop) signBeside(certificates []tls.Certificate) []tls.Certificate {
	beside := slices.Clone(certificates)
	for i := range beside {
		if key, ok := beside[i].PrivateKey.(crypto.Signer); ok {
			beside[i].PrivateKey = signer{key, l}
		}
	}
	return beside
}

// Sign implements crypto.Signer, in a handshake.
func (s signer) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	type signature struct {
		bytes []byte
		err   error
	}
	l, made := s.loop, make(chan signature, 1)
	h := handshake{l.stepping, l.stepping.generation}
	l.signing.Go(func() {
		b, err := s.Signer.Sign(random, digest, opts)
		made <- signature{b, err}
		l.mu.Lock()
		l.signed = append(l.signed, h)
		l.mu.Unlock()
		l.poll.Wake()
	})
	for shaker := h.c.link.shaker; ; {
		select {
		case m := <-made:
			return m.bytes, m.err
		default:
		}
		if !shaker.wait() {
			return nil, errGone
		}
	}
}

// haveSigned goes on with handshakes that have their signature.
func (l *loop) haveSigned() {
	l.mu.Lock()
	signed := l.signed
	l.signed = nil
	l.mu.Unlock()
	now := l.epoch.Now()
	for _, h := range signed {
		if h.c.generation == h.generation && h.c.state == loopShaking {
			l.goesOn(h.c, now)
		}
	}
}

// Read implements net.Conn.
func (k *link) Read(p []byte) (int, error) {
	for {
		n, err := k.take(p)
		if k.shaker == nil || err != errAgain { //nolint:errorlint // our own, never wrapped
			return n, err
		}
		if k.flush(); !k.shaker.wait() {
			return 0, errGone
		}
	}
}

// take reads what is there.
func (k *link) take(p []byte) (int, error) {
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
	k.out = append(k.out, p...)
	if k.shaker == nil {
		k.flush()
	}
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
