package httpload

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"seatrial/engine"
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

	RootCAs  *x509.CertPool // nil: the system's
	Insecure bool           // accept any certificate; the page says so

	Precise bool // do not sleep the last 50 us before a due time; costs a core. Loop only

	Epoch     time.Time     // where due times count from; zero: now
	StopDrain time.Duration // after a stop, how long answers that are on their way are waited for
}

const (
	defaultTimeout     = 10 * time.Second
	defaultConnections = 1000
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
	return errors.Join(errs...)
}

// checkHeader refuses what would change the framing of a request, or become a second one. It never
// names the value, which may be a secret.
func checkHeader(h Header) error {
	if h.Name == "" || strings.IndexFunc(h.Name, func(r rune) bool { return r > 0x7f || !token(byte(r)) }) >= 0 {
		return fmt.Errorf("httpload: %q is no header name", h.Name)
	}
	switch strings.ToLower(h.Name) {
	case "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect":
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

// tlsConfig is nil for plain HTTP. The server name is the Host's: the target is pinned by address,
// and its certificate must be for the name that the requests carry.
func (c *Config) tlsConfig() *tls.Config {
	if base := c.Target.Base(); base.Scheme != "https" {
		return nil
	}
	name := c.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	return &tls.Config{ServerName: strings.Trim(name, "[]"), RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: c.Insecure, NextProtos: []string{"http/1.1"}}
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
