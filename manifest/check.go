package manifest

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"seatrial/fault"
	"seatrial/traffic/logformat"
)

// checker fills in defaults and judges values that are well-formed.
type checker struct {
	*decoder
	m *Manifest
}

// given tells whether a person set the value.
func (c *checker) given(path string) bool { return c.m.Set(path) }

// fallback sets a default and why it is this one.
func fallback[T any](c *checker, path string, v *T, value T, why string) {
	if c.given(path) {
		return
	}
	*v = value
	c.origins[path] = Origin{From: "default", Why: why}
}

// say adds a problem, unless the value was refused already: one problem for one value is enough.
func (c *checker) say(code fault.Code, path, format string, args ...any) {
	if !c.legible(path) {
		return
	}
	c.problem(code, positionOf(c.origins, path), format, args...)
}

func (c *checker) defaults() {
	m := c.m
	fallback(c, "version", &m.Version, Version, "the version this build reads")
	fallback(c, "name", &m.Name, filepath.Base(m.Dir), "the folder's name")
	for _, name := range slices.Sorted(maps.Keys(m.Services)) {
		s, path := m.Services[name], join("services", name)
		fallback(c, path+".port", &s.Port, 0, "a free one is chosen")
		fallback(c, path+".health.path", &s.Health.Path, "/", "")
		fallback(c, path+".health.timeout", &s.Health.Timeout, 60*time.Second, "")
		fallback(c, path+".replicas", &s.Replicas, 1, "")
		m.Services[name] = s
	}
	for route, params := range m.Load.Params {
		for name, p := range params {
			fallback(c, join(join("load.params", route), name)+".pick", &p.Pick, "uniform", "")
			params[name] = p
		}
	}
	c.loadDefaults(&m.Load)
}

func (c *checker) loadDefaults(l *Load) {
	fallback(c, "load.enabled", &l.Enabled, false, "ci runs load only when it is true")
	fallback(c, "load.source", &l.Source, SourceNone, "no source is named")
	if only := c.places(); len(only) == 1 {
		fallback(c, "load.target", &l.Target, only[0], "the only one")
	}
	fallback(c, "load.scale", &l.Scale, 1, "a smoke uses 0.1, but 1 under source none")
	fallback(c, "load.rate", &l.Rate, 0, "production's rate x scale")
	fallback(c, "load.duration", &l.Duration, 60*time.Second, "a smoke takes 10s")
	fallback(c, "load.warmup", &l.Warmup, 5*time.Second, "a smoke has none")
	fallback(c, "load.arrivals", &l.Arrivals, "poisson", "")
	fallback(c, "load.engine", &l.Engine, "auto", "the event loop where there is one")
	fallback(c, "load.precise", &l.Precise, false, "")
	fallback(c, "load.http", &l.HTTP, "auto", "as the TLS handshake agrees; 1.1 without TLS")
	fallback(c, "load.seed", &l.Seed, 1, "")
	fallback(c, "load.connections.reuse", &l.Connections.Reuse, "keepalive", "")
	fallback(c, "load.connections.arrivals", &l.Connections.Arrivals, "poisson", "")
	fallback(c, "load.connections.resume", &l.Connections.Resume, 1, "as clients do")
	fallback(c, "load.connections.streams", &l.Connections.Streams, 100, "")
	fallback(c, "load.tls.insecure", &l.TLS.Insecure, false, "")
	fallback(c, "load.tls.min", &l.TLS.Min, "1.2", "")
	fallback(c, "load.tls.max", &l.TLS.Max, "1.3", "")
	fallback(c, "load.timeout", &l.Timeout, 10*time.Second, "")
	fallback(c, "load.connect_timeout", &l.ConnectTimeout, l.Timeout, "the same as timeout")
	fallback(c, "load.tls_timeout", &l.TLSTimeout, l.Timeout, "the same as timeout")
	fallback(c, "load.first_byte_timeout", &l.FirstByteTimeout, l.Timeout, "the same as timeout")
	fallback(c, "load.max_connections", &l.MaxConnections, 1000, "")
	fallback(c, "load.traffic.max_age", &l.Traffic.MaxAge, 336*time.Hour, "an endpoint mix moves at the rate a team ships")
	fallback(c, "load.abort.error_rate", &l.Abort.ErrorRate, 0.5, "")
	fallback(c, "load.abort.for", &l.Abort.For, 30*time.Second, "")
	c.thresholdDefaults(l)
}

