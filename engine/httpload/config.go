package httpload

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"seatrial/engine"
	"seatrial/fault"
	"seatrial/record"
	"seatrial/schedule"
)

// Recorder takes each ended arrival; *record.Shard is one. Add is called from several goroutines and
// must not keep the sample.
type Recorder interface{ Add(*record.Sample) }

// Config is one run, or one slice of a run. Every engine takes the same.
type Config struct {
	Target   engine.Target
	Schedule schedule.Schedule
	Requests Requests
	Recorder Recorder
	Limits   engine.Limits // zero: 10 s from the due time, 1,000 connections, 64 KiB, 64 MiB

	Headers   []Header
	Host      string  // Host header and TLS server name; the target's own when empty
	UserAgent string  // none when empty
	Trace     float64 // share of requests whose traceparent says sampled, 0..1
	Seed      uint64  // picks the sampled requests

	HTTP        Version // empty: auto
	TLS         TLS
	Connections Connections

	Precise bool // do not sleep the last 50 us before a due time; costs a core. Loop only

	Epoch     time.Time     // where due times count from; zero: now
	StopDrain time.Duration // after a stop, how long answers that are on their way are waited for
}

// Version is the version of HTTP that is spoken.
type Version string

// The versions.
const (
	HTTPAuto   Version = "auto" // 2 or 1.1, as the TLS handshake agrees; 1.1 without TLS
	HTTP1      Version = "1.1"
	HTTP2      Version = "2"                 // over TLS, agreed in the handshake or the connection failed
	HTTP2Prior Version = "2-prior-knowledge" // HTTP/2 from the first byte on; without TLS this is h2c
	HTTP3      Version = "3"                 // over QUIC; the portable engine sends it
)

// TLS says how connections of an https target are made and proved.
type TLS struct {
	RootCAs      *x509.CertPool    // nil: the system's
	Certificates []tls.Certificate // the client's own
	ServerName   string            // for SNI and the check of the certificate; the Host's when empty
	Insecure     bool              // accept any certificate; the page says so
	MinVersion   uint16            // 0: TLS 1.2
	MaxVersion   uint16            // 0: TLS 1.3
}

// Connections says when connections are opened besides those that requests need (EG-9), and how. Its
// zero value keeps connections alive and opens one only where no other is free.
type Connections struct {
	// Fresh is the share of requests, 0 to 1, that are sent on a connection opened for them. Which
	// ones is a pure function of (seed, index). With 1, each request has a connection of its own,
	// which is closed after it; below 1 the new connection takes the place of the one that was idle
	// longest.
	Fresh float64
	// Arrivals is a second schedule: connections that are opened when they are due, whatever the
	// requests do. Each takes the place of the one that was idle longest. They have an account of
	// their own. Nil: none.
	Arrivals schedule.Schedule
	// Warmup is until when those that are due have the account of the warm-up.
	Warmup time.Duration
	// Resume is the share of TLS handshakes, 0 to 1, that offer an earlier session where one is known.
	Resume float64
	// Streams is the most requests on one connection at once, for HTTP/2 and 3; 0 means 100. The
	// peer's own limit counts too.
	Streams int
	// Bind are the local addresses that connections are opened from, in turn; none: the system's choice.
	Bind []netip.Addr
}

// ConnAccount is where each arrival of Connections.Arrivals ended. Due is the sum of the others.
type ConnAccount struct {
	Due       uint64 `json:"due"`
	Opened    uint64 `json:"opened"`
	Failed    uint64 `json:"failed"`
	TimedOut  uint64 `json:"timed_out"`
	Abandoned uint64 `json:"abandoned"` // on its way when the run was stopped
	Unsent    uint64 `json:"unsent"`    // the limit of connections or the rate was reached and none was idle, or the generator was too late
}

// Add adds the account of another slice.
func (a *ConnAccount) Add(b ConnAccount) {
	a.Due += b.Due
	a.Opened += b.Opened
	a.Failed += b.Failed
	a.TimedOut += b.TimedOut
	a.Abandoned += b.Abandoned
	a.Unsent += b.Unsent
}

// Balanced gives GEN-002 when the account does not balance, or differs from what was intended and
// nothing was stopped.
func (a *ConnAccount) Balanced(intended uint64, stopped bool) error {
	ended := a.Opened + a.Failed + a.TimedOut + a.Abandoned + a.Unsent
	if a.Due != ended || a.Due > intended || !stopped && a.Due != intended {
		return fault.New(fault.GEN002, "connections: of %d intended %d were due, but %d opened + %d failed + %d timed out + %d abandoned + %d unsent make %d",
			intended, a.Due, a.Opened, a.Failed, a.TimedOut, a.Abandoned, a.Unsent, ended)
	}
	return nil
}

const (
	defaultTimeout     = 10 * time.Second
	defaultConnections = 1000
	defaultStreams     = 100
)

// withDefaults fills what is zero and checks the rest; all problems are returned at once.
func (c Config) withDefaults() (Config, error) {
	if !c.Target.OK() {
		return c, engine.ErrNoTarget
	}
	l := &c.Limits
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	for _, d := range []*time.Duration{&l.Connect, &l.TLS, &l.FirstByte} {
		if *d <= 0 || *d > l.Timeout {
			*d = l.Timeout
		}
	}
	if l.MaxConnections <= 0 {
		l.MaxConnections = defaultConnections
	}
	base := c.Target.Base()
	if c.Host == "" {
		c.Host = base.Host
	}
	if c.HTTP == "" {
		c.HTTP = HTTPAuto
	}
	if c.Connections.Streams <= 0 {
		c.Connections.Streams = defaultStreams
	}
	return c, c.validate(base.Scheme)
}

