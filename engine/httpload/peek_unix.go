//go:build unix

package httpload

import (
	"crypto/tls"

	"golang.org/x/sys/unix"
)

// quiet looks, without taking anything, whether the peer closed the connection or sent bytes that
// nobody asked for. The reader would see the same, but perhaps only after the next request is out,
// and would take the bytes for its answer.
func (c *conn) quiet() bool {
	if c.raw == nil {
		return true
	}
	c.peeked, c.spoke = false, false
	return c.raw.Control(c.look) == nil && c.peeked
}

func (c *conn) peek(fd uintptr) {
	var b [1]byte
	n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if _, encrypted := c.nc.(*tls.Conn); encrypted && n > 0 {
		c.peeked = true // session tickets may come at any time
		return
	}
	c.spoke = err == nil && n > 0
	c.peeked = err == unix.EAGAIN || err == unix.EINTR
}