// thresholdDefaults never fills in a limit that nothing could be measured against (TR-6, LD-7).
func (c *checker) thresholdDefaults(l *Load) {
	rate, increase, p95 := 0.01, 0.05, 0.25
	fallback(c, "load.thresholds.error_rate", &l.Thresholds.ErrorRate, &rate, "")
	fallback(c, "load.thresholds.client_error_increase", &l.Thresholds.ClientErrorIncrease, &increase, "")
	if l.Source == SourceOTel {
		fallback(c, "load.thresholds.p95_increase", &l.Thresholds.P95Increase, &p95, "source otel carries durations")
	} else if !c.given("load.thresholds.p95_increase") {
		why := "not in force: source " + l.Source + " carries no durations"
		if measured(l) {
			why = "not in force: nothing fills it in under source " + l.Source
		}
		c.origins["load.thresholds.p95_increase"] = Origin{From: "default", Why: why}
	}
}

// places are the names that load.target may hold.
func (c *checker) places() []string {
	return append(slices.Sorted(maps.Keys(c.m.Services)), slices.Sorted(maps.Keys(c.m.Targets))...)
}

func (c *checker) check() {
	m := c.m
	if m.Version != Version {
		c.say(fault.MAN004, "version", "version %d is not known; this build reads version %d", m.Version, Version)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Services)) {
		c.service(name, m.Services[name])
	}
	c.cycles()
	for _, name := range slices.Sorted(maps.Keys(m.Targets)) {
		c.target(name, m.Targets[name])
	}
	c.load(&m.Load)
}

// word tells whether s may be a name in the manifest.
func word(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[0] == '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

func (c *checker) name(path, name string) {
	if !word(name) {
		c.say(fault.MAN004, path, "%s: a name is made of letters, digits, - and _, at most 63 of them", path)
	}
}

// within refuses a number outside its range.
func within[T int | float64](c *checker, path string, v, low, high T) {
	if v < low || v > high {
		c.say(fault.MAN004, path, "%s must be from %v to %v, not %v", path, low, high, v)
	}
}

// positive refuses zero where the value was given or defaulted.
func positive[T int64 | float64 | time.Duration](c *checker, path string, v T) {
	if v <= 0 && c.legible(path) {
		c.say(fault.MAN004, path, "%s must be greater than zero", path)
	}
}

// legible tells whether decoding the value raised no problem of its own.
func (c *checker) legible(path string) bool { return !c.bad[path] }

func (c *checker) oneOf(path, v string, allowed ...string) {
	if c.legible(path) && !slices.Contains(allowed, v) {
		e := c.problem(fault.MAN004, positionOf(c.origins, path), "%s must be one of %s, not %s", path, strings.Join(allowed, ", "), shorten(v))
		if near, ok := nearest(v, allowed); ok {
			e.Next = "Write " + near + "."
		}
	}
}

func (c *checker) service(name string, s Service) {
	path := join("services", name)
	c.name(path, name)
	if strings.TrimSpace(s.Run) == "" && c.legible(path+".run") && c.legible(path) {
		c.say(fault.MAN004, path, "%s.run is needed: the command that starts the service", path)
	}
	within(c, path+".port", s.Port, 0, 65535)
	if c.legible(path + ".replicas") {
		within(c, path+".replicas", s.Replicas, 1, 1000)
	}
	if !strings.HasPrefix(s.Health.Path, "/") || strings.ContainsAny(s.Health.Path, " \t\r\n") {
		c.say(fault.MAN004, path+".health", "%s.health must be a path that begins with /", path)
	}
	positive(c, path+".health.timeout", s.Health.Timeout)
	within(c, path+".resources.cpu", s.Resources.CPU, 0, 4096)
	if _, ok := Bytes(s.Resources.Memory); !ok {
		c.say(fault.MAN004, path+".resources.memory", "%s.resources.memory must be a size such as 512MiB or 2GiB", path)
	}
	for i, need := range s.DependsOn {
		if _, ok := c.m.Services[need]; !ok {
			c.say(fault.MAN004, index(path+".depends_on", i), "%s.depends_on names %s, which is not a service", path, shorten(need))
		}
	}
	c.substitutions(path+".build", s.Build, true)
	c.substitutions(path+".run", s.Run, true)
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00 ") {
			c.say(fault.MAN004, join(path+".env", key), "%s is not a name of an environment variable", shorten(key))
		}
		c.substitutions(join(path+".env", key), s.Env[key], true)
	}
}

