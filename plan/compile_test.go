package plan

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/judge"
	"seatrial/manifest"
	"seatrial/traffic"
)

var recorded = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// seen is a route of a made-up production: how many requests, and how each was answered.
type seen struct {
	method, path string
	n            int
	status       int
	took         time.Duration // negative: unknown
}

// record makes a profile over 100 s; a %d in a path becomes an identifier that changes.
func record(t testing.TB, kind string, routes ...seen) (*traffic.Profile, *traffic.Observed) {
	t.Helper()
	b, err := traffic.NewBuilder(traffic.BuilderConfig{Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		for i := range r.n {
			path := r.path
			if strings.Contains(path, "%d") {
				path = fmt.Sprintf(path, 1000+i%40)
			}
			at := recorded.Add(time.Duration(i) * 100 * time.Second / time.Duration(max(1, r.n-1)))
			b.Add(&traffic.Event{UnixNano: at.UnixNano(), Method: []byte(r.method), Path: []byte(path),
				Status: r.status, Duration: r.took, RequestSize: -1, ResponseSize: -1})
		}
	}
	p, o, err := b.Finish(&traffic.Skips{}, recorded.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return p, o
}

func parse(t testing.TB, text string, overrides ...manifest.Override) *manifest.Manifest {
	t.Helper()
	dir := t.TempDir()
	m, err := manifest.Parse([]byte(text), dir, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func flag(path, value string) manifest.Override {
	return manifest.Override{Path: path, Value: value, Flag: "--x"}
}

const otelManifest = `load:
  source: otel
  source_config: {path: traces.json}
  scale: 0.5
  duration: 20s
  safe_routes: ["GET /**", "POST /search"]
  unsafe_routes: ["GET /admin/**", "DELETE /*"]
`

func shop(t testing.TB) (*traffic.Profile, *traffic.Observed) {
	return record(t, "otel",
		seen{"GET", "/", 400, 200, 2 * time.Millisecond},
		seen{"GET", "/orders/%d", 300, 200, 8 * time.Millisecond},
		seen{"GET", "/gone", 100, 404, time.Millisecond},
		seen{"POST", "/search", 80, 200, 20 * time.Millisecond},
		seen{"GET", "/rare", 10, 200, time.Millisecond},
		seen{"GET", "/admin/users", 60, 200, time.Millisecond},
		seen{"DELETE", "/orders/%d", 50, 204, time.Millisecond})
}

func compile(t testing.TB, in Input) *Plan {
	t.Helper()
	if in.Getenv == nil {
		in.Getenv = func(string) string { return "" }
	}
	p, err := Compile(in)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return p
}

func checkOf(p *Plan, name, route string) *judge.Check {
	for i := range p.Checks {
		if p.Checks[i].Name == name && p.Checks[i].RouteName == route {
			return &p.Checks[i]
		}
	}
	return nil
}

func TestObservedMix(t *testing.T) {
	source, observed := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest), Source: source, Observed: observed, Command: "run"})
	var names []string
	sum := 0.0
	for _, r := range p.Routes {
		names = append(names, r.Name)
		sum += r.Weight
	}
	if want := []string{"GET /", "GET /gone", "GET /orders/{id}", "GET /rare", "POST /search"}; !slices.Equal(names, want) {
		t.Errorf("routes %q, want %q", names, want)
	}
	if math.Abs(sum-1) > 1e-9 || math.Abs(p.Routes[0].Weight-400.0/890) > 1e-9 || math.Abs(p.Routes[0].Share-0.4) > 1e-9 {
		t.Errorf("weights %+v", p.Routes)
	}
	if o := p.Routes[2]; o.Values != 40 || o.ValuesBy != "source" || o.Pool == "" {
		t.Errorf("values of the templated route: %+v", o)
	}
	if x := p.Mix; math.Abs(x.Reached-0.89) > 1e-9 || x.HeaviestMissed != "GET /admin/users" || math.Abs(x.ProductionRate-10) > 0.2 ||
		math.Abs(x.Rate-x.ProductionRate/2) > 1e-9 || x.Assumed || x.Requests != 1000 {
		t.Errorf("mix: %+v", x)
	}
	want := []Removal{{"unsafe_routes: GET /admin/**", 0.06, 1}, {"not named in safe_routes", 0.05, 1}}
	if !reflect.DeepEqual(p.Mix.Patterns, want) {
		t.Errorf("patterns %+v, want %+v", p.Mix.Patterns, want)
	}
	if p.Open.Duration != 25*time.Second || p.Warmup != 5*time.Second || p.Open.Rate != p.Mix.Rate {
		t.Errorf("schedule: %+v", p.Open)
	}
	warnings := strings.Join(p.Warnings, "\n")
	for _, w := range []string{"DELETE /*", "without a body", "POST /search"} {
		if !strings.Contains(warnings, w) {
			t.Errorf("%q is missing from the warnings:\n%s", w, warnings)
		}
	}
}

func TestPassLines(t *testing.T) {
	source, observed := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest), Source: source, Observed: observed})
	k := checkOf(p, judge.P95Increase, "GET /orders/{id}")
	if k == nil || k.BaselineFrom != "source" || k.BaselineSamples != 300 || k.LimitNanos != int64(10*time.Millisecond) || k.Limit != 0.25 {
		t.Errorf("p95_increase: %+v", k)
	}
	if k := checkOf(p, judge.P95Increase, "GET /rare"); k != nil {
		t.Errorf("a route seen 10 times has a baseline: %+v", k)
	}
	if !slices.Equal(p.Mix.NoBaseline, []string{"GET /rare"}) {
		t.Errorf("routes without a baseline: %q", p.Mix.NoBaseline)
	}
	if k := checkOf(p, judge.ClientErrorIncrease, "GET /gone"); k == nil || k.Baseline != 1 || k.BaselineSamples != 100 || k.Limit != 0.05 {
		t.Errorf("client_error_increase: %+v", k)
	}
	if k := checkOf(p, judge.ErrorRate, ""); k == nil || k.Route != -1 || k.Limit != 0.01 {
		t.Errorf("error_rate: %+v", k)
	}
	limits := p.RouteLimits()
	if len(limits) != len(p.Routes) || len(limits[2]) != 1 || limits[2][0] != 10*time.Millisecond || limits[3] != nil {
		t.Errorf("exact counters: %v", limits)
	}
}

