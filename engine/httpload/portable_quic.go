package httpload

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"seatrial/record"
)

// quicIdle is how long a connection may be idle before either side forgets it. It is kept alive.
const quicIdle = 30 * time.Second

// three is an HTTP/3 connection of the portable engine. The protocol is a library's; what is sent, what is
// refused and how it is classified is as in the other versions.
type three struct {
	*lane
	conn    *quic.Conn
	client  *http3.ClientConn
	connect time.Duration   // for the first request
	open    context.Context // ends when no further request is to wait for a stream
	shut    context.CancelFunc
}

// overQUIC opens an HTTP/3 connection and carries requests on it until it ends. Each has a UDP socket of
// its own, as each client has.
func (c *conn) overQUIC(w waiting) {
	p := c.p
	start := p.epoch.Now()
	q, done, o := c.dialQUIC(w.Due + p.cfg.Limits.Timeout)
	c.connect = max(1, p.epoch.Now()-start)
	p.stands(c, false, o)
	switch {
	case !c.asked:
		p.arrived(w.Due, o)
	case o != record.Answered:
		c.failed(w, o)
	}
	if o != record.Answered {
		return
	}
	defer done()
	t := http3.Transport{DisableCompression: true, MaxResponseHeaderBytes: p.cfg.maxHeader()}
	x := &three{lane: &lane{p: p, c: c, limit: p.cfg.Connections.Streams}, conn: q, client: t.NewClientConn(q)}
	x.send = x.begin
	x.open, x.shut = context.WithCancel(context.Background())
	defer x.shut()
	if c.asked {
		x.connect = c.connect
	}
	c.mu.Lock()
	c.end3 = func() { _ = q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") }
	if c.gone {
		c.end3()
	}
	c.mu.Unlock()
	p.enter(x.lane, w)
	<-q.Context().Done()
	p.leave(x.lane)
}

func (c *Config) maxHeader() int {
	if c.Limits.MaxHeader > 0 {
		return c.Limits.MaxHeader
	}
	return defaultMaxHeader
}

func (c *Config) maxBody() int64 {
	if c.Limits.MaxBody > 0 {
		return c.Limits.MaxBody
	}
	return defaultMaxBody
}

// dialQUIC makes the connection; done gives its socket back.
func (c *conn) dialQUIC(deadline time.Duration) (q *quic.Conn, done func(), o record.Outcome) {
	p := c.p
	if p.stopped.Load() {
		return nil, nil, record.UnsentStop
	}
	now := p.epoch.Now()
	limit := min(deadline, now+p.cfg.Limits.Connect, now+p.cfg.Limits.TLS)
	ctx, cancel := context.WithDeadline(p.dialer, p.epoch.At(limit))
	defer cancel()
	p.aim.Lock()
	to, from := p.where.next()
	p.aim.Unlock()
	var local *net.UDPAddr
	if from.IsValid() {
		local = &net.UDPAddr{IP: from.AsSlice(), Zone: from.Zone()}
	}
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		c.doing, c.cause = connecting, err
		return nil, nil, c.dialFailed(err)
	}
	tr := &quic.Transport{Conn: socket}
	done = func() { _ = tr.Close(); _ = socket.Close() }
	q, err = tr.Dial(ctx, net.UDPAddrFromAddrPort(to), p.tls.config(p.dials.Add(1)), &quic.Config{
		HandshakeIdleTimeout: max(time.Millisecond, limit-now), MaxIdleTimeout: quicIdle, KeepAlivePeriod: quicIdle / 3, MaxIncomingStreams: -1})
	if err == nil {
		state := q.ConnectionState().TLS
		p.shook(&state)
		return q, done, record.Answered
	}
	done()
	c.doing, c.cause = connecting, err
	return nil, nil, c.quicFailed(ctx, err)
}

// quicFailed classifies a connection that did not come about.
func (c *conn) quicFailed(ctx context.Context, err error) record.Outcome {
	var transport *quic.TransportError
	var idle *quic.IdleTimeoutError
	var handshake *quic.HandshakeTimeoutError
	var cert *tls.CertificateVerificationError
	switch {
	case c.p.stopped.Load():
		return record.UnsentStop
	case errors.As(err, &transport) && transport.ErrorCode.IsCryptoError(), errors.As(err, &cert):
		return record.TLSFailed
	case ctx.Err() != nil, errors.As(err, &idle), errors.As(err, &handshake):
		return record.TimedOutConnect
	default:
		return c.dialFailed(err)
	}
}

// begin sends a request and reads its answer.
func (x *three) begin(w waiting) {
	p := x.p
	f := &flight{}
	p.cfg.Requests.At(w.Index, &f.req)
	if now := p.epoch.Now(); p.admitted(w, now) {
		if x.exchange(f, w, now) {
			p.record(&f.sample)
		} else {
			w.resent++
			p.again(w)
		}
	}
	p.ended(x.lane, 1)
	if x.spent() || x.unused() {
		x.c.quit()
	}
}