// substitutions refuses every ${...} that is not one of those of EN-1.
func (c *checker) substitutions(path, text string, service bool) {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "${")
		if !found {
			return
		}
		inner, tail, closed := strings.Cut(after, "}")
		if !closed {
			c.say(fault.MAN004, path, "%s holds ${ without a closing }", path)
			return
		}
		c.substitution(path, inner, service)
		rest = tail
	}
}

func (c *checker) substitution(path, inner string, service bool) {
	variable, env := strings.CutPrefix(inner, "env:")
	named, suffix, _ := strings.Cut(strings.TrimPrefix(inner, "service."), ".")
	_, exists := c.m.Services[named]
	switch {
	case env && word(variable):
	case service && inner == "PORT":
	case service && inner == "database.url":
		c.say(fault.MAN007, path, "%s: this build cannot do ${database.url} yet", path)
	case service && strings.HasPrefix(inner, "service.") && suffix == "url" && exists:
	case service && strings.HasPrefix(inner, "service.") && suffix == "url":
		c.say(fault.MAN004, path, "%s: ${%s} names a service that does not exist", path, inner)
	case service:
		c.say(fault.MAN004, path, "%s: ${%s} is not substituted; ${PORT}, ${service.NAME.url} and ${env:NAME} are, and the shell's own variables are written without braces", path, inner)
	default:
		c.say(fault.MAN004, path, "%s: ${%s} is not substituted here; only ${env:NAME} is", path, inner)
	}
}

// cycles refuses services that wait for each other, once per cycle.
func (c *checker) cycles() {
	state := map[string]int{} // 1: being visited, 2: done
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		trail = append(trail, name)
		state[name] = 1
		for i, need := range c.m.Services[name].DependsOn {
			if _, ok := c.m.Services[need]; !ok {
				continue
			}
			if state[need] == 1 {
				cycle := append(slices.Clone(trail[slices.Index(trail, need):]), need)
				c.say(fault.MAN004, index(join("services", name)+".depends_on", i), "services wait for each other: %s", strings.Join(cycle, " -> "))
			} else if state[need] == 0 {
				visit(need, trail)
			}
		}
		state[name] = 2
	}
	for _, name := range slices.Sorted(maps.Keys(c.m.Services)) {
		if state[name] == 0 {
			visit(name, nil)
		}
	}
}

func (c *checker) target(name string, t Target) {
	path := join("targets", name)
	c.name(path, name)
	if _, ok := c.m.Services[name]; ok {
		c.say(fault.MAN004, path, "%s has the name of a service; load.target could mean either", path)
	}
	u, err := url.Parse(t.URL)
	switch {
	case t.URL == "" && c.legible(path+".url"):
		c.say(fault.MAN004, path, "%s.url is needed", path)
	case t.URL == "":
	case err == nil && u.Scheme == "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != "" || u.Fragment != "" || strings.ContainsRune(u.Path, 0) {
			c.say(fault.MAN004, path+".url", "%s.url of a Unix socket must be its absolute path, such as unix:///run/app.sock", path)
		}
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		c.say(fault.MAN004, path+".url", "%s.url must be http or https with a host, such as http://127.0.0.1:8080", path)
	case u.User != nil:
		c.say(fault.MAN004, path+".url", "%s.url must not hold a user name or password; use load.auth", path)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		c.say(fault.MAN004, path+".url", "%s.url must be scheme, host and port only; routes carry the path", path)
	}
	if !c.given(path + ".max_rate") {
		c.say(fault.MAN004, path, "%s.max_rate is needed: the most requests per second that may be sent there", path)
		return
	}
	positive(c, path+".max_rate", float64(t.MaxRate))
}