// TestBaselineOfTheProfile gives p95_increase a baseline where the source has no durations.
func TestBaselineOfTheProfile(t *testing.T) {
	profile, _ := shop(t)
	source, observed := record(t, "access_log",
		seen{"GET", "/", 50, 200, -1}, seen{"GET", "/only-here", 50, 200, -1})
	text := "load:\n  source: access_log\n  source_config: {path: a.log}\n  safe_routes: ['GET /**']\n  traffic: {profile: traffic.json}\n  thresholds: {p95_increase: 0.5}\n"
	p := compile(t, Input{Manifest: parse(t, text), Source: source, Observed: observed, Profile: profile, Now: recorded.Add(49 * time.Hour)})
	k := checkOf(p, judge.P95Increase, "GET /")
	if k == nil || k.BaselineFrom != "profile" || k.LimitNanos != int64(3*time.Millisecond) {
		t.Errorf("p95_increase: %+v", k)
	}
	x := p.Mix
	if x.ProfileAge != 48*time.Hour || !slices.Equal(x.BaselineProfile, []string{"GET /"}) || math.Abs(x.Reached-0.4) > 1e-9 ||
		x.HeaviestMissed != "GET /orders/{id}" || math.Abs(x.ProductionRate-profile.Rate) > 1e-9 {
		t.Errorf("mix: %+v", x)
	}
	if r := p.Routes[1]; r.Name != "GET /only-here" || r.Share != 0 || r.Weight != 0.5 {
		t.Errorf("a route that production does not serve: %+v", r)
	}
}

// TestNoBaselineAnywhere keeps a threshold that has nothing to measure visible (LOD-016).
func TestNoBaselineAnywhere(t *testing.T) {
	source, observed := record(t, "otel", seen{"GET", "/", 19, 200, time.Millisecond})
	p := compile(t, Input{Manifest: parse(t, otelManifest), Source: source, Observed: observed})
	k := checkOf(p, judge.P95Increase, "")
	if k == nil || k.Route != -1 || k.Limit != 0.25 {
		t.Errorf("the marker: %+v", p.Checks)
	}
}

