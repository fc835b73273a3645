package plan

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"seatrial/engine/httpload"
	"seatrial/fault"
	"seatrial/judge"
	"seatrial/manifest"
	"seatrial/report/figure"
	"seatrial/schedule"
)

// maxPEM bounds a file of certificates or a key.
const maxPEM = 1 << 20

// carriage is what requests are carried by: version, connections and TLS.
func (c *compiler) carriage() {
	p, k := c.plan, c.load.Connections
	p.HTTP = httpload.Version(c.load.HTTP)
	if p.HTTP == httpload.HTTP3 && p.Engine.Name == httpload.LoopName {
		p.Engine, _ = httpload.Choose(httpload.PortableOne) // it is on every system
	}
	p.Connections = httpload.Connections{Fresh: k.Share, Resume: k.Resume, Streams: k.Streams, Warmup: p.Warmup}
	if k.Reuse == "per_request" {
		p.Connections.Fresh = 1
	}
	for _, b := range k.Bind {
		if a, err := netip.ParseAddr(b); err == nil { // the manifest has told of the others
			p.Connections.Bind = append(p.Connections.Bind, a)
		}
	}
	c.tls()
}

// arrivals is the schedule of connections; it follows rates.
func (c *compiler) connectionArrivals() {
	k, p := c.load.Connections, c.plan
	if k.Rate == 0 {
		return
	}
	p.ConnArrivals = schedule.Open{Kind: schedule.Kind(k.Arrivals), Seed: derive(p.Seed, "connections", "arrivals"), Rate: float64(k.Rate), Duration: p.Warmup + p.Duration}
	if n := p.ConnArrivals.Rate * p.ConnArrivals.Duration.Seconds(); n > maxArrivals {
		c.problem(fault.MAN004, "load.connections.rate", "%s new connections a second for %s are %s, and one run opens %s at most", figure.Number(p.ConnArrivals.Rate),
			figure.Duration(p.ConnArrivals.Duration), figure.Count(uint64(min(n, math.MaxInt64))), figure.Count(maxArrivals))
		return
	}
	if err := p.ConnArrivals.Validate(); err != nil {
		c.problem(fault.MAN004, "load.connections.rate", "the schedule of connections is not possible: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// ConnectionSchedule gives the arrivals of connections, afresh each time; nil when the plan has none.
func (p *Plan) ConnectionSchedule() schedule.Schedule {
	if p.ConnArrivals.Rate == 0 {
		return nil
	}
	s, err := schedule.New(p.ConnArrivals)
	if err != nil {
		panic("plan: a compiled schedule is refused: " + err.Error()) // Compile has validated it
	}
	return s
}

// ConnectionsDue is how many connections the plan's own schedule of them means to open in the warm-up and
// behind it.
func (p *Plan) ConnectionsDue() (warmup, judged uint64) {
	s := p.ConnectionSchedule()
	if s == nil {
		return 0, 0
	}
	for a, ok := s.Next(); ok; a, ok = s.Next() {
		if a.Due < p.Warmup {
			warmup++
		} else {
			judged++
		}
	}
	return warmup, judged
}

// tls reads the certificates. No part of a key is ever in a message.
func (c *compiler) tls() {
	t := c.load.TLS
	versions := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
	out := httpload.TLS{ServerName: t.ServerName, Insecure: t.Insecure, MinVersion: versions[t.Min], MaxVersion: versions[t.Max]}
	if t.CA != "" {
		if b, ok := c.pem("load.tls.ca", t.CA); ok {
			out.RootCAs = x509.NewCertPool()
			if !out.RootCAs.AppendCertsFromPEM(b) {
				c.problem(fault.MAN004, "load.tls.ca", "load.tls.ca: the file %s holds no certificate in PEM", t.CA)
			}
			c.plan.trusted = digestOf(b)
		}
	}
	if t.Cert != "" && t.Key != "" {
		cert, ok := c.pem("load.tls.cert", t.Cert)
		key, ok2 := c.pem("load.tls.key", t.Key)
		if ok && ok2 {
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				c.problem(fault.MAN004, "load.tls.cert", "load.tls.cert and load.tls.key: the files %s and %s are not a certificate with its private key, in PEM", t.Cert, t.Key)
			}
			out.Certificates = []tls.Certificate{pair}
			c.plan.shown = digestOf(cert)
			c.plan.secrets = append(c.plan.secrets, strings.TrimSpace(string(key)))
		}
	}
	if t.Insecure {
		c.warn("any certificate is accepted (load.tls.insecure), so nothing proves that it was the target that answered")
	}
	c.plan.TLS = out
}

func (c *compiler) pem(path, file string) ([]byte, bool) {
	b, err := readFile(c.m.Resolve(file), maxPEM)
	if err != nil {
		c.problem(fault.MAN004, path, "%s: the file %s cannot be read", path, file).Cause = err
		return nil, false
	}
	return b, true
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// cargo is what the requests of a route carry, and what their answers must be.
type cargo struct {
	fields []httpload.Field
	hidden []bool // by field: its value is a secret
	body   []byte
	secret bool // the body holds one
	expect *httpload.Expect
	want   httpload.Expectation // what expect was made from
}

// cargoes prepares load.requests by route.
func (c *compiler) cargoes() {
	c.carried = map[string]*cargo{}
	for _, route := range sortedKeys(c.load.Requests) {
		c.carried[route] = c.cargo("load.requests["+fmt.Sprintf("%q", route)+"]", c.load.Requests[route])
	}
}

func (c *compiler) cargo(path string, r manifest.Request) *cargo {
	out := &cargo{}
	add := func(name, value string, secret bool) {
		out.fields = append(out.fields, httpload.Field{Name: name, Value: []byte(value)})
		out.hidden = append(out.hidden, secret)
		if secret && value != "" {
			c.plan.secrets = append(c.plan.secrets, value)
		}
	}
	typed := false
	for _, name := range sortedKeys(r.Headers) {
		value, fromEnv, ok := c.substitute(path+".headers."+name, r.Headers[name])
		if ok {
			add(name, value, fromEnv || manifest.Sensitive(name))
		}
		typed = typed || strings.EqualFold(name, "content-type")
	}
	switch {
	case r.JSON != nil:
		out.body = []byte(*r.JSON)
		if !typed {
			add("Content-Type", "application/json", false)
		}
	case r.Body != "":
		body, fromEnv, ok := c.substitute(path+".body", r.Body)
		if ok {
			out.body, out.secret = []byte(body), fromEnv
		}
		if fromEnv {
			c.plan.secrets = append(c.plan.secrets, body)
		}
	}
	c.expectation(path+".expect", r.Expect, out)
	return out
}

func (c *compiler) expectation(path string, e manifest.Expect, out *cargo) {
	w := httpload.Expectation{Status: e.Status, Contains: e.BodyContains, MinBytes: e.MinBytes, MaxBytes: e.MaxBytes}
	for _, name := range sortedKeys(e.Header) {
		w.Fields = append(w.Fields, httpload.FieldExpect{Name: name, Equals: e.Header[name]})
	}
	if len(w.Status) == 0 && len(w.Fields) == 0 && len(w.Contains) == 0 && w.MinBytes == 0 && w.MaxBytes == 0 {
		return
	}
	x, err := httpload.NewExpect(w)
	if err != nil { // the manifest has checked it; this is for what it overlooks
		c.problem(fault.MAN004, path, "%s: %s", path, strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	out.expect, out.want = x, w
}

// expectations has each of them judged, those of routes that are not sent too.
func (c *compiler) expectations() {
	for _, route := range sortedKeys(c.load.Requests) {
		if c.carried[route].expect == nil {
			continue
		}
		at := slices.IndexFunc(c.sent, func(s candidate) bool { return s.name() == route })
		c.plan.Checks = append(c.plan.Checks, judge.Check{Name: judge.Expectation, Route: at, RouteName: route})
	}
}

// warnOfCargo names what load.requests declares and this run does not send.
func (c *compiler) warnOfCargo() {
	for _, route := range sortedKeys(c.load.Requests) {
		if !slices.ContainsFunc(c.sent, func(s candidate) bool { return s.name() == route }) {
			c.warn("load.requests names %s, which this run does not send", route)
		}
	}
}

// carriageDigest covers everything about versions, connections, TLS, bodies and expectations that
// decides what is sent and what is an error; no secret. It is empty where the manifest says nothing.
func (c *compiler) carriageDigest() string {
	type field struct{ Name, Value string }
	type carried struct {
		Route  string
		Fields []field
		Body   string
		Want   httpload.Expectation
	}
	p, k := c.plan, c.load.Connections
	all := struct {
		HTTP       string
		Reuse      string
		Share      float64
		Arrivals   schedule.Open
		Resume     float64
		Streams    int
		Bind       []string
		ServerName string
		Insecure   bool
		CA, Cert   string
		Min, Max   string
		Requests   []carried
	}{string(p.HTTP), k.Reuse, k.Share, p.ConnArrivals, k.Resume, k.Streams, k.Bind, p.TLS.ServerName, p.TLS.Insecure, p.trusted, p.shown,
		c.load.TLS.Min, c.load.TLS.Max, nil}
	for _, route := range sortedKeys(c.carried) {
		g := c.carried[route]
		one := carried{Route: route, Want: g.want}
		for i, f := range g.fields {
			value := string(f.Value)
			if g.hidden[i] {
				value = ""
			}
			one.Fields = append(one.Fields, field{f.Name, value})
		}
		if !g.secret {
			one.Body = digestOf(g.body)
		}
		all.Requests = append(all.Requests, one)
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic("plan: " + err.Error()) // only finite numbers and text stand in a plan
	}
	return digestOf(b)
}

// CheckCarried gives every problem of what the manifest has requests carry, without any traffic: headers
// and secrets, bodies and expectations, certificates.
func CheckCarried(m *manifest.Manifest, getenv func(string) string) fault.List {
	c := &compiler{in: Input{Manifest: m, Getenv: getenv}, m: m, load: &m.Load, plan: &Plan{}}
	c.headers()
	c.carriage()
	c.cargoes()
	return c.problems
}