func (c *checker) load(l *Load) {
	c.sources(l)
	places := c.places()
	switch {
	case l.Target == "" && len(places) > 1 && c.given("load"):
		c.say(fault.MAN004, "load", "load.target is needed: it must name one of %s", strings.Join(places, ", "))
	case l.Target != "" && !slices.Contains(places, l.Target):
		c.say(fault.MAN004, "load.target", "load.target names %s, which is neither a service nor a target", shorten(l.Target))
	}
	c.amounts(l)
	for i, r := range l.SafeRoutes {
		c.pattern(index("load.safe_routes", i), r)
	}
	for i, r := range l.UnsafeRoutes {
		c.pattern(index("load.unsafe_routes", i), r)
	}
	for i, r := range l.Traffic.Routes {
		method, path, found := strings.Cut(r, " ")
		if !strings.HasPrefix(r, "/") && (!found || method == "" || !strings.HasPrefix(path, "/")) {
			c.say(fault.MAN004, index("load.traffic.routes", i), "load.traffic.routes: %s must be a path template that begins with /, with or without a method before it", shorten(r))
		}
	}
	c.headers("load.headers", l.Headers, l.Auth != nil)
	c.auth(l.Auth)
	c.host(l.Host)
	c.connections(&l.Connections)
	c.tls(&l.TLS)
	c.oneOf("load.http", l.HTTP, "auto", "1.1", "2", "2-prior-knowledge", "3")
	switch {
	case l.HTTP != "3":
	case l.Engine == "loop":
		c.say(fault.MAN004, "load.http", "load.http is 3, which the portable engine sends, and load.engine is loop; set load.engine to auto or portable")
	case l.TLS.Max == "1.2":
		c.say(fault.MAN004, "load.tls.max", "load.tls.max is 1.2, and HTTP/3 needs TLS 1.3")
	}
	for _, route := range slices.Sorted(maps.Keys(l.Requests)) {
		c.request(route, l.Requests[route], l.Auth != nil)
	}
	for _, route := range slices.Sorted(maps.Keys(l.Params)) {
		c.params(route, l.Params[route])
	}
}

// sources checks the source, what it needs, and that a limit has something to be measured against.
func (c *checker) sources(l *Load) {
	works := "otel, access_log, loki, none"
	switch l.Source {
	case SourceOTel, SourceAccessLog:
		if len(l.SourceConfig.Path) == 0 && c.legible("load.source_config.path") {
			c.say(fault.MAN004, "load.source", "load.source_config.path is needed by source %s", l.Source)
		}
	case SourceLoki:
		c.loki(&l.SourceConfig)
	case SourceNone:
		if len(l.SourceConfig.Path) > 0 && !c.m.Flagged("load.source") {
			c.say(fault.MAN004, "load.source_config.path", "load.source_config.path is set, but load.source does not say how to read it")
		}
	default:
		if c.legible("load.source") {
			c.say(fault.LOD012, "load.source", "there is no load source called %s; those that work are %s", printableWord(l.Source), works)
		}
		return
	}
	for i, p := range l.SourceConfig.Path {
		if p == "" || strings.ContainsRune(p, 0) {
			c.say(fault.MAN004, index("load.source_config.path", i), "load.source_config.path holds an empty path")
		}
	}
	c.format(l)
	if l.Source != SourceLoki && !c.m.Flagged("load.source") {
		c.onlyLoki(l)
	}
	if !measured(l) && l.Thresholds.P95Increase != nil && l.Traffic.Profile == "" {
		c.say(fault.MAN006, "load.thresholds.p95_increase",
			"load.thresholds.p95_increase is set, but source %s carries no durations and there is no load.traffic.profile to compare with", l.Source)
	}
}

// printableWord is a short word as it is, and anything else quoted.
func printableWord(s string) string {
	if word(s) {
		return s
	}
	return shorten(s)
}

// measured tells whether the source carries durations: traces do, and logs of a format that is known to.
func measured(l *Load) bool {
	return l.Source == SourceOTel || (l.Source == SourceAccessLog || l.Source == SourceLoki) && logformat.HasDuration(l.SourceConfig.Format)
}

func (c *checker) format(l *Load) {
	path := "load.source_config.format"
	if l.SourceConfig.Format == "" {
		return
	}
	if l.Source != SourceAccessLog && l.Source != SourceLoki {
		c.say(fault.MAN004, path, "%s is for access logs; source %s needs none", path, l.Source)
		return
	}
	if err := logformat.Check(l.SourceConfig.Format); err != nil {
		if e, ok := fault.As(err); ok {
			c.say(fault.MAN004, path, "%s: %s", path, e.Message)
		}
	}
}

