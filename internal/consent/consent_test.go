package consent

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"seatrial/engine"
	"seatrial/fault"
	"seatrial/manifest"
)

// names is a resolver that counts its look-ups.
type names struct {
	known map[string][]string
	asked int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.asked++
	list, ok := n.known[host]
	if !ok {
		return nil, errors.New("no such host")
	}
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}

// ledger is a ledger with one environment.
type ledger struct {
	origin string
	err    error
}

func (l ledger) Origin(o string) (engine.Target, bool, error) {
	if o != l.origin {
		return engine.Target{}, false, nil
	}
	if l.err != nil {
		return engine.Target{}, true, l.err
	}
	u, _ := url.Parse(o)
	t, err := engine.Admit(u, []netip.AddrPort{netip.MustParseAddrPort(u.Host)}, 0, engine.Proof{Kind: "environment", Name: "e"})
	return t, true, err
}

func wantRefused(t *testing.T, got engine.Target, err error) *fault.Error {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Code != fault.LOD001 || got.OK() || f.Next == "" {
		t.Fatalf("got %+v and %v, want LOD-001", got, err)
	}
	return f
}

func TestAdmit(t *testing.T) {
	for raw, want := range map[string]string{
		"http://127.0.0.1:8080":          "http://127.0.0.1:8080",
		"http://127.0.0.1:8080/":         "http://127.0.0.1:8080",
		"HTTP://127.9.8.7:8080":          "http://127.9.8.7:8080",
		"http://[::1]:8080":              "http://[::1]:8080",
		"http://[::ffff:127.0.0.1]:8080": "http://127.0.0.1:8080",
		"http://[0:0:0::1]:8080":         "http://[::1]:8080",
		"http://LOCAL.test.:8080":        "http://local.test:8080",
		"http://127.0.0.1":               "http://127.0.0.1",
		"https://[::1]:443":              "https://[::1]",
	} {
		r := &names{known: map[string][]string{"local.test": {"127.0.0.1", "127.0.0.1"}}}
		got, notice, err := Admit(t.Context(), "local", manifest.Target{URL: raw, MaxRate: 50}, r)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		base := got.Base()
		if base.String() != want || len(got.Addrs()) != 1 || got.MaxRate() != 50 || got.Proof().Kind != "consent" || got.Proof().Name != "local" {
			t.Errorf("%s: base %s, addresses %v, proof %+v", raw, base.String(), got.Addrs(), got.Proof())
		}
		if notice != Forwarder || !strings.Contains(string(notice), "a forwarder behind it cannot be excluded") {
			t.Errorf("%s: notice %q", raw, notice)
		}
	}
}

func TestAdmitRefuses(t *testing.T) {
	r := &names{known: map[string][]string{
		"staging.example.com": {"192.0.2.10"},
		"mixed.test":          {"127.0.0.1", "192.0.2.10"},
		"empty.test":          {},
		"zone.test":           {"::1%lo"},
		"any.test":            {"0.0.0.0"},
	}}
	for _, raw := range []string{
		"", "127.0.0.1:8080", "/", "ftp://127.0.0.1", "http://", "http://:80", "http://127.0.0.1:", "http://127.0.0.1:0",
		"http://127.0.0.1:65536", "http://127.0.0.1:x", "http://user:hunter2@127.0.0.1", "http://127.0.0.1/path", "http://127.0.0.1?q=1",
		"http://127.0.0.1?", "http://127.0.0.1#f", "http://0.0.0.0:80", "http://[::]:80", "http://192.0.2.10", "http://10.0.0.1",
		"http://169.254.169.254", "http://[fe80::1%25lo]:80", "http://[::1%25lo]:80", "http://[::ffff:192.0.2.1]:80",
		"http://127.1", "http://0x7f.1", "http://2130706433", "http://0177.0.0.1", "http://127.0.0.1.", "http://127.0.0.1.5", "http://lo%63alhost",
		"http://staging.example.com", "http://mixed.test", "http://empty.test", "http://zone.test", "http://any.test", "http://unknown.test",
		"http://localhöst", "http://a b", "http://127.0.0.1\n", "http://" + strings.Repeat("a", 254), "http://..", "unix:///tmp/x",
	} {
		got, _, err := Admit(t.Context(), "it", manifest.Target{URL: raw, MaxRate: 1}, r)
		f, ok := fault.As(err)
		if raw == "http://lo%63alhost" && err != nil { // decodes to localhost, which this resolver does not know
			wantRefused(t, got, err)
			continue
		}
		if !ok || f.Code != fault.LOD001 || got.OK() {
			t.Errorf("%q: got %v, want LOD-001", raw, err)
		} else if strings.Contains(f.Error()+f.Next+f.Detail, "hunter2") {
			t.Errorf("%q: the password is in the error", raw)
		}
	}
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		got, _, err := Admit(t.Context(), "it", manifest.Target{URL: "http://127.0.0.1", MaxRate: manifest.Rate(rate)}, r)
		if f := wantRefused(t, got, err); !strings.Contains(f.Message, "max_rate") {
			t.Errorf("rate %v: %q", rate, f.Message)
		}
	}
	got, _, err := Admit(t.Context(), "it", manifest.Target{URL: "http://localhost", MaxRate: 1}, nil)
	wantRefused(t, got, err)
}