func TestAssumedSmoke(t *testing.T) {
	text := "load:\n  safe_routes: ['GET /a', 'HEAD /b', '* /c', 'POST /d', 'GET /e/*', 'GET /f/**', 'GET /a', 'GET /x']\n  unsafe_routes: ['* /x']\n"
	p := compile(t, Input{Manifest: parse(t, text), Smoke: true})
	var names []string
	for _, r := range p.Routes {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"GET /a", "GET /c", "HEAD /b"}) || p.Routes[0].Weight != 1.0/3 {
		t.Errorf("routes: %+v", p.Routes)
	}
	if p.Open.Rate != AssumedRate || p.Duration != SmokeDuration || p.Warmup != 0 || p.Open.AtLeast != 3 || !p.Mix.Assumed || !p.Smoke {
		t.Errorf("plan: %+v", p)
	}
	if p.Mix.RateAssumed == "" || p.Mix.ProductionRate != 0 || p.Mix.Reached != 0 {
		t.Errorf("an assumed smoke must not speak of production: %+v", p.Mix)
	}
	root := compile(t, Input{Manifest: parse(t, "load: {safe_routes: ['GET /**'], scale: 0.2, duration: 3s, warmup: 0s}\n")})
	if len(root.Routes) != 1 || root.Routes[0].Name != "GET /" || root.Open.Rate != 1 || root.Open.AtLeast != 0 {
		t.Errorf("the root: %+v", root)
	}
}

// TestSmokeSendsEachRoute sends each route although the rate gives fewer requests than routes.
func TestSmokeSendsEachRoute(t *testing.T) {
	var routes []string
	for i := range 80 {
		routes = append(routes, fmt.Sprintf("'GET /page-%02d'", i))
	}
	p := compile(t, Input{Manifest: parse(t, "load: {safe_routes: ["+strings.Join(routes, ", ")+"]}\n"), Smoke: true})
	_, judged := p.Due()
	if p.Arrivals() < 80 || slices.Contains(judged, 0) {
		t.Errorf("%d arrivals, by route %v", p.Arrivals(), judged)
	}
}

func TestRates(t *testing.T) {
	source, observed := shop(t)
	tests := []struct {
		name  string
		smoke bool
		extra string
		over  []manifest.Override
		want  float64 // in shares of production's rate
	}{
		{"scale of the manifest", false, "", nil, 0.5},
		{"scale of a flag", false, "", []manifest.Override{flag("load.scale", "2")}, 2},
		{"a smoke's own scale", true, "", nil, 0.1},
		{"a smoke with a flag", true, "", []manifest.Override{flag("load.scale", "0.3")}, 0.3},
		{"rate of the manifest", false, "  rate: 50/s\n", nil, 50 / source.Rate},
		{"rate of a flag", false, "", []manifest.Override{flag("load.rate", "300/m")}, 5 / source.Rate},
		{"a smoke ignores the manifest's rate", true, "  rate: 50/s\n", nil, 0.1},
		{"a flag's scale over the manifest's rate", false, "  rate: 50/s\n", []manifest.Override{flag("load.scale", "2")}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, Input{Manifest: parse(t, otelManifest+tt.extra, tt.over...), Source: source, Observed: observed, Smoke: tt.smoke})
			if got := p.Open.Rate / source.Rate; math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("%v of production's rate, want %v", got, tt.want)
			}
			if math.Abs(p.Mix.Scale-tt.want) > 1e-9 || p.Mix.Rate != p.Open.Rate {
				t.Errorf("the mix says %v and %v/s", p.Mix.Scale, p.Mix.Rate)
			}
		})
	}
	p := compile(t, Input{Manifest: parse(t, otelManifest, flag("load.duration", "3s"), flag("load.warmup", "1s")), Source: source, Observed: observed, Smoke: true})
	if p.Duration != 3*time.Second || p.Warmup != time.Second {
		t.Errorf("flags of a smoke: %v and %v", p.Duration, p.Warmup)
	}
	if checkOf(p, judge.ClientErrorIncrease, "GET /") == nil || p.CountsClientErrors() {
		t.Error("in an observed mix a 4xx is production's own traffic, however short the run")
	}
	p = compile(t, Input{Manifest: parse(t, "load: {safe_routes: [GET /]}\n")})
	if checkOf(p, judge.ClientErrorIncrease, "GET /") != nil || !p.CountsClientErrors() {
		t.Error("under source none a 4xx is an error, so the increase is not judged as well")
	}
}

