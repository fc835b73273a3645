package env

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"seatrial/engine"
	"seatrial/fault"
)

// Target admits a service of this environment as a target of load, after proving that what listens
// on each of its addresses is the process that the ledger names. The proof is made anew at each
// call. An empty name means the only service.
func (e *Environment) Target(service string) (engine.Target, error) {
	e.mu.Lock()
	gone := e.down
	e.mu.Unlock()
	if gone {
		return engine.Target{}, fault.New(fault.LOD001, "the environment %q is no longer held by this process", e.cfg.Name)
	}
	info := e.Info()
	return admit(&info, e.state.Token, service, e.cfg.Provider)
}

// Verify makes the proof of Target again, e.g. in the middle of a run.
func (e *Environment) Verify(service string) error {
	_, err := e.Target(service)
	return err
}

func admit(info *Info, token, service string, p Provider) (engine.Target, error) {
	if service == "" && len(info.Services) > 0 {
		service = info.Services[0].Name
		for _, s := range info.Services {
			if s.Name != service {
				return engine.Target{}, fault.New(fault.LOD001, "the environment %q has several services and none was named", info.Name).
					WithNext("Name one with `load.target`.")
			}
		}
	}
	var base *url.URL
	var addrs []netip.AddrPort
	var pids []string
	for _, s := range info.Services {
		if s.Name != service {
			continue
		}
		u, addr, err := loopback(s.URL)
		if err == nil {
			err = p.Prove(token, s.Resource, addr)
		}
		if err != nil {
			return engine.Target{}, fault.New(fault.LOD001, "the service %q of the environment %q cannot be proved to be ours: %s",
				s.Resource.ID, info.Name, err).Because(err)
		}
		if base == nil {
			base = u
		}
		addrs = append(addrs, addr)
		pids = append(pids, fmt.Sprint(s.Resource.Process.PID))
	}
	if base == nil {
		return engine.Target{}, fault.New(fault.LOD001, "the environment %q has no service %q", info.Name, service)
	}
	return engine.Admit(base, addrs, 0, engine.Proof{Kind: "environment", Name: info.Name, Detail: fmt.Sprintf(
		"service %s of the environment %s: its own process (%s) listens on the port, checked against the ledger and the kernel's socket table",
		service, info.Name, strings.Join(pids, ", "))})
}

// loopback reads a URL of the ledger. The ledger is a file: it is not believed about addresses.
func loopback(raw string) (*url.URL, netip.AddrPort, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, netip.AddrPort{}, fmt.Errorf("its URL cannot be read")
	}
	addr, err := netip.ParseAddrPort(u.Host)
	if err != nil || u.Scheme != "http" || !addr.Addr().IsLoopback() || addr.Port() == 0 {
		return nil, netip.AddrPort{}, fmt.Errorf("its URL is not a loopback address and port")
	}
	return u, addr, nil
}

// Ledger is a project's ledger as package consent sees it.
type Ledger struct {
	Dir      string
	Provider Provider
}

// Origin admits "http://HOST:PORT" if it is a service of an environment in the ledger, with the
// proof of Target. The second result is false when no environment has that origin; then nothing was
// looked up and nothing sent.
func (l Ledger) Origin(origin string) (engine.Target, bool, error) {
	infos, err := List(l.Dir)
	if err != nil {
		return engine.Target{}, false, err
	}
	for i := range infos {
		for _, s := range infos[i].Services {
			if s.URL != origin || l.Provider == nil {
				continue
			}
			f, err := readFile(l.Dir, infos[i].Name)
			if err != nil {
				return engine.Target{}, true, fault.New(fault.LOD001, "the ledger of the environment %q cannot be read", infos[i].Name).Because(err)
			}
			t, err := admit(&f.Info, f.Token, s.Name, l.Provider)
			return t, true, err
		}
	}
	return engine.Target{}, false, nil
}

// Exists tells whether the ledger holds an environment of that name.
func Exists(dir, name string) bool {
	if checkName(name) != nil {
		return false
	}
	_, err := os.Lstat(envDir(dir, name))
	return err == nil
}
