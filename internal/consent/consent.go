// Package consent admits targets that Seatrial did not bring up itself. In this version only
// addresses of this machine's own loopback are admitted, and only when the manifest lists them with
// a maximum rate.
package consent

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"seatrial/engine"
	"seatrial/fault"
	"seatrial/manifest"
)

// Notice is a sentence that every report of a run against an admitted target carries.
type Notice string

// Forwarder is what a loopback address cannot tell (SA-2).
const Forwarder Notice = "The target is a loopback address that Seatrial did not bring up: a forwarder behind it cannot be excluded."

// lookupTimeout bounds the one look-up of a name.
const lookupTimeout = 5 * time.Second

// Resolver looks names up; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Ledger is the ledger of environments; env.Ledger is one. The second result is false when no
// environment has that origin ("http://HOST:PORT").
type Ledger interface {
	Origin(origin string) (engine.Target, bool, error)
}

// Admit admits the target of that name in the manifest, or refuses it with LOD-001. A name in its URL
// is looked up once, and every address that comes back must be loopback; the addresses are pinned.
// Where a name has several loopback addresses (localhost mostly has two), one connection each, without
// a byte sent, tells which of them are served; the others are left out. Proxy settings are never read.
func Admit(ctx context.Context, name string, t manifest.Target, r Resolver) (engine.Target, Notice, error) {
	if path, ok := socketOf(t.URL); ok {
		return admitSocket(name, path, t)
	}
	o, err := parse(t.URL)
	if err != nil {
		return engine.Target{}, "", refuse("the target %q is refused: %s", name, err)
	}
	if rate := float64(t.MaxRate); !(rate > 0) || math.IsInf(rate, 0) {
		return engine.Target{}, "", noRate(name)
	}
	addrs, err := o.resolve(ctx, r)
	if err != nil {
		return engine.Target{}, "", refuse("the target %q at %s is refused: %s", name, o, err)
	}
	got, err := engine.Admit(o.url(), served(ctx, addrs), float64(t.MaxRate), engine.Proof{Kind: "consent", Name: name,
		Detail: fmt.Sprintf("listed under targets.%s, loopback only, at most %g requests per second; addresses resolved once and pinned", name, float64(t.MaxRate))})
	if err != nil {
		return engine.Target{}, "", refuse("the target %q is refused: %s", name, err).Because(err)
	}
	return got, Forwarder, nil
}

// socketOf gives the path of a Unix socket's URL.
func socketOf(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "unix" {
		return "", false
	}
	return u.Path, u.Host == "" && u.RawQuery == "" && u.Fragment == ""
}

// SocketForwarder is what the path of a socket cannot tell (SA-2).
const SocketForwarder Notice = "The target is a Unix socket that Seatrial did not bring up: a forwarder behind it cannot be excluded."

// admitSocket admits a Unix socket, which is as local as a loopback address is.
func admitSocket(name, path string, t manifest.Target) (engine.Target, Notice, error) {
	if rate := float64(t.MaxRate); !(rate > 0) || math.IsInf(rate, 0) {
		return engine.Target{}, "", noRate(name)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return engine.Target{}, "", refuse("the target %q is refused: %s is not a Unix socket", name, strconv.Quote(path))
	}
	got, err := engine.AdmitUnix(&url.URL{Scheme: "http", Host: "localhost"}, path, float64(t.MaxRate), engine.Proof{Kind: "consent", Name: name,
		Detail: fmt.Sprintf("listed under targets.%s, a Unix socket, at most %g requests per second", name, float64(t.MaxRate))})
	if err != nil {
		return engine.Target{}, "", refuse("the target %q is refused: %s", name, err).Because(err)
	}
	return got, SocketForwarder, nil
}

func noRate(name string) *fault.Error {
	return fault.New(fault.LOD001, "the target %q has no `max_rate`, so nothing says how much it allows", name).
		WithNext("Set `targets.%s.max_rate`, e.g. 100/s.", name)
}

// AdmitURL admits a URL that was given by hand (`run --url`): one whose origin a target of the
// manifest lists, or a service of an environment in the ledger. Anything else is refused with LOD-001
// before any name is looked up and any packet sent.
func AdmitURL(ctx context.Context, raw string, targets map[string]manifest.Target, r Resolver, l Ledger) (engine.Target, Notice, error) {
	if path, ok := socketOf(raw); ok {
		return admitListedSocket(path, targets)
	}
	o, err := parse(raw)
	if err != nil {
		return engine.Target{}, "", refuse("the load target %s is refused: %s", Redact(raw), err)
	}
	if name, ok := listedAs(o, targets); ok {
		return Admit(ctx, name, targets[name], r)
	}
	if l != nil {
		t, known, err := l.Origin(o.String())
		if err != nil {
			return engine.Target{}, "", err
		}
		if known && t.OK() {
			return t, "", nil
		}
	}
	return engine.Target{}, "", refuse("the load target %s is not an environment this engine created, nor a target of the manifest", o)
}

// admitListedSocket admits a socket that a target lists; of several, as the one that allows least.
func admitListedSocket(path string, targets map[string]manifest.Target) (engine.Target, Notice, error) {
	found := ""
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		if p, ok := socketOf(targets[name].URL); ok && p == path && (found == "" || targets[name].MaxRate < targets[found].MaxRate) {
			found = name
		}
	}
	if found == "" {
		return engine.Target{}, "", refuse("the load target unix://%s is not a target of the manifest", path)
	}
	return admitSocket(found, path, targets[found])
}