func TestBursty(t *testing.T) {
	source, observed := shop(t)
	in := Input{Manifest: parse(t, otelManifest+"  arrivals: bursty\n"), Source: source, Observed: observed}
	source.Dispersion = 3.5
	if p := compile(t, in); p.Open.Kind != "bursty" || p.Open.Dispersion != 3.5 {
		t.Errorf("schedule: %+v", p.Open)
	}
	source.Dispersion = 0.4
	if p := compile(t, in); p.Open.Dispersion != 1 || !strings.Contains(strings.Join(p.Warnings, " "), "more even than Poisson") {
		t.Errorf("schedule %+v, warnings %q", p.Open, p.Warnings)
	}
}

func TestNothingLeft(t *testing.T) {
	source, observed := shop(t)
	text := "load:\n  source: otel\n  source_config: {path: x}\n  safe_routes: ['PUT /x']\n  unsafe_routes: ['GET /**']\n"
	p, err := Compile(Input{Manifest: parse(t, text), Source: source, Observed: observed})
	e, ok := fault.As(err)
	if !ok || e.Code != fault.LOD013 || !strings.Contains(e.Detail, "unsafe_routes: GET /**") || !strings.Contains(e.Detail, " 87.0%") {
		t.Fatalf("error %v with %q", err, e.Detail)
	}
	if p == nil || len(p.Routes) != 0 || len(p.Mix.NotSent) != 7 {
		t.Errorf("the plan must still tell what was removed: %+v", p)
	}
}

func TestTemplatesWithoutValues(t *testing.T) {
	source, _ := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest), Source: source})
	i := slices.IndexFunc(p.Mix.NotSent, func(o Omission) bool { return o.Route == "GET /orders/{id}" })
	if i < 0 || !strings.Contains(p.Mix.NotSent[i].Reason, "load.params") {
		t.Errorf("not sent: %+v", p.Mix.NotSent)
	}
}

func TestDeclaredValues(t *testing.T) {
	source, observed := shop(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ids.txt"), []byte("\ufeffb c\r\n\na/e\nd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, param string
		values      int
		want        string // one target that is sent
	}{
		{"values", "values: [5, x, x]", 2, "/orders/5"},
		{"int", "int: {min: -3, max: 3}", 7, "/orders/-2"},
		{"int zipf", "int: {min: 1, max: 9}, pick: zipf", 9, "/orders/9"},
		{"file", "file: " + filepath.Join(dir, "ids.txt"), 3, "/orders/b%20c"},
		{"wide", "int: {min: -9223372036854775807, max: 9223372036854775807}", math.MaxInt, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := parse(t, otelManifest+"  rate: 100/s\n  params: {'GET /orders/{id}': {id: {"+tt.param+"}}}\n")
			p := compile(t, Input{Manifest: m, Source: source, Observed: observed})
			r := p.Routes[2]
			if r.Name != "GET /orders/{id}" || r.ValuesBy != "params" || r.Values != tt.values {
				t.Errorf("route: %+v", r)
			}
			if got := targets(p); tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("%q is never sent: %q", tt.want, got)
			}
		})
	}
}

