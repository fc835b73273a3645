package engine

import (
	"errors"
	"net/netip"
	"net/url"
	"path/filepath"
)

// Target is where load may go. Its zero value is refused, its fields cannot be set from outside, and
// only internal/env and internal/consent may call Admit; the architecture test holds them to it.
// That is "never point it at production by accident" in the type system.
type Target struct {
	base    *url.URL
	addrs   []netip.AddrPort
	unix    string
	maxRate float64
	proof   Proof
	ok      bool
	release *Limiter // shared by all copies: slices of a run cannot each have a max_rate of their own
	write   *Limiter
	dial    *Limiter
}

// Proof says why load may go to a target.
type Proof struct {
	Kind   string // "environment" or "consent"
	Name   string // the environment's or target's name
	Detail string // one sentence for the report
}

// ErrNoTarget is returned for the zero Target.
var ErrNoTarget = errors.New("engine: no admitted target")

// Admit makes a Target from a base URL (scheme and host only) whose addresses have been resolved,
// checked and pinned. maxRate is requests per second over all workers; 0 means no limit.
func Admit(base *url.URL, addrs []netip.AddrPort, maxRate float64, proof Proof) (Target, error) {
	if base == nil || base.Host == "" || len(addrs) == 0 || proof.Kind == "" {
		return Target{}, ErrNoTarget
	}
	u := *base
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return Target{base: &u, addrs: append([]netip.AddrPort(nil), addrs...), maxRate: maxRate, proof: proof, ok: true,
		release: NewLimiter(maxRate), write: NewLimiter(maxRate), dial: NewLimiter(maxRate)}, nil
}

// AdmitUnix makes a Target of a Unix socket: path is absolute, and base gives the scheme and the Host
// that requests carry. maxRate is as in Admit.
func AdmitUnix(base *url.URL, path string, maxRate float64, proof Proof) (Target, error) {
	if !filepath.IsAbs(path) {
		return Target{}, ErrNoTarget
	}
	t, err := Admit(base, []netip.AddrPort{{}}, maxRate, proof)
	t.addrs, t.unix = nil, path
	return t, err
}

// OK tells whether the target was admitted.
func (t Target) OK() bool { return t.ok }

// Base is the base URL; a copy.
func (t Target) Base() url.URL {
	if t.base == nil {
		return url.URL{}
	}
	return *t.base
}

// Unix is the path of the target's Unix socket; empty when it has addresses.
func (t Target) Unix() string { return t.unix }

// Addrs are the pinned addresses, used round-robin; none for a Unix socket.
func (t Target) Addrs() []netip.AddrPort { return append([]netip.AddrPort(nil), t.addrs...) }

// MaxRate is the admitted maximum rate per second; 0 means no limit.
func (t Target) MaxRate() float64 { return t.maxRate }

// Proof says why load may go here.
func (t Target) Proof() Proof { return t.proof }

// Release is the limiter that an arrival passes when it is due, before a connection is opened for it.
// All copies of the target share it. It is nil, which allows everything, without a max_rate.
func (t Target) Release() *Limiter { return t.release }

// Write is the limiter that a request passes right before its first byte, so that requests that
// waited for a connection cannot go out together above max_rate. All copies of the target share it.
func (t Target) Write() *Limiter { return t.write }

// Dial is the limiter that a connection passes which no request asked for. All copies of the target
// share it.
func (t Target) Dial() *Limiter { return t.dial }
