package lokitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Refuse answers with a status and words. Header is pairs of names and values.
func Refuse(w http.ResponseWriter, status int, words string, header ...string) bool {
	for i := 0; i+1 < len(header); i += 2 {
		w.Header().Set(header[i], header[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, words) // a client that has gone is its own affair
	return true
}

// Cut answers with the first part of what it would answer, and closes the connection. It does not
// return.
func (s *Server) Cut(w http.ResponseWriter, r *http.Request, share float64) {
	whole := httptest.NewRecorder()
	s.Answer(whole, r)
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(whole.Body.Len()))
	text := whole.Body.Bytes()
	_, _ = w.Write(text[:int(float64(len(text))*share)]) // cut on purpose
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

// Pipe serves a handler without a network, so that time in a test can be made up. Stop ends it and
// waits for it.
func Pipe(handler http.Handler) (dial func(ctx context.Context, network, address string) (net.Conn, error), stop func()) {
	l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // it ends when it is closed
	}()
	return l.dial, func() {
		_ = server.Close() // there is nothing that could be lost
		<-done
	}
}

// pipes is a net.Listener over pairs of ends of pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