func TestNameIsLookedUpOnceAndPinned(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	at := netip.MustParseAddrPort(l.Addr().String())
	r := &names{known: map[string][]string{"localhost": {"::1", "127.0.0.2"}}}
	got, _, err := Admit(t.Context(), "it", manifest.Target{URL: "http://localhost:" + l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':')+1:], MaxRate: 1}, r)
	if err != nil || r.asked != 1 {
		t.Fatalf("%v after %d look-ups", err, r.asked)
	}
	if a := got.Addrs(); len(a) != 1 || a[0] != at {
		t.Errorf("pinned %v, want only %v, which is served", a, at)
	}
	r.known["localhost"] = []string{"192.0.2.1"}
	if a := got.Addrs(); len(a) != 1 || a[0] != at {
		t.Errorf("a later change of the name reached the target: %v", a)
	}
	r.known["localhost"] = []string{"127.0.0.9", "127.0.0.8"}
	got, _, err = Admit(t.Context(), "it", manifest.Target{URL: "http://localhost:1", MaxRate: 1}, r)
	if err != nil || len(got.Addrs()) != 2 || got.Addrs()[0].String() != "127.0.0.8:1" {
		t.Errorf("nothing served: %v, %v", got.Addrs(), err)
	}
}

func TestAdmitURL(t *testing.T) {
	targets := map[string]manifest.Target{
		"a": {URL: "http://127.0.0.1:8080", MaxRate: 50},
		"b": {URL: "http://127.0.0.1:8080/", MaxRate: 5},
		"c": {URL: "http://user:secret@127.0.0.1:9999", MaxRate: 5},
		"d": {URL: "http://staging.example.com", MaxRate: 5},
	}
	l := ledger{origin: "http://127.0.0.1:4000"}
	r := &names{}
	got, notice, err := AdmitURL(t.Context(), "http://127.0.0.1:8080/", targets, r, l)
	if err != nil || got.Proof().Name != "b" || notice != Forwarder {
		t.Errorf("listed: %+v, %q, %v", got.Proof(), notice, err)
	}
	got, notice, err = AdmitURL(t.Context(), "http://127.0.0.1:4000", targets, r, l)
	if err != nil || got.Proof().Kind != "environment" || notice != "" {
		t.Errorf("environment: %+v, %q, %v", got.Proof(), notice, err)
	}
	for _, raw := range []string{"https://prod.example.com/a?token=s3cret", "https://u:s3cret@prod.example.com", "http://127.0.0.1:9999",
		"http://127.0.0.1:4001", "https://127.0.0.1:8080", "http://localhost:8080", "http://127.0.0.1:8080/s3cret", "::", "", "http://s3cret%zz"} {
		got, _, err := AdmitURL(t.Context(), raw, targets, r, l)
		if f := wantRefused(t, got, err); strings.Contains(f.Error()+f.Detail+f.Next, "s3cret") {
			t.Errorf("%q: %q tells a secret", raw, f.Error())
		}
	}
	_, _, err = AdmitURL(t.Context(), "https://prod.example.com", targets, r, nil)
	if err == nil || !strings.Contains(err.Error(), "https://prod.example.com") {
		t.Errorf("%v does not name the URL", err)
	}
	if r.asked != 0 {
		t.Errorf("%d names were looked up for URLs that nothing lists", r.asked)
	}
	got, _, err = AdmitURL(t.Context(), "http://127.0.0.1:4000", nil, r, ledger{origin: l.origin, err: fault.New(fault.LOD001, "not ours")})
	wantRefused(t, got, err)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"http://127.0.0.1:8080", "https://[::1]/", "http://a@b", "http://127.1", "http://localhost:80?x", "http://[::ffff:1.2.3.4]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := &names{} // knows no name, so that only literal addresses can be admitted
		got, _, err := Admit(t.Context(), "x", manifest.Target{URL: raw, MaxRate: 1}, r)
		if err != nil {
			wantRefused(t, got, err)
			return
		}
		base := got.Base()
		ip, perr := netip.ParseAddr(base.Hostname())
		if perr != nil || !ip.IsLoopback() || !got.Addrs()[0].Addr().IsLoopback() || base.User != nil {
			t.Errorf("%q was admitted as %s, %v", raw, base.String(), got.Addrs())
		}
		o, err := parse(raw)
		if again, err2 := parse(o.String()); err != nil || err2 != nil || again != o {
			t.Errorf("%q: %v reads back as %v", raw, o, again)
		}
	})
}
