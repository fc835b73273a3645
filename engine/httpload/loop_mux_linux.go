package httpload

import (
	"time"

	"golang.org/x/sys/unix"

	"seatrial/record"
)

// maxRecord is how much of HTTP/2's output is encrypted at once: what the peer does not take must wait
// where HTTP/2 can see it.
const maxRecord = 64 << 10

// launch hands a request to an HTTP/2 connection, which takes it: see takes.
func (l *loop) launch(c *loopConn, w waiting, now time.Duration) {
	f := l.flight(c)
	l.cfg.Requests.At(w.Index, &f.req)
	f.begin(w, now)
	f.sample.Connect, f.sample.TLS = c.connect, c.shook
	c.connect, c.shook = 0, 0
	if c.mux.open(f) != nil {
		l.refuse(w.Arrival, f.req.Route, record.UnsentPolicy)
		l.flights = append(l.flights, f)
		return
	}
	l.ends.add(&f.end, w.Due+l.cfg.Limits.Timeout)
	l.touch(c)
}

// flight gives a free one.
func (l *loop) flight(c *loopConn) *flight {
	n := len(l.flights)
	if n == 0 {
		f := &flight{conn: c}
		f.end.owner, f.stage.owner = f, f
		return f
	}
	f := l.flights[n-1]
	l.flights[n-1] = nil
	l.flights = l.flights[:n-1]
	f.conn = c
	return f
}

// touch notes that a connection has frames to write. They are written together at the end of the round.
func (l *loop) touch(c *loopConn) {
	if !c.dirty {
		c.dirty = true
		l.dirty = append(l.dirty, c)
	}
}

func (l *loop) writeDirty() {
	for i, c := range l.dirty {
		c.dirty = false
		if c.state == loopOpen && !c.writeErr {
			l.writeMux(c)
		}
		l.dirty[i] = nil
	}
	l.dirty = l.dirty[:0]
}

// writeMux writes what the peer takes of the frames.
func (l *loop) writeMux(c *loopConn) {
	now := l.epoch.Now()
	if l.cfg.Limits.FirstByte < l.cfg.Limits.Timeout {
		for _, f := range c.mux.unsent {
			l.bytes.add(&f.stage, now+l.cfg.Limits.FirstByte)
		}
	}
	c.mux.sent(now)
	for b := c.mux.conn.Out(); len(b) > 0 || c.link != nil && len(c.link.out) > 0; b = c.mux.conn.Out() {
		n, e := c.give(b)
		c.mux.conn.Advance(n)
		switch e {
		case 0, unix.EINTR:
		case unix.EAGAIN:
			return
		default:
			l.writeFailed(c)
			return
		}
	}
}

// give writes frames, or encrypts and writes them; EAGAIN when the peer takes no more now.
func (c *loopConn) give(b []byte) (int, unix.Errno) {
	k := c.link
	if k == nil {
		return writeRaw(c.fd, b)
	}
	if k.flush(); k.outErr != nil {
		return 0, unix.EPIPE
	}
	if len(k.out) > 0 {
		return 0, unix.EAGAIN
	}
	n := min(len(b), maxRecord)
	if _, err := k.conn.Write(b[:n]); err != nil || k.outErr != nil {
		return 0, unix.EPIPE
	}
	return n, 0
}

// gotMux handles what one read gave on an HTTP/2 connection; false when the connection is gone.
func (l *loop) gotMux(c *loopConn, n int, err error) bool {
	now := l.epoch.Now()
	if n > 0 {
		idle := c.mux.conn.Idle()
		violated := c.mux.feed(l.buf[:n], now)
		if violated != nil {
			l.result.Why.note(answering, violated)
		} else if c.mux.speaks() {
			l.result.HTTP2++
		}
		l.happened(c, now, violated)
		switch {
		case violated != nil:
			if idle {
				l.result.Discarded++
			}
			l.writeMux(c)
			l.replace(c)
			return false
		case l.spent(c):
			return false
		}
		l.touch(c) // an acknowledgement or a window may be due
	}
	if nothingNow(err) {
		return true
	}
	l.ended(c, err, now)
	return false
}

// spent closes a connection on which nothing is on its way and nothing more will be.
func (l *loop) spent(c *loopConn) bool {
	if !c.mux.conn.Idle() || !c.mux.conn.Draining() && !(c.once && c.used) {
		return false
	}
	c.mux.conn.Shutdown()
	l.writeMux(c)
	l.replace(c)
	return true
}

// ended handles the end of an HTTP/2 connection.
func (l *loop) ended(c *loopConn, cause error, now time.Duration) {
	if !c.mux.conn.Idle() || !c.mux.spoke {
		l.result.Why.broke(brokenOutcome(cause, false, c.writeErr), cause)
	}
	c.mux.ended()
	l.happened(c, now, cause)
	l.replace(c)
}

// happened acts on the events of a connection.
func (l *loop) happened(c *loopConn, now time.Duration, cause error) {
	for i := range c.mux.events {
		f, what := c.mux.apply(&c.mux.events[i], now, cause, c.writeErr)
		switch what {
		case begun:
			f.stage.remove()
		case ended:
			l.finish(f, f.sample.Outcome, now)
			l.flights = append(l.flights, f)
		case unseen:
			l.again(f)
		}
	}
}

// again puts a request that no peer has looked at back to the front of the queue.
func (l *loop) again(f *flight) {
	f.end.remove()
	f.stage.remove()
	w := f.w
	l.flights = append(l.flights, f)
	if l.stopped {
		l.unsent(w.Arrival, record.UnsentStop)
		return
	}
	w.resent++
	w.found = false
	l.result.Resent++
	l.queue.unpop(w)
}

// giveUp ends one request of an HTTP/2 connection at its time-out. Where the peer has been silent ever
// since it was sent, the connection is trusted with no other.
func (l *loop) giveUp(c *loopConn, f *flight, o record.Outcome, now time.Duration) {
	silent := f.sample.Sent > c.mux.lastIn
	c.mux.cancel(f)
	l.finish(f, o, now)
	l.flights = append(l.flights, f)
	if silent {
		c.mux.conn.Shutdown()
	}
	if l.spent(c) {
		return
	}
	l.touch(c)
	l.ready(c)
	l.demand()
}

// abandon gives up everything on a connection at the end of the run.
func (l *loop) abandon(c *loopConn, now time.Duration) {
	switch {
	case c.mux != nil:
		for _, f := range c.mux.flights {
			if f != nil {
				c.mux.cancel(f)
				l.finish(f, record.Abandoned, now)
			}
		}
	case c.state == loopBusy:
		l.end(c, record.Abandoned, now)
	}
	l.drop(c)
}
