package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"seatrial/fault"
	"seatrial/manifest"
)

// Defaults of a health check whose manifest left them out.
const (
	defaultHealthTimeout = 60 * time.Second
	probeTimeout         = 5 * time.Second
	portAttempts         = 3
)

var (
	errExited = errors.New("the process ended")
	errSlow   = errors.New("not ready in time")
)

// startReplica starts one replica and waits until it is ready. A port that the kernel called free
// can be taken before the service binds it; then another one is tried.
func (e *Environment) startReplica(ctx context.Context, name string, k int, svc manifest.Service, urls map[string]string) (Service, error) {
	fixed := svc.Port != 0 && k == 0
	for attempt := 1; ; attempt++ {
		port := svc.Port
		if !fixed {
			var err error
			if port, err = freePort(); err != nil {
				return Service{}, fault.New(fault.ENV009, "no free port for the service %q: %s", name, err).Because(err)
			}
		} else if portTaken(port) {
			return Service{}, fault.New(fault.ENV009, "the port %d of the service %q is taken by another process", port, name)
		}
		u, err := e.unit(name, k, port, svc, svc.Run, urls)
		if err != nil {
			return Service{}, err
		}
		got, inst, err := e.launch(ctx, u, svc.Health)
		if err == nil || inst == nil {
			return got, err
		}
		if !errors.Is(err, errExited) || ctx.Err() != nil {
			return Service{}, readyFault(u, svc.Health, *inst, err)
		}
		// What it may have left running must not be what holds the port.
		if left := e.cfg.Provider.Remove(ctx, u.Token, inst.Resource); left != nil {
			return Service{}, errors.Join(readyFault(u, svc.Health, *inst, err), left)
		}
		if fixed || attempt == portAttempts || !portTaken(port) {
			return Service{}, readyFault(u, svc.Health, *inst, err)
		}
		e.say("%s: port %d was taken by another process meanwhile; trying another", u.ID, port)
	}
}

// launch starts a unit and waits. The instance is nil when it was never started.
func (e *Environment) launch(ctx context.Context, u Unit, h manifest.Health) (Service, *Instance, error) {
	e.say("%s: starting on port %d", u.ID, u.Port)
	began := time.Now()
	var inst *Instance
	r := Resource{Kind: e.cfg.Provider.Name(), ID: u.ID, Service: u.Service, Replica: u.Replica, Port: u.Port}
	err := e.track(r, func() (Resource, error) {
		i, err := e.cfg.Provider.Start(ctx, u)
		if err != nil {
			return Resource{}, fault.New(fault.ENV003, "the service %q could not be started: %s", u.Service, reason(err)).Because(err)
		}
		inst = &i
		return i.Resource, nil
	})
	if err != nil {
		return Service{}, nil, err
	}
	addr, err := e.waitReady(ctx, u, h, *inst)
	if err != nil {
		return Service{}, inst, err
	}
	return Service{Name: u.Service, Replica: u.Replica, URL: "http://" + addr.String(), Resource: inst.Resource,
		Log: u.Log, StartupMS: float64(time.Since(began).Microseconds()) / 1000}, inst, nil
}

// waitReady polls the health path until it answers 2xx from a socket that is proved to be ours.
func (e *Environment) waitReady(ctx context.Context, u Unit, h manifest.Health, inst Instance) (netip.AddrPort, error) {
	timeout := h.Timeout
	if timeout <= 0 {
		timeout = defaultHealthTimeout
	}
	limit, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := errors.New("it was never asked")
	wait := 10 * time.Millisecond
	for {
		addr, err := probe(limit, u.Port, h.Path)
		if err == nil {
			err = e.cfg.Provider.Prove(u.Token, inst.Resource, addr)
		}
		if err == nil {
			return addr, nil
		}
		if limit.Err() == nil {
			last = err
		}
		select {
		case <-inst.Exited:
			return netip.AddrPort{}, fmt.Errorf("%w: %s", errExited, inst.Status())
		case <-limit.Done():
			return netip.AddrPort{}, fmt.Errorf("%w: %w", errSlow, last)
		case <-time.After(wait):
			wait = min(2*wait, 250*time.Millisecond)
		}
	}
}

// probe asks for the health path once, on the IPv4 and then on the IPv6 loopback address.
func probe(ctx context.Context, port int, path string) (netip.AddrPort, error) {
	v4 := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	err := ask(ctx, v4, path)
	if err == nil {
		return v4, nil
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		v6 := netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port))
		if ask(ctx, v6, path) == nil {
			return v6, nil
		}
	}
	return netip.AddrPort{}, err
}

// ask sends one GET straight to addr: no proxy, no redirect, no connection kept.
func ask(ctx context.Context, addr netip.AddrPort, path string) error {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr.String()+path, nil)
	if err != nil {
		return err
	}
	tr := &http.Transport{DisableKeepAlives: true, Proxy: nil, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
		}}
	defer tr.CloseIdleConnections()
	client := http.Client{Transport: tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}

func readyFault(u Unit, h manifest.Health, inst Instance, err error) error {
	switch {
	case errors.Is(err, errExited):
		return fault.New(fault.ENV003, "the service %q ended before it was ready: %s", u.ID, inst.Status()).
			WithDetail(tail(u.Log)).Because(err)
	case errors.Is(err, errSlow):
		timeout := h.Timeout
		if timeout <= 0 {
			timeout = defaultHealthTimeout
		}
		path := h.Path
		if path == "" {
			path = "/"
		}
		return fault.New(fault.ENV004, "the service %q did not answer %s with 2xx within %s: %s", u.ID, path, timeout,
			lastReason(err)).WithDetail(tail(u.Log)).Because(err)
	}
	return err
}

// lastReason words why the last probe failed, without the URL that Go's errors repeat.
func lastReason(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer came"
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), errSlow.Error()+": ")
}

// freePort asks the kernel for a port that nobody uses on the IPv4 loopback address.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// portTaken tells whether a listener stands in the way on any loopback address a service would use.
func portTaken(port int) bool {
	for _, a := range []string{"127.0.0.1", "0.0.0.0"} {
		l, err := net.Listen("tcp4", fmt.Sprintf("%s:%d", a, port))
		if err != nil {
			return errors.Is(err, syscall.EADDRINUSE)
		}
		_ = l.Close()
	}
	return false
}