func (c *checker) amounts(l *Load) {
	positive(c, "load.scale", l.Scale)
	if l.Scale > 0 {
		within(c, "load.scale", l.Scale, 0, 10_000)
	}
	within(c, "load.rate", float64(l.Rate), 0, 10_000_000)
	if l.Rate == 0 && c.given("load.rate") && c.legible("load.rate") {
		c.say(fault.MAN004, "load.rate", "load.rate must be greater than zero; leave it out to send production's rate times scale")
	}
	positive(c, "load.duration", l.Duration)
	c.oneOf("load.arrivals", l.Arrivals, "poisson", "even", "bursty")
	c.oneOf("load.engine", l.Engine, "auto", "loop", "portable")
	positive(c, "load.timeout", l.Timeout)
	for path, v := range map[string]time.Duration{"load.connect_timeout": l.ConnectTimeout, "load.tls_timeout": l.TLSTimeout,
		"load.first_byte_timeout": l.FirstByteTimeout} {
		if c.given(path) { // else it is the timeout, which is checked
			positive(c, path, v)
		}
	}
	if c.legible("load.max_connections") {
		within(c, "load.max_connections", l.MaxConnections, 1, 1_000_000)
	}
	positive(c, "load.traffic.max_age", l.Traffic.MaxAge)
	within(c, "load.abort.error_rate", l.Abort.ErrorRate, 0, 1)
	positive(c, "load.abort.error_rate", l.Abort.ErrorRate)
	positive(c, "load.abort.for", l.Abort.For)
	within(c, "load.trace", l.Trace, 0, 1)
	share := func(key string, v *float64, high float64) {
		if v != nil {
			within(c, "load.thresholds."+key, *v, 0, high)
		}
	}
	share("p95_increase", l.Thresholds.P95Increase, 1000)
	share("error_rate", l.Thresholds.ErrorRate, 1)
	share("client_error_increase", l.Thresholds.ClientErrorIncrease, 1)
}

// pattern checks the outer shape of a route pattern; package traffic gives it its meaning.
func (c *checker) pattern(path, p string) {
	method, rest, ok := strings.Cut(p, " ")
	if !ok || method == "" || !strings.HasPrefix(rest, "/") {
		c.say(fault.MAN004, path, "%s must be a method and a path, such as \"GET /orders/**\", not %s", path, shorten(p))
		return
	}
	if method != strings.ToUpper(method) {
		c.say(fault.MAN004, path, "%s: methods are written in capitals, such as GET", path)
	}
}

// tokenChars tells whether s is an HTTP token (RFC 9110, 5.6.2).
func tokenChars(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// headers refuses header lines that would break the request or that the engine writes itself.
func (c *checker) headers(at string, headers map[string]string, auth bool) {
	own := map[string]string{
		"host":              "use load.host",
		"content-length":    "it is written for each request",
		"transfer-encoding": "it is written for each request",
		"connection":        "the engine manages connections",
		"traceparent":       "use load.trace",
		"user-agent":        "the tool names itself, so that the requests can be told apart",
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		path, lower := join(at, name), strings.ToLower(name)
		if !tokenChars(name) {
			c.say(fault.MAN004, path, "%s is not a header name", shorten(name))
		}
		if strings.ContainsFunc(headers[name], func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f }) {
			c.say(fault.MAN004, path, "the value of header %s must be one line of text", name)
		}
		if why, ok := own[lower]; ok {
			c.say(fault.MAN004, path, "header %s cannot be set: %s", name, why)
		}
		if lower == "authorization" && auth {
			c.say(fault.MAN004, path, "header Authorization is set by load.auth as well")
		}
		if first, ok := seen[lower]; ok {
			c.say(fault.MAN004, path, "header %s stands twice, as %s too", name, first)
		}
		seen[lower] = name
		c.substitutions(path, headers[name], false)
	}
}