// TestDeclaredValuesAreFiltered checks each declared request by itself when the template alone does
// not decide.
func TestDeclaredValuesAreFiltered(t *testing.T) {
	source, observed := shop(t)
	text := strings.Replace(otelManifest, `"DELETE /*"`, `"GET /orders/13"`, 1)
	p := compile(t, Input{Source: source, Observed: observed,
		Manifest: parse(t, text+"  rate: 100/s\n  params: {'GET /orders/{id}': {id: {values: [12, 13, '../admin/x', 14]}}}\n")})
	if r := p.Routes[2]; r.Values != 2 {
		t.Errorf("route: %+v", r)
	}
	if got := targets(p); slices.Contains(got, "/orders/13") || !slices.Contains(got, "/orders/12") {
		t.Errorf("sent: %q", got)
	}
	wide := compile(t, Input{Source: source, Observed: observed,
		Manifest: parse(t, text+"  params: {'GET /orders/{id}': {id: {int: {min: 1, max: 1000000}}}}\n")})
	if slices.ContainsFunc(wide.Routes, func(r Route) bool { return r.Name == "GET /orders/{id}" }) {
		t.Error("a range too wide to check is sent although one of its numbers is unsafe")
	}
	only := compile(t, Input{Source: source, Observed: observed,
		Manifest: parse(t, text+"  params: {'GET /orders/{id}': {id: {values: [13]}}}\n")})
	if i := slices.IndexFunc(only.Mix.NotSent, func(o Omission) bool { return o.Route == "GET /orders/{id}" }); i < 0 || only.Mix.NotSent[i].Reason != "unsafe_routes: GET /orders/13" {
		t.Errorf("not sent: %+v", only.Mix.NotSent)
	}
}

func TestBadInputIsToldAtOnce(t *testing.T) {
	source, observed := shop(t)
	text := otelManifest + `  arrivals: bursty
  headers: {X-Key: "${env:MISSING}"}
  auth: {basic: {file: nowhere}}
  params:
    GET /orders/{id}: {id: {file: nowhere.txt}}
`
	source.Dispersion = 0
	m := parse(t, strings.Replace(text, `"DELETE /*"`, `"DELETE /**/x"`, 1))
	_, err := Compile(Input{Manifest: m, Source: source, Observed: observed, Getenv: func(string) string { return "" }})
	for _, want := range []string{"MISSING is not set", "nowhere cannot be read", "bursty", "unsafe_routes", "seatrial.yaml:7:36"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from: %v", want, err)
		}
	}
	m = parse(t, text)
	_, err = Compile(Input{Manifest: m, Source: source, Observed: observed, Getenv: func(string) string { return "x" }})
	var list fault.List
	if !errors.As(err, &list) || !strings.Contains(err.Error(), "nowhere.txt cannot be read") {
		t.Errorf("values: %v", err)
	}
}

// TestARunIsBounded: a plan that could neither be counted nor stopped in reasonable time is refused.
func TestARunIsBounded(t *testing.T) {
	source, observed := shop(t)
	_, err := Compile(Input{Manifest: parse(t, otelManifest+"  rate: 100000/s\n", flag("load.duration", "100h")), Source: source, Observed: observed})
	if e, _ := fault.As(err); e == nil || !strings.Contains(e.Message, "one run sends 1,000,000,000 at most") {
		t.Errorf("36 billion requests: %v", err)
	}
	p := compile(t, Input{Manifest: parse(t, otelManifest+"  rate: 2000/s\n", flag("load.duration", "100h")), Source: source, Observed: observed})
	if n := float64(p.Arrivals()); n < 7e8 || n > 7.4e8 || p.ScheduleDigest() == "" {
		t.Errorf("%v requests", n)
	}
}

func TestSecretsStayOut(t *testing.T) {
	text := "load:\n  safe_routes: ['GET /']\n  headers: {X-Api-Key: canary-one, X-Tenant: 'a-${env:TENANT}', Accept: text/html}\n  auth: {basic: {env: LOGIN}}\n"
	env := map[string]string{"TENANT": "canary-two", "LOGIN": "me:canary-three"}
	p := compile(t, Input{Manifest: parse(t, text), Getenv: func(k string) string { return env[k] }})
	secrets := strings.Join(p.Secrets(), " ")
	for _, s := range []string{"canary-one", "a-canary-two", "canary-three", "bWU6Y2FuYXJ5LXRocmVl"} {
		if !strings.Contains(secrets, s) {
			t.Errorf("%s is not given to the redactor", s)
		}
	}
	if strings.Contains(secrets, "text/html") {
		t.Error("an ordinary header is taken for a secret")
	}
	if h := p.Headers[len(p.Headers)-1]; h.Name != "Authorization" || h.Value != "Basic bWU6Y2FuYXJ5LXRocmVl" {
		t.Errorf("auth header: %+v", h)
	}
	env["LOGIN"], env["TENANT"] = "me:canary-four", "canary-five"
	if q := compile(t, Input{Manifest: parse(t, text), Getenv: func(k string) string { return env[k] }}); q.Digest != p.Digest {
		t.Error("the digest covers a secret's value")
	}
	env["LOGIN"] = "canary-six-without-colon"
	_, err := Compile(Input{Manifest: parse(t, text), Getenv: func(k string) string { return env[k] }})
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("error: %v", err)
	}
}

