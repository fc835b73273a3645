package httpload

import (
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strings"
	"time"

	"seatrial/record"
)

// Which of the purposes a random number serves, so that none tells of another.
const (
	saltFresh  = 0x6672657368
	saltResume = 0x726573756d65
)

// single tells whether each request has a connection of its own.
func (c *Config) single() bool { return c.Connections.Fresh >= 1 }

// fresh tells whether request i is sent on a connection that is opened for it: a pure function of
// (seed, i).
func (c *Config) fresh(i uint64) bool { return picked(c.Connections.Fresh, c.Seed^saltFresh, i) }

// picked tells whether number i of a stream belongs to a share.
func picked(share float64, seed, i uint64) bool {
	return share >= 1 || share > 0 && float64(mix(seed, i)) < share*math.MaxUint64
}

// endpoint is where connections go and where they come from, in turn.
type endpoint struct {
	unix  string
	addrs []netip.AddrPort
	bind  [2][]netip.Addr // by family: IPv4, IPv6
	turns [2]int          // of bind
	turn  int             // of addrs
}

func newEndpoint(c *Config) endpoint {
	e := endpoint{unix: c.Target.Unix(), addrs: c.Target.Addrs()}
	for _, b := range c.Connections.Bind {
		f := family(b)
		e.bind[f] = append(e.bind[f], b.Unmap())
	}
	return e
}

func family(a netip.Addr) int {
	if a.Unmap().Is4() {
		return 0
	}
	return 1
}

// next gives the address of the next connection, and the local one; that is invalid for the system's
// choice. Neither is of use for a Unix socket.
func (e *endpoint) next() (to netip.AddrPort, from netip.Addr) {
	if e.unix != "" {
		return to, from
	}
	to = e.addrs[e.turn%len(e.addrs)]
	e.turn++
	f := family(to.Addr())
	if n := len(e.bind[f]); n > 0 {
		from = e.bind[f][e.turns[f]%n]
		e.turns[f]++
	}
	return to, from
}

// bindable tells whether all the addresses are this machine's.
func bindable(addrs []netip.Addr) error {
	for _, a := range addrs {
		l, err := net.Listen("tcp", netip.AddrPortFrom(a, 0).String())
		if err != nil {
			return fmt.Errorf("%s is no address of this machine", a)
		}
		_ = l.Close()
	}
	return nil
}

// security makes the TLS side of connections.
type security struct {
	full, resuming *tls.Config
	share          float64
	seed           uint64
}

// newSecurity is nil for plain HTTP. The server name is the Host's unless another is given: the target
// is pinned by address, and its certificate must be for the name that the requests carry.
func (c *Config) newSecurity() *security {
	if base := c.Target.Base(); base.Scheme != "https" {
		return nil
	}
	name := c.TLS.ServerName
	if name == "" {
		name = c.Host
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
	}
	full := &tls.Config{ServerName: strings.Trim(name, "[]"), RootCAs: c.TLS.RootCAs, Certificates: c.TLS.Certificates,
		MinVersion: tls.VersionTLS12, MaxVersion: c.TLS.MaxVersion, InsecureSkipVerify: c.TLS.Insecure, NextProtos: c.HTTP.protocols(),
		CurvePreferences: classical()}
	if c.TLS.MinVersion > full.MinVersion {
		full.MinVersion = c.TLS.MinVersion
	}
	s := &security{full: full, share: c.Connections.Resume, seed: c.Seed ^ saltResume}
	if s.share > 0 {
		s.resuming = full.Clone()
		s.resuming.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		if c.HTTP == HTTP3 {
			s.resuming.ClientSessionCache = ownSessions{s.resuming.ClientSessionCache}
		}
	}
	return s
}

// ownSessions gives each connection a session state of its own: the QUIC library writes into it.
type ownSessions struct{ tls.ClientSessionCache }

// Get implements tls.ClientSessionCache.
func (c ownSessions) Get(key string) (*tls.ClientSessionState, bool) {
	kept, ok := c.ClientSessionCache.Get(key)
	if !ok || kept == nil {
		return nil, false
	}
	ticket, state, err := kept.ResumptionState()
	if err != nil || state == nil {
		return nil, false
	}
	b, err := state.Bytes()
	if err != nil {
		return nil, false
	}
	if state, err = tls.ParseSessionState(b); err != nil {
		return nil, false
	}
	own, err := tls.NewResumptionState(ticket, state)
	return own, err == nil
}

// sign has other keys sign for the certificates.
func (s *security) sign(with func([]tls.Certificate) []tls.Certificate) {
	s.full.Certificates = with(s.full.Certificates)
	if s.resuming != nil {
		s.resuming.Certificates = s.full.Certificates
	}
}

// classical are the key exchanges that are offered. A post-quantum one beside them, which no server of
// the last decade but the newest takes, would cost the generator a sixth of each handshake.
func classical() []tls.CurveID { return []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384} }

// config is that of connection n of an engine.
func (s *security) config(n uint64) *tls.Config {
	if s.resuming != nil && picked(s.share, s.seed, n) {
		return s.resuming
	}
	return s.full
}

// protocols is what the TLS handshake offers.
func (v Version) protocols() []string {
	switch v {
	case HTTP1:
		return []string{"http/1.1"}
	case HTTP2, HTTP2Prior:
		return []string{"h2"}
	case HTTP3:
		return []string{"h3"}
	default:
		return []string{"h2", "http/1.1"}
	}
}

// agreed tells, when a connection stands, whether it speaks HTTP/2; ok is false when the version that
// the run demands was not agreed on. state is nil without TLS.
func (v Version) agreed(state *tls.ConnectionState) (two, ok bool) {
	two = state != nil && state.NegotiatedProtocol == "h2"
	switch v {
	case HTTP1:
		return false, true
	case HTTP2:
		return true, two
	case HTTP2Prior:
		return true, true
	default:
		return two, true
	}
}

// shook counts a handshake.
func (r *Result) shook(s *tls.ConnectionState) {
	if s.DidResume {
		r.Resumed++
	} else {
		r.FullShakes++
	}
}

// opened counts a connection that stands; connect and shake are its times, 0 where there was none.
func (r *Result) opened(connect, shake time.Duration) {
	r.ConnOpened++
	if r.Connect == nil {
		r.Connect, r.Shake = record.NewHistogram(), record.NewHistogram()
	}
	r.Connect.Record(connect)
	if shake > 0 {
		r.Shake.Record(shake)
	}
}

// account is that of the connections by their own schedule which are due at an offset.
func (r *Result) account(cfg *Config, due time.Duration) *ConnAccount {
	if due < cfg.Connections.Warmup {
		return &r.ArrivalsWarmup
	}
	return &r.Arrivals
}

// missed counts one of a schedule's connections that did not come about.
func (a *ConnAccount) missed(o record.Outcome) {
	switch {
	case o.TimedOut():
		a.TimedOut++
	case o == record.UnsentStop || o == record.Abandoned:
		a.Abandoned++
	case o.Unsent():
		a.Unsent++
	default:
		a.Failed++
	}
}