// connections checks that one way of opening connections is declared.
func (c *checker) connections(k *Connections) {
	const at = "load.connections"
	c.oneOf(at+".reuse", k.Reuse, "keepalive", "per_request")
	c.oneOf(at+".arrivals", k.Arrivals, "poisson", "even")
	within(c, at+".share", k.Share, 0, 1)
	within(c, at+".rate", float64(k.Rate), 0, 1_000_000)
	within(c, at+".resume", k.Resume, 0, 1)
	if c.legible(at + ".streams") {
		within(c, at+".streams", k.Streams, 1, 10_000)
	}
	switch {
	case k.Reuse == "per_request" && (k.Share > 0 || k.Rate > 0):
		c.say(fault.MAN004, at, "%s: with reuse per_request each request opens a connection, so neither share nor rate says anything", at)
	case k.Share > 0 && k.Rate > 0:
		c.say(fault.MAN004, at, "%s sets both share and rate; new connections come by one of them", at)
	}
	for i, b := range k.Bind {
		if _, err := netip.ParseAddr(b); err != nil {
			c.say(fault.MAN004, index(at+".bind", i), "%s.bind: %s is not an IP address", at, shorten(b))
		}
	}
}

func (c *checker) tls(t *TLS) {
	c.oneOf("load.tls.min", t.Min, "1.2", "1.3")
	c.oneOf("load.tls.max", t.Max, "1.2", "1.3")
	if t.Min == "1.3" && t.Max == "1.2" {
		c.say(fault.MAN004, "load.tls.min", "load.tls.min is above load.tls.max")
	}
	switch {
	case t.Cert != "" && t.Key == "":
		c.say(fault.MAN004, "load.tls.cert", "load.tls.cert is set, and load.tls.key, its private key, is not")
	case t.Cert == "" && t.Key != "":
		c.say(fault.MAN004, "load.tls.key", "load.tls.key is set, and load.tls.cert, its certificate, is not")
	}
	if t.Insecure && t.CA != "" {
		c.say(fault.MAN004, "load.tls.insecure", "load.tls.insecure accepts any certificate, so load.tls.ca proves nothing")
	}
	if t.ServerName != "" && (!ascii(t.ServerName) || strings.ContainsAny(t.ServerName, " \t\r\n/?#@:")) {
		c.say(fault.MAN004, "load.tls.server_name", "load.tls.server_name must be a name such as api.example.com, not %s", shorten(t.ServerName))
	}
}

// maxRequestBody bounds a declared body in bytes.
const maxRequestBody = 1 << 20