// silent gives a connection up on which, as it turns out, nothing at all came since a request went out that has timed out:
// it is trusted with no other, and what waits for a stream looks for another connection.
func (x *three) silent(o record.Outcome, received uint64) {
	if !o.TimedOut() || x.conn.ConnectionStats().PacketsReceived > received {
		return
	}
	x.p.mu.Lock()
	x.over = true
	x.p.mu.Unlock()
	x.shut()
}

// unused tells whether the connection was given up and nothing is on its way on it.
func (x *three) unused() bool {
	x.p.mu.Lock()
	defer x.p.mu.Unlock()
	return x.over && x.load == 0
}

// exchange is false when the peer never looked at the request and it may be sent again.
func (x *three) exchange(f *flight, w waiting, now time.Duration) bool {
	p, s := x.p, &f.sample
	f.begin(w, now)
	p.mu.Lock()
	s.Connect, x.connect = x.connect, 0
	p.mu.Unlock()
	end := p.epoch.At(w.Due + p.cfg.Limits.Timeout)
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	req := x.request(f)
	if req == nil {
		s.Outcome, s.Done = record.UnsentPolicy, max(w.Due, p.epoch.Now())
		return true
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { s.FirstByte = p.epoch.Now() }})
	if len(f.req.Body) > 0 {
		s.Sent = max(1, now)
		received := x.conn.ConnectionStats().PacketsReceived
		o := x.roundTrip(ctx, req, f)
		x.end(f, o)
		x.silent(o, received)
		return true
	}
	opening, given := context.WithCancel(ctx)
	defer given()
	defer context.AfterFunc(x.open, given)()
	str, err := x.client.OpenRequestStream(opening)
	if err != nil { // the connection takes no more; nothing was sent
		p.mu.Lock()
		x.over = true
		p.mu.Unlock()
		return x.unopened(s, w, err)
	}
	sent := p.epoch.Now()
	s.Sent = max(1, sent)
	s.Wait += max(0, sent-now) // for a stream: the peer's limit
	_ = str.SetDeadline(end)
	if first := p.epoch.At(sent + p.cfg.Limits.FirstByte); first.Before(end) {
		_ = str.SetReadDeadline(first)
	}
	received := x.conn.ConnectionStats().PacketsReceived
	o := x.converse(str, req, f, end)
	x.silent(o, received)
	if x.end(f, o); o != record.Answered && o != record.CheckFailed {
		str.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
		str.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	}
	return true
}

// end notes how a request ended.
func (x *three) end(f *flight, o record.Outcome) {
	s := &f.sample
	s.Outcome, s.Done = o, max(x.p.epoch.Now(), s.Sent)
	if o == record.CheckFailed {
		x.p.why(answering, f.wrong)
	}
	if o == record.TimedOut {
		expired(s, x.p.cfg.Limits.Timeout)
	}
}

// roundTrip sends a request with a body, for which the library wants to open the stream itself: a wait for
// the peer's limit of streams is inside the service time here.
func (x *three) roundTrip(ctx context.Context, req *http.Request, f *flight) record.Outcome {
	limits := &x.p.cfg.Limits
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if limits.FirstByte < limits.Timeout {
		first := time.AfterFunc(limits.FirstByte, cancel)
		defer first.Stop()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { first.Stop() }})
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(f.req.Body)), int64(len(f.req.Body))
	resp, err := x.client.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return x.classify(orEnded(ctx, err), f)
	}
	defer func() { _ = resp.Body.Close() }()
	f.countHeaders(resp.Header)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return record.InvalidResponse
	}
	return x.body(ctx, resp.Body, resp, f)
}

// orEnded is the end of ctx in place of what the library makes of it.
func orEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.DeadlineExceeded
	}
	return err
}

func (f *flight) countHeaders(h http.Header) {
	f.sample.BytesIn += 3 // the status
	for name, values := range h {
		for _, v := range values {
			f.sample.BytesIn += uint64(len(name) + len(v))
		}
	}
}

// unopened ends a request for which the connection had no stream; false when it may be sent on another.
func (x *three) unopened(s *record.Sample, w waiting, err error) bool {
	p := x.p
	s.Done = max(w.Due, p.epoch.Now())
	switch {
	case x.c.isGone() || p.stopped.Load():
		s.Outcome = record.UnsentStop
	case (isTimeout(err) || errors.Is(err, context.DeadlineExceeded)) && !errors.Is(err, context.Canceled):
		*s = unmet(w, s.Route, p.cfg.Limits.Timeout, p.epoch.Now())
	case w.resent < maxResent:
		return false
	default:
		s.Outcome = record.WentAway
	}
	return true
}