// listedAs finds the target of an origin; of several, the one that allows least.
func listedAs(o origin, targets map[string]manifest.Target) (string, bool) {
	found := ""
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		listed, err := parse(targets[name].URL)
		if err == nil && listed == o && (found == "" || targets[name].MaxRate < targets[found].MaxRate) {
			found = name
		}
	}
	return found, found != ""
}

func refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.LOD001, format, args...).
		WithNext("Bring an environment up (`seatrial env up`), or list a loopback URL under `targets:` with `max_rate`. Other hosts are not admitted in this version.")
}

// Redact gives the scheme, host and port of a URL and nothing else of it; a URL that cannot be read
// is not repeated at all.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || len(u.Host) > 300 {
		return "(a URL that cannot be read)"
	}
	return strconv.Quote(u.Scheme + "://" + u.Host)
}

// origin is a scheme, host and port in one spelling, so that two can be compared.
type origin struct {
	scheme string
	host   string // lower case name, or an address in its canonical form, without brackets
	port   uint16
}

func (o origin) hostPort() string {
	host := o.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(o.port))
}

// String is "scheme://host:port", the port always written.
func (o origin) String() string { return o.scheme + "://" + o.hostPort() }

// url leaves a default port out, as clients do in the Host header.
func (o origin) url() *url.URL {
	host := o.hostPort()
	if o.port == defaultPort(o.scheme) {
		host = strings.TrimSuffix(host, ":"+strconv.Itoa(int(o.port)))
	}
	return &url.URL{Scheme: o.scheme, Host: host}
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// parse reads the URL of a target: http or https, a host, and nothing that a target must not carry.
func parse(raw string) (origin, error) {
	if raw == "" {
		return origin{}, fmt.Errorf("it has no URL")
	}
	u, err := url.Parse(raw)
	if !strings.Contains(raw, "://") {
		return origin{}, fmt.Errorf("its URL must begin with http:// or https://")
	}
	if err != nil || len(raw) > 2048 {
		return origin{}, fmt.Errorf("its URL cannot be read")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return origin{}, fmt.Errorf("its URL must begin with http:// or https://")
	case u.User != nil:
		return origin{}, fmt.Errorf("its URL holds user info; use `load.auth` instead")
	case u.Hostname() == "":
		return origin{}, fmt.Errorf("its URL names no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return origin{}, fmt.Errorf("its URL must end after the host and port; paths come from the traffic")
	}
	port, err := portOf(u)
	if err != nil {
		return origin{}, err
	}
	host, err := canonicalHost(u.Hostname())
	return origin{scheme: u.Scheme, host: host, port: port}, err
}

func portOf(u *url.URL) (uint16, error) {
	if u.Port() == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, fmt.Errorf("its URL has an empty port")
		}
		return defaultPort(u.Scheme), nil
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("its URL has no valid port")
	}
	return uint16(n), nil
}

// canonicalHost refuses spellings of addresses that programs read differently ("127.1", "0x7f.1",
// "017700000001"): what is checked must be what is connected to.
func canonicalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("its address has a zone")
		}
		return ip.Unmap().String(), nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > 253 {
		return "", fmt.Errorf("its host is not a name or an address")
	}
	for _, r := range host {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			return "", fmt.Errorf("its host holds a character that names do not have")
		}
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || last[0] >= '0' && last[0] <= '9' {
		return "", fmt.Errorf("its host is neither a name nor an address in the usual form")
	}
	return host, nil
}

// resolve gives the addresses of an origin, all of them loopback.
func (o origin) resolve(ctx context.Context, r Resolver) ([]netip.AddrPort, error) {
	ips, err := o.lookup(ctx, r)
	if err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	for _, ip := range ips {
		ip = ip.Unmap()
		if !ip.IsLoopback() || ip.Zone() != "" {
			return nil, fmt.Errorf("%s is not a loopback address", ip)
		}
		if a := netip.AddrPortFrom(ip, o.port); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("its name has no address")
	}
	// The order must not depend on the resolver. IPv4 comes first, as services mostly listen there.
	slices.SortFunc(out, netip.AddrPort.Compare)
	return out, nil
}

// served gives those of several admitted addresses that accept a connection; all when none does, so
// that the run itself meets the refusal.
func served(ctx context.Context, addrs []netip.AddrPort) []netip.AddrPort {
	if len(addrs) < 2 {
		return addrs
	}
	var out []netip.AddrPort
	d := net.Dialer{Timeout: time.Second}
	for _, a := range addrs {
		c, err := d.DialContext(ctx, "tcp", a.String())
		if err != nil {
			continue
		}
		_ = c.Close()
		out = append(out, a)
	}
	if len(out) == 0 {
		return addrs
	}
	return out
}

func (o origin) lookup(ctx context.Context, r Resolver) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(o.host); err == nil {
		return []netip.Addr{ip}, nil
	}
	if r == nil {
		return nil, fmt.Errorf("its name cannot be looked up here")
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	ips, err := r.LookupNetIP(ctx, "ip", o.host)
	if err != nil {
		return nil, fmt.Errorf("its name cannot be looked up")
	}
	return ips, nil
}