func (c *checker) request(route string, r Request, auth bool) {
	path := join("load.requests", route)
	c.pattern(path, route)
	c.headers(path+".headers", r.Headers, auth)
	c.substitutions(path+".body", r.Body, false)
	if r.Body != "" && r.JSON != nil {
		c.say(fault.MAN004, path, "%s sets both body and json; one of them is sent", path)
	}
	if len(r.Body) > maxRequestBody || r.JSON != nil && len(*r.JSON) > maxRequestBody {
		c.say(fault.MAN004, path, "%s: a body has 1 MiB at most", path)
	}
	at := path + ".expect"
	if c.given(at+".status") && len(r.Expect.Status) == 0 {
		c.say(fault.MAN004, at+".status", "%s.status names no status, so every answer would be wrong; leave it out to expect none in particular", at)
	}
	for i, s := range r.Expect.Status {
		if s < 200 || s > 599 {
			c.say(fault.MAN004, index(at+".status", i), "%s.status must be from 200 to 599, not %d", at, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Expect.Header)) {
		if !tokenChars(name) {
			c.say(fault.MAN004, join(at+".header", name), "%s is not a header name", shorten(name))
		}
	}
	if len(r.Expect.Header) > 64 {
		c.say(fault.MAN004, at+".header", "%s.header names %d headers; 64 at most", at, len(r.Expect.Header))
	}
	for i, s := range r.Expect.BodyContains {
		if s == "" {
			c.say(fault.MAN004, index(at+".body_contains", i), "%s.body_contains is empty", at)
		}
	}
	if r.Expect.MinBytes < 0 || r.Expect.MaxBytes < 0 || r.Expect.MaxBytes > 0 && r.Expect.MaxBytes < r.Expect.MinBytes {
		c.say(fault.MAN004, at, "%s: min_bytes and max_bytes leave no length", at)
	}
}

func (c *checker) auth(a *Auth) {
	if a == nil {
		return
	}
	if (a.Bearer == nil) == (a.Basic == nil) {
		c.say(fault.MAN004, "load.auth", "load.auth must set exactly one of bearer and basic")
		return
	}
	path, s := "load.auth.bearer", a.Bearer
	if s == nil {
		path, s = "load.auth.basic", a.Basic
	}
	if (s.Env == "") == (s.File == "") {
		c.say(fault.MAN004, path, "%s must set exactly one of env and file", path)
	}
	if s.Env != "" && !word(s.Env) {
		c.say(fault.MAN004, path+".env", "%s.env must be the name of an environment variable", path)
	}
}

func (c *checker) host(h string) {
	if h == "" {
		return
	}
	u, err := url.Parse("http://" + h)
	if err != nil || u.Host != h || u.Hostname() == "" || strings.ContainsAny(h, " \t\r\n/?#@,\\\"'") || strings.HasSuffix(h, ":") || !ascii(h) || !validPort(u.Port()) {
		c.say(fault.MAN004, "load.host", "load.host must be a host name with an optional port, not %s", shorten(h))
		return
	}
	if strings.Count(u.Hostname(), ":") > 0 {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil {
			c.say(fault.MAN004, "load.host", "load.host is not a valid address: %s", shorten(h))
		}
	}
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

func validPort(p string) bool {
	if p == "" {
		return true
	}
	n, err := strconv.Atoi(p)
	return err == nil && n > 0 && n <= math.MaxUint16
}

// placeholders names the placeholders of a route from left to right; one that stands again gets a
// number: /{id}/items/{id} has id and id2.
func placeholders(route string) []string {
	var out []string
	for rest := route; ; {
		_, after, open := strings.Cut(rest, "{")
		name, tail, closed := strings.Cut(after, "}")
		if !open || !closed {
			return out
		}
		name = strings.TrimSuffix(name, "...")
		key := name
		for n := 2; slices.Contains(out, key); n++ {
			key = name + strconv.Itoa(n)
		}
		out, rest = append(out, key), tail
	}
}

// params checks the values for one route's placeholders.
func (c *checker) params(route string, params map[string]Param) {
	path := join("load.params", route)
	c.pattern(path, route)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p, at := params[name], join(path, name)
		if !slices.Contains(placeholders(route), name) {
			c.say(fault.MAN004, at, "%s: the route %s has no placeholder {%s}", at, route, name)
		}
		c.oneOf(at+".pick", p.Pick, "uniform", "zipf", "observed")
		if c.legible(at) {
			c.param(at, p)
		}
	}
}

func (c *checker) param(at string, p Param) {
	set := 0
	for _, has := range []bool{p.Values != nil, p.File != "", p.Int != nil} {
		if has {
			set++
		}
	}
	if set != 1 && !c.refusedBelow(at) {
		c.say(fault.MAN004, at, "%s must set exactly one of values, file and int", at)
	}
	if p.Values != nil && len(p.Values) == 0 {
		c.say(fault.MAN004, at+".values", "%s.values is empty", at)
	}
	if p.Int != nil {
		for _, key := range []string{"min", "max"} {
			if !c.given(at + ".int." + key) {
				c.say(fault.MAN004, at+".int", "%s.int.%s is needed", at, key)
			}
		}
		if p.Int.Min > p.Int.Max {
			c.say(fault.MAN004, at+".int", "%s.int: min is greater than max", at)
		}
	}
}

// refusedBelow tells whether a key below the path was refused already.
func (c *checker) refusedBelow(path string) bool {
	for bad := range c.bad {
		if strings.HasPrefix(bad, path+".") {
			return true
		}
	}
	return false
}

// Bytes reads a size such as "512MiB", "2GiB", "100MB" or a plain number of bytes; empty is 0.
func Bytes(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	digits := strings.TrimRight(s, "KMGTiB")
	units := map[string]uint64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
	unit, ok := units[s[len(digits):]]
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n == 0 || n > math.MaxUint64/unit {
		return 0, false
	}
	return n * unit, true
}

// String gives the rate as it is written in a manifest.
func (r Rate) String() string {
	return fmt.Sprintf("%s/s", strconv.FormatFloat(float64(r), 'g', -1, 64))
}