func TestBearerFromAFile(t *testing.T) {
	m := parse(t, "load:\n  safe_routes: ['GET /']\n  auth: {bearer: {file: token}}\n")
	if err := os.WriteFile(filepath.Join(m.Dir, "token"), []byte("s3cret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := compile(t, Input{Manifest: m})
	if p.Headers[0].Value != "Bearer s3cret" || !slices.Contains(p.Secrets(), "s3cret") {
		t.Errorf("headers: %+v", p.Headers)
	}
}

// TestMethodOverrideIsUnsafe judges a request under the method that a header turns it into.
func TestMethodOverrideIsUnsafe(t *testing.T) {
	text := "load:\n  safe_routes: ['GET /**']\n  unsafe_routes: ['DELETE /**']\n  headers: {X-HTTP-Method-Override: delete}\n"
	_, err := Compile(Input{Manifest: parse(t, text)})
	if e, ok := fault.As(err); !ok || e.Code != fault.LOD013 {
		t.Errorf("a DELETE in disguise: %v", err)
	}
}

// TestDigestCoversWhatDecides changes one thing at a time.
func TestDigestCoversWhatDecides(t *testing.T) {
	source, observed := shop(t)
	digest := func(text string, over ...manifest.Override) string {
		return compile(t, Input{Manifest: parse(t, text, over...), Source: source, Observed: observed}).Digest
	}
	base := digest(otelManifest)
	if again := digest(otelManifest); again != base {
		t.Error("the same plan has two digests")
	}
	seen := map[string]string{base: "base"}
	for name, over := range map[string]manifest.Override{
		"seed": flag("load.seed", "2"), "rate": flag("load.rate", "7"), "duration": flag("load.duration", "9s"),
		"warmup": flag("load.warmup", "1s"), "arrivals": flag("load.arrivals", "even"), "timeout": flag("load.timeout", "9s"),
		"connections": flag("load.max_connections", "9"), "host": flag("load.host", "x"), "trace": flag("load.trace", "0.5"),
		"p95": flag("load.thresholds.p95_increase", "0.3"), "errors": flag("load.thresholds.error_rate", "0.3"),
		"clients": flag("load.thresholds.client_error_increase", "0.3"), "abort": flag("load.abort.for", "9s"),
		"header": flag("load.headers.Accept", "x"),
	} {
		d := digest(otelManifest, over)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
	params := digest(otelManifest + "  params: {'GET /orders/{id}': {id: {values: [x]}}}\n")
	other := digest(otelManifest + "  params: {'GET /orders/{id}': {id: {values: [y]}}}\n")
	if params == base || params == other {
		t.Error("the digest does not cover the values")
	}
}

// TestSourceMustMatch keeps an absent source from passing for an assumed smoke.
func TestSourceMustMatch(t *testing.T) {
	if _, err := Compile(Input{Manifest: parse(t, otelManifest)}); err == nil || !strings.Contains(err.Error(), "CLI-002") {
		t.Errorf("a source that was not read: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	source, observed := shop(t)
	p := compile(t, Input{Manifest: parse(t, otelManifest), Source: source, Observed: observed})
	var all []string
	for _, k := range p.Checks {
		all = append(all, Describe(k))
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"the whole run: error_rate at most 0.01", "GET /: p95 at most 2.5ms (source's 2ms + 25%)", "GET /gone: share of 4xx at most 1.05"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from:\n%s", want, text)
		}
	}
}
