package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// faults are the injections of one route. Counters belong to the rule, so that a rule for * counts
// over all the routes that it covers.
type faults struct {
	latency *latency
	errors  *errorShare
	stall   *stall
	lockup  *lockup
}

// injector holds the rules by route; "*" is the rule of every route that has none of its own.
type injector map[string]*faults

// newInjector parses the rules and refuses those for routes that the shop does not serve.
func newInjector(cfg Config, routes []string) (injector, error) {
	in := injector{"*": {}}
	add := func(flag string, specs []string, set func(f *faults, value string) error) error {
		for _, spec := range specs {
			route, value, ok := cutLast(spec, "=")
			if !ok {
				return fmt.Errorf("--%s %q: want ROUTE=VALUE", flag, spec)
			}
			if route != "*" && !slices.Contains(routes, route) {
				return fmt.Errorf("--%s: no route %q; the shop serves %s", flag, route, strings.Join(routes, ", "))
			}
			if in[route] == nil {
				in[route] = &faults{}
			}
			if err := set(in[route], value); err != nil {
				return fmt.Errorf("--%s %q: %w", flag, spec, err)
			}
		}
		return nil
	}
	steps := []struct {
		flag  string
		specs []string
		set   func(f *faults, value string) error
	}{
		{"latency", cfg.Latency, func(f *faults, v string) (err error) { f.latency, err = parseLatency(v, cfg.Seed); return }},
		{"errors", cfg.Errors, func(f *faults, v string) (err error) { f.errors, err = parseErrors(v); return }},
		{"stall", cfg.Stall, func(f *faults, v string) (err error) { f.stall, err = parseStall(v); return }},
		{"lockup", cfg.Lockup, func(f *faults, v string) (err error) { f.lockup, err = parseLockup(v); return }},
	}
	for _, s := range steps {
		if err := add(s.flag, s.specs, s.set); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// of gives the faults of one route, kind by kind its own or else those of *.
func (in injector) of(route string) faults {
	f := *in["*"]
	own := in[route]
	if own == nil {
		return f
	}
	if own.latency != nil {
		f.latency = own.latency
	}
	if own.errors != nil {
		f.errors = own.errors
	}
	if own.stall != nil {
		f.stall = own.stall
	}
	if own.lockup != nil {
		f.lockup = own.lockup
	}
	return f
}

// apply waits as the rules say and gives the status to answer with instead of the page; 0 for the
// page. It does not return while a lock-up lasts: it panics with http.ErrAbortHandler when the
// client goes away or released is closed, which drops the connection without an answer.
func (f faults) apply(ctx context.Context, started time.Time, released <-chan struct{}) int {
	if f.lockup != nil && f.lockup.holds() {
		select {
		case <-ctx.Done():
		case <-released:
		}
		panic(http.ErrAbortHandler)
	}
	wait := time.Duration(0)
	if f.stall != nil {
		wait = f.stall.left(time.Since(started))
	}
	if f.latency != nil {
		wait += f.latency.next()
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
	if f.errors != nil && f.errors.next() {
		return f.errors.status
	}
	return 0
}

// latency is a distribution of waits: uniform on [lo, hi], or exponential with mean lo.
type latency struct {
	lo, hi      time.Duration
	exponential bool
	seed        uint64
	n           atomic.Uint64
}

// parseLatency reads "40ms", "30ms..50ms" or "exp:20ms".
func parseLatency(s string, seed uint64) (*latency, error) {
	l := &latency{seed: seed}
	var err error
	if mean, ok := strings.CutPrefix(s, "exp:"); ok {
		l.exponential = true
		l.lo, err = positive(mean)
		return l, err
	}
	lo, hi, ranged := strings.Cut(s, "..")
	if !ranged {
		hi = lo
	}
	if l.lo, err = positive(lo); err != nil {
		return nil, err
	}
	if l.hi, err = positive(hi); err != nil {
		return nil, err
	}
	if l.hi < l.lo {
		return nil, fmt.Errorf("%s is more than %s", lo, hi)
	}
	return l, nil
}

// next draws wait number n: a hash of (seed, n), so that no lock is needed and a run can be repeated.
func (l *latency) next() time.Duration {
	u := float64(mix64(l.seed^mix64(l.n.Add(1)))>>11) / (1 << 53)
	if l.exponential {
		return time.Duration(-math.Log(1-u) * float64(l.lo))
	}
	return l.lo + time.Duration(u*float64(l.hi-l.lo))
}

// mix64 is the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that spreads bits.
func mix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// errorShare answers a share of the requests with a status, evenly spread: after n requests exactly
// floor(n x share) were errors, so that a test can count on it.
type errorShare struct {
	share  float64
	status int
	n      atomic.Uint64
}

// parseErrors reads "0.1" or "0.1:503".
func parseErrors(s string) (*errorShare, error) {
	share, status, has := strings.Cut(s, ":")
	e := &errorShare{status: http.StatusInternalServerError}
	var err error
	if e.share, err = strconv.ParseFloat(share, 64); err != nil || !(e.share >= 0 && e.share <= 1) {
		return nil, fmt.Errorf("%q is no share between 0 and 1", share)
	}
	if has {
		if e.status, err = strconv.Atoi(status); err != nil || e.status < 400 || e.status > 599 {
			return nil, fmt.Errorf("%q is no status between 400 and 599", status)
		}
	}
	return e, nil
}

// next tells whether this request is one of the share.
func (e *errorShare) next() bool {
	n := float64(e.n.Add(1))
	return math.Floor(n*e.share) > math.Floor((n-1)*e.share)
}

// stall holds all requests in the last length of each period since the start, until the period ends.
type stall struct{ length, period time.Duration }

// parseStall reads "1s@10s".
func parseStall(s string) (*stall, error) {
	length, period, ok := strings.Cut(s, "@")
	if !ok {
		return nil, fmt.Errorf("want LENGTH@PERIOD, e.g. 1s@10s")
	}
	st := &stall{}
	var err error
	if st.length, err = positive(length); err != nil {
		return nil, err
	}
	if st.period, err = positive(period); err != nil {
		return nil, err
	}
	if st.length >= st.period {
		return nil, fmt.Errorf("a stall of %s does not fit into %s", length, period)
	}
	return st, nil
}

// left tells how long a request that arrives age after the start is held.
func (s *stall) left(age time.Duration) time.Duration {
	into := age % s.period
	if into < s.period-s.length {
		return 0
	}
	return s.period - into
}

// lockup answers the first after requests and none from then on.
type lockup struct {
	after uint64
	n     atomic.Uint64
}

// parseLockup reads "after:100".
func parseLockup(s string) (*lockup, error) {
	n, ok := strings.CutPrefix(s, "after:")
	if !ok {
		return nil, fmt.Errorf("want after:N, e.g. after:100")
	}
	after, err := strconv.ParseUint(n, 10, 63)
	if err != nil {
		return nil, fmt.Errorf("%q is no count", n)
	}
	return &lockup{after: after}, nil
}

// holds counts a request and tells whether it is never answered.
func (l *lockup) holds() bool { return l.n.Add(1) > l.after }

// positive parses a duration that is not negative.
func positive(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no duration such as 40ms or 1.5s", s)
	}
	return d, nil
}

// cutLast cuts at the last sep: a route may hold = itself, a value never does.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