// request is what the library takes; nil when the target cannot be written as it is.
func (x *three) request(f *flight) *http.Request {
	cfg := &x.p.cfg
	u := &url.URL{Scheme: "https", Host: cfg.Host, Opaque: string(f.req.Target)}
	if strings.HasPrefix(u.Opaque, "//") {
		var err error
		path, query, _ := strings.Cut(u.Opaque, "?")
		if u.Path, err = url.PathUnescape(path); err != nil {
			return nil
		}
		u.Opaque, u.RawPath, u.RawQuery = "", path, query
	}
	h := http.Header{"User-Agent": nil} // the library would name itself
	for _, s := range cfg.static() {
		h[http.CanonicalHeaderKey(s.Name)] = append(h[http.CanonicalHeaderKey(s.Name)], s.Value)
	}
	for _, s := range f.req.Fields {
		h[http.CanonicalHeaderKey(s.Name)] = append(h[http.CanonicalHeaderKey(s.Name)], string(s.Value))
	}
	h["Traceparent"] = []string{string(x.p.out.traceparent(nil, f.w.Index))}
	for name, values := range h {
		for _, v := range values {
			f.sample.BytesOut += uint64(len(name) + len(v))
		}
	}
	f.sample.BytesOut += uint64(len(f.req.Method) + len(f.req.Target) + len(f.req.Body))
	return &http.Request{Method: f.req.Method, URL: u, Host: cfg.Host, Header: h, Proto: "HTTP/3.0", ProtoMajor: 3}
}

// converse sends the request on its stream and reads the answer.
func (x *three) converse(str *http3.RequestStream, req *http.Request, f *flight, end time.Time) record.Outcome {
	err := str.SendRequestHeader(req)
	if err != nil && !isReset(err) { // the peer may have answered without wanting the rest
		return x.classify(err, f)
	}
	_ = str.Close()
	var resp *http.Response
	for interim := 0; ; interim++ {
		if resp, err = str.ReadResponse(); err != nil { //nolint:bodyclose // the stream is the body, and is read to its end or cancelled
			return x.classify(err, f)
		}
		f.countHeaders(resp.Header)
		if resp.StatusCode >= 200 {
			break
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || interim == maxInterim {
			return record.InvalidResponse
		}
	}
	_ = str.SetReadDeadline(end)
	return x.body(context.Background(), str, resp, f)
}

// body reads the body and judges the whole.
func (x *three) body(ctx context.Context, str io.Reader, resp *http.Response, f *flight) record.Outcome {
	for name, values := range resp.Header {
		for _, v := range values {
			f.check.field([]byte(name), []byte(v))
		}
	}
	bare := f.req.Method == "HEAD" || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	buf := make([]byte, firstBuffer)
	var n int64
	for {
		k, err := str.Read(buf)
		n += int64(k)
		f.sample.BytesIn += uint64(k)
		f.check.data(buf[:k])
		switch { // a stream that ends inside a frame is not told from one that ends behind it
		case n > 0 && bare, n > x.p.cfg.maxBody():
			return record.InvalidResponse
		case err == nil:
			if k == len(buf) && k < lastBuffer {
				buf = make([]byte, 2*k)
			}
		case !errors.Is(err, io.EOF):
			return x.classify(orEnded(ctx, err), f)
		case !bare && resp.ContentLength >= 0 && n != resp.ContentLength:
			return record.InvalidResponse
		default:
			return f.judge(resp.StatusCode)
		}
	}
}

func isReset(err error) bool {
	var stream *quic.StreamError
	return errors.As(err, &stream) && stream.Remote
}

// classify tells what the end of a stream, or of its connection, means for the request on it.
func (x *three) classify(err error, f *flight) record.Outcome {
	var h3 *http3.Error
	var stream *quic.StreamError
	var app *quic.ApplicationError
	var idle *quic.IdleTimeoutError
	var transport *quic.TransportError
	var stateless *quic.StatelessResetError
	lost := func() record.Outcome {
		if f.sample.FirstByte > 0 {
			return record.EarlyClose
		}
		return record.Reset
	}
	switch {
	case x.c.isGone():
		return record.Abandoned
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return x.p.overtime(&f.sample, f.sample.FirstByte > 0)
	case errors.As(err, &h3) && errors.As(err, &stream):
		if h3.ErrorCode == http3.ErrCodeRequestRejected && h3.Remote {
			return record.StreamRefused
		}
		if h3.Remote {
			return record.StreamReset
		}
		return record.InvalidResponse
	case errors.As(err, &app):
		if !app.Remote && http3.ErrCode(app.ErrorCode) != http3.ErrCodeNoError { // the library ended it: the peer broke a rule
			return record.InvalidResponse
		}
		return lost()
	case errors.As(err, &idle), errors.As(err, &stateless):
		return lost()
	case errors.As(err, &transport):
		if !transport.Remote {
			return record.InvalidResponse
		}
		return lost()
	default:
		return record.InvalidResponse
	}
}