func (c *Config) validate(scheme string) error {
	var errs []error
	if c.Schedule == nil || c.Requests == nil || c.Recorder == nil {
		errs = append(errs, errors.New("httpload: a schedule, requests and a recorder are needed"))
	}
	if scheme != "http" && scheme != "https" {
		errs = append(errs, fmt.Errorf("httpload: the scheme %q is neither http nor https", scheme))
	}
	if !hostSafe(c.Host) {
		errs = append(errs, fmt.Errorf("httpload: %q is no host", c.Host))
	}
	if !plain([]byte(c.UserAgent)) {
		errs = append(errs, errors.New("httpload: the user agent holds a control character"))
	}
	for _, h := range c.Headers {
		if err := checkHeader(h); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, c.validateVersion(scheme), c.Connections.validate(c.Target))
	return errors.Join(errs...)
}

func (c *Config) validateVersion(scheme string) error {
	switch c.HTTP {
	case HTTPAuto, HTTP1, HTTP2Prior:
		return nil
	case HTTP2:
		if scheme == "http" {
			return errors.New("httpload: without TLS HTTP/2 needs prior knowledge")
		}
		return nil
	case HTTP3:
		if scheme == "http" || c.Target.Unix() != "" {
			return errors.New("httpload: HTTP/3 needs https and an address")
		}
		return nil
	}
	return fmt.Errorf("httpload: there is no HTTP version %q", c.HTTP)
}

func (k *Connections) validate(t engine.Target) error {
	if !(k.Fresh >= 0 && k.Fresh <= 1) || !(k.Resume >= 0 && k.Resume <= 1) {
		return errors.New("httpload: a share of connections is not between 0 and 1")
	}
	return CheckBind(t, k.Bind)
}

// CheckBind tells whether a target can be reached from local addresses, as Connections.Bind has them.
func CheckBind(t engine.Target, bind []netip.Addr) error {
	if len(bind) == 0 {
		return nil
	}
	if t.Unix() != "" {
		return errors.New("a Unix socket is not reached from an address")
	}
	for _, a := range t.Addrs() {
		if !slices.ContainsFunc(bind, func(b netip.Addr) bool { return sameFamily(b, a.Addr()) }) {
			return fmt.Errorf("none of the addresses can reach %s, which is of the other family", a.Addr())
		}
	}
	return bindable(bind)
}

func sameFamily(a, b netip.Addr) bool { return a.Unmap().Is4() == b.Unmap().Is4() }

// checkHeader refuses what would change the framing of a request, or become a second one. It never
// names the value, which may be a secret.
func checkHeader(h Header) error {
	if h.Name == "" || strings.IndexFunc(h.Name, func(r rune) bool { return r > 0x7f || !token(byte(r)) }) >= 0 {
		return fmt.Errorf("httpload: %q is no header name", h.Name)
	}
	if !fieldSendable(h.Name) {
		return fmt.Errorf("httpload: the header %s belongs to the engine", h.Name)
	}
	if !plain([]byte(h.Value)) {
		return fmt.Errorf("httpload: the value of the header %s holds a control character", h.Name)
	}
	return nil
}

func hostSafe(h string) bool {
	return h != "" && strings.IndexFunc(h, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("/?#@\\", r) }) < 0
}

// Result is what an engine observed of itself in one run or slice.
type Result struct {
	Released       uint64 // arrivals that were released; each has exactly one sample. After a stop the rest of the schedule is not
	ConnPeak       int
	ConnOpened     uint64
	ConnLimitHit   uint64 // arrivals that waited because the connection limit was reached
	PortsExhausted uint64
	FDExhausted    uint64
	RateLimited    uint64
	Discarded      uint64 // connections closed because bytes came that belong to no response
	BytesIn        uint64
	BytesOut       uint64
	FullShakes     uint64 // TLS handshakes that succeeded: full ones
	Resumed        uint64 // and resumed ones
	ConnFailed     uint64 // connections that did not come about, for another reason than a stop
	HTTP1          uint64 // connections on which HTTP/1.1 was spoken, of ConnOpened
	HTTP2          uint64 // on which the peer spoke HTTP/2
	HTTP3          uint64
	Resent         uint64 // requests sent again after a GOAWAY said that they were never looked at

	Arrivals       ConnAccount // of Connections.Arrivals, behind the warm-up
	ArrivalsWarmup ConnAccount // of those in the warm-up
	Why            Reasons     // why connections and answers failed

	Connect *record.Histogram // what the connections that were opened took to connect; nil without any
	Shake   *record.Histogram // and their TLS handshakes; over QUIC both are one, and stand in Connect
}

// AddTo adds the result to the health of a run; the results of all slices are added to one.
func (r *Result) AddTo(h *engine.Health) {
	h.ConnPeak += r.ConnPeak
	h.ConnOpened += r.ConnOpened
	h.ConnLimitHit += r.ConnLimitHit
	h.PortsExhausted += r.PortsExhausted
	h.FDExhausted += r.FDExhausted
	h.RateLimited += r.RateLimited
	h.Unasked += r.Discarded
	h.BytesIn += r.BytesIn
	h.BytesOut += r.BytesOut
}
