package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
)

const dir = "/srv/shop"

func mustParse(t *testing.T, text string, overrides ...Override) *Manifest {
	t.Helper()
	m, err := Parse([]byte(text), dir, overrides...)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return m
}

func problems(t *testing.T, text string, overrides ...Override) fault.List {
	t.Helper()
	m, err := Parse([]byte(text), dir, overrides...)
	var list fault.List
	if !errors.As(err, &list) || m != nil {
		t.Fatalf("Parse gave %v and %v, want a list of problems and no manifest", m, err)
	}
	return list
}

// TestSeedBlocks loads the blocks of the page whose users we take over, in full.
func TestSeedBlocks(t *testing.T) {
	full := mustParse(t, `load:
  enabled: true
  source: otel
  source_config:
    path: traffic/production.otlp.json
  scale: 0.05
  duration: 5m
  safe_routes: ["GET /**", "POST /api/search"]
  unsafe_routes: ["POST /api/payments/**", "DELETE /**"]
  traffic:
    profile: .antifailure/traffic.json
    max_age: 336h
  thresholds:
    p95_increase: 0.25
    error_rate: 0.01
`)
	l := full.Load
	if !l.Enabled || l.Source != "otel" || l.Scale != 0.05 || l.Duration != 5*time.Minute ||
		l.SourceConfig.Path[0] != "traffic/production.otlp.json" || len(l.SafeRoutes) != 2 ||
		l.UnsafeRoutes[1] != "DELETE /**" || l.Traffic.MaxAge != 336*time.Hour ||
		*l.Thresholds.P95Increase != 0.25 || *l.Thresholds.ErrorRate != 0.01 {
		t.Errorf("effective load block: %+v", l)
	}
	short := mustParse(t, "load:\n  traffic:\n    profile: .antifailure/traffic.json\n    max_age: 336h\n")
	if short.Load.Source != "none" || short.Load.Thresholds.P95Increase != nil {
		t.Errorf("a profile alone must not put p95_increase in force: %+v", short.Load)
	}
}

// TestProblems pins the code, the place and the words of each refusal.
func TestProblems(t *testing.T) {
	tests := []struct {
		name, text string
		code       fault.Code
		want       []string // parts of message, next step and detail
	}{
		{"typo", "load:\n  scael: 1\n", fault.MAN003, []string{"seatrial.yaml:2:3: load.scael", "did you mean scale?", "   2 |   scael: 1\n         ^"}},
		{"far from any", "zzzzzzzz: 1\n", fault.MAN003, []string{"1:1", "Known keys of the top of the manifest: load, name,"}},
		{"removed key", "load:\n  thresholds:\n    query_count_increase: 0.1\n", fault.MAN005, []string{"3:5", "query_count_increase was removed", "load.comparison"}},
		{"datadog", "load:\n  source: datadog\n", fault.LOD012, []string{"2:3", "no load source called datadog", "otel, access_log, loki, none"}},
		{"tempo", "load:\n  source: tempo\n", fault.LOD012, []string{"no load source called tempo", "otel, access_log, loki, none"}},
		{"loki without a URL", "load: {source: loki, source_config: {query: q, since: 1h}}\n", fault.MAN004, []string{"load.source_config.url is needed by source loki"}},
		{"loki without a query", "load: {source: loki, source_config: {url: 'http://l', since: 1h}}\n", fault.MAN004, []string{"query is needed by source loki"}},
		{"loki without a range", "load: {source: loki, source_config: {url: 'http://l', query: q}}\n", fault.MAN004, []string{"from or load.source_config.since is needed"}},
		{"loki with a password in its URL", "load: {source: loki, source_config: {url: 'http://u:p@l', query: q, since: 1h}}\n", fault.MAN004, []string{"must not hold a user name", "user_env"}},
		{"loki at no URL", "load: {source: loki, source_config: {url: 'l:3100', query: q, since: 1h}}\n", fault.MAN004, []string{"must be http or https"}},
		{"loki with two starts", "load: {source: loki, source_config: {url: 'http://l', query: q, since: 1h, from: 2026-01-31T09:00:00Z}}\n", fault.MAN004, []string{"both from and since"}},
		{"loki with no time", "load: {source: loki, source_config: {url: 'http://l', query: q, from: yesterday}}\n", fault.MAN004, []string{"from must be a time such as"}},
		{"loki backwards", "load: {source: loki, source_config: {url: 'http://l', query: q, from: 2026-01-31T09:00:00Z, to: 2026-01-31T08:00:00Z}}\n", fault.MAN004, []string{"to must be after"}},
		{"loki with half a user", "load: {source: loki, source_config: {url: 'http://l', query: q, since: 1h, user_env: U}}\n", fault.MAN004, []string{"user_env and password_env together"}},
		{"loki with two keys", "load: {source: loki, source_config: {url: 'http://l', query: q, since: 1h, user_env: U, password_env: P, bearer_env: B}}\n", fault.MAN004, []string{"both bearer_env and a user"}},
		{"loki of another kind", "load: {source: loki, source_config: {url: 'http://l', query: q, since: 1h, server: elastic}}\n", fault.MAN004, []string{"loki, victorialogs"}},
		{"loki with files", "load: {source: loki, source_config: {url: 'http://l', query: q, since: 1h, path: x}}\n", fault.MAN004, []string{"path names files"}},
		{"loki and a threshold", "load: {source: loki, source_config: {url: 'http://l', query: q, since: 1h}, thresholds: {p95_increase: 0.25}}\n", fault.MAN006, []string{"source loki carries no durations"}},
		{"a query of files", "load: {source: access_log, source_config: {path: x, query: q}}\n", fault.MAN004, []string{"query is for source loki; load.source is access_log"}},
		{"scenarios", "load:\n  scenarios:\n    - path: a.yaml\n", fault.MAN007, []string{"2:3", "load.scenarios", "cannot do scenarios yet"}},
		{"comparison", "load:\n  comparison:\n    enabled: true\n", fault.MAN007, []string{"load.comparison"}},
		{"sql", "load:\n  sql: {}\n", fault.MAN007, []string{"load.sql"}},
		{"gate", "load:\n  gate: {}\n", fault.MAN007, []string{"load.gate"}},
		{"database", "database: {engine: postgres}\n", fault.MAN007, []string{"database"}},
		{"image", "services: {a: {run: x, image: y}}\n", fault.MAN007, []string{"services.a.image"}},
		{"consent", "targets: {a: {url: 'http://127.0.0.1', max_rate: 5/s, consent: x}}\n", fault.MAN007, []string{"targets.a.consent"}},
		{"query", "load:\n  params:\n    GET /o/{id}:\n      id: {query: SELECT 1}\n", fault.MAN007, []string{`load.params["GET /o/{id}"].id.query`}},
		{"database.url", "services: {a: {run: 'x ${database.url}'}}\n", fault.MAN007, []string{"${database.url}"}},
		{"threshold under a log", "load:\n  source: access_log\n  source_config: {path: a.log}\n  thresholds:\n    p95_increase: 0.25\n", fault.MAN006, []string{"5:5", "load.thresholds.p95_increase", "access_log"}},
		{"threshold under none", "load:\n  thresholds: {p95_increase: 1}\n", fault.MAN006, []string{"2:16", "load.thresholds.p95_increase", "none"}},
		{"duration without unit", "load: {duration: 30}\n", fault.MAN004, []string{"load.duration", "30s, 5m or 336h", `"30"`}},
		{"negative duration", "load: {duration: -5s}\n", fault.MAN004, []string{"load.duration"}},
		{"zero duration", "load: {duration: 0s}\n", fault.MAN004, []string{"greater than zero"}},
		{"scale zero", "load: {scale: 0}\n", fault.MAN004, []string{"load.scale must be greater than zero"}},
		{"scale text", "load: {scale: 'a'}\n", fault.MAN004, []string{"load.scale must be a number"}},
		{"scale nan", "load: {scale: .nan}\n", fault.MAN004, []string{"load.scale must be a number"}},
		{"rate", "load: {rate: 5/d}\n", fault.MAN004, []string{"load.rate must be a rate"}},
		{"octal", "load: {seed: 010}\n", fault.MAN004, []string{"load.seed"}},
		{"share", "load: {thresholds: {error_rate: 1.5}}\n", fault.MAN004, []string{"from 0 to 1"}},
		{"yes", "load: {enabled: yes}\n", fault.MAN004, []string{"true or false", `"yes"`}},
		{"no value", "load:\n  scale:\n", fault.MAN004, []string{"load.scale has no value"}},
		{"list for text", "name: [a]\n", fault.MAN004, []string{"name must be text"}},
		{"number for text", "name: 12\n", fault.MAN004, []string{"put it in quotes"}},
		{"mapping", "load: 5\n", fault.MAN004, []string{"load must be a mapping"}},
		{"text for list", "load: {safe_routes: GET /}\n", fault.MAN004, []string{"load.safe_routes must be a list"}},
		{"arrivals", "load: {arrivals: poison}\n", fault.MAN004, []string{"poisson, even, bursty", "Write poisson."}},
		{"version", "version: 2\n", fault.MAN004, []string{"this build reads version 1"}},
		{"pattern", "load: {safe_routes: [/orders]}\n", fault.MAN004, []string{"1:22", "a method and a path"}},
		{"lower case", "load: {safe_routes: [get /orders]}\n", fault.MAN004, []string{"capitals"}},
		{"otel without path", "load: {source: otel}\n", fault.MAN004, []string{"load.source_config.path is needed by source otel"}},
		{"path without source", "load: {source_config: {path: x}}\n", fault.MAN004, []string{"load.source does not say"}},
		{"format", "load: {source: access_log, source_config: {path: x, format: jsom}}\n", fault.MAN004, []string{"common, combined, vhost_combined"}},
		{"no run", "services: {web: {}}\n", fault.MAN004, []string{"services.web.run is needed"}},
		{"unknown need", "services: {web: {run: x, depends_on: [db]}}\n", fault.MAN004, []string{`"db", which is not a service`}},
		{"cycle", "services:\n  a: {run: x, depends_on: [b]}\n  b: {run: x, depends_on: [c]}\n  c: {run: x, depends_on: [a]}\n", fault.MAN004, []string{"4:28", "a -> b -> c -> a"}},
		{"self", "services: {a: {run: x, depends_on: [a]}}\n", fault.MAN004, []string{"a -> a"}},
		{"substitution", "services:\n  a:\n    run: x ${HOME}\n", fault.MAN004, []string{"3:5", "${HOME}"}},
		{"unclosed", "services: {a: {run: 'x ${PORT'}}\n", fault.MAN004, []string{"without a closing }"}},
		{"url of nobody", "services: {a: {run: 'x ${service.b.url}'}}\n", fault.MAN004, []string{"${service.b.url} names a service"}},
		{"health", "services: {a: {run: x, health: healthz}}\n", fault.MAN004, []string{"begins with /"}},
		{"health type", "services: {a: {run: x, health: 5}}\n", fault.MAN004, []string{"services.a.health must be text"}},
		{"service type", "services: {a: 5}\n", fault.MAN004, []string{"services.a must be a mapping"}},
		{"replicas type", "services: {a: {run: x, replicas: x}}\n", fault.MAN004, []string{"services.a.replicas must be a whole number"}},
		{"pattern type", "load: {safe_routes: [5]}\n", fault.MAN004, []string{"load.safe_routes[0] must be text"}},
		{"rate type", "targets: {a: {url: 'http://127.0.0.1:1', max_rate: x}}\n", fault.MAN004, []string{"targets.a.max_rate must be a rate"}},
		{"source type", "load: {source: [otel]}\n", fault.MAN004, []string{"load.source must be text"}},
		{"need type", "services: {a: {run: x, depends_on: [5]}}\n", fault.MAN004, []string{"depends_on[0] must be text"}},
		{"memory", "services: {a: {run: x, resources: {memory: lots}}}\n", fault.MAN004, []string{"512MiB"}},
		{"target rate", "targets: {a: {url: 'http://127.0.0.1:1'}}\n", fault.MAN004, []string{"targets.a.max_rate is needed"}},
		{"target user", "targets: {a: {url: 'http://u:p@127.0.0.1:1', max_rate: 1}}\n", fault.MAN004, []string{"must not hold a user name"}},
		{"target path", "targets: {a: {url: 'http://127.0.0.1:1/x', max_rate: 1}}\n", fault.MAN004, []string{"scheme, host and port only"}},
		{"target choice", "services: {a: {run: x}, b: {run: x}}\nload: {enabled: true}\n", fault.MAN004, []string{"must name one of a, b"}},
		{"target unknown", "load: {target: a}\n", fault.MAN004, []string{"neither a service nor a target"}},
		{"auth both", "load: {auth: {bearer: {env: A}, basic: {env: B}}}\n", fault.MAN004, []string{"exactly one of bearer and basic"}},
		{"auth neither", "load: {auth: {bearer: {}}}\n", fault.MAN004, []string{"exactly one of env and file"}},
		{"header break", "load: {headers: {X: \"a\\nb\"}}\n", fault.MAN004, []string{"one line of text"}},
		{"header own", "load: {headers: {Content-Length: 5}}\n", fault.MAN004, []string{"Content-Length cannot be set"}},
		{"host", "load: {host: 'http://x'}\n", fault.MAN004, []string{"load.host"}},
		{"param two", "load: {params: {'GET /o/{id}': {id: {values: [1], file: x}}}}\n", fault.MAN004, []string{"exactly one of values, file and int"}},
		{"param name", "load: {params: {'GET /o/{id}': {key: {values: [1]}}}}\n", fault.MAN004, []string{"no placeholder {key}"}},
		{"param range", "load: {params: {'GET /o/{id}': {id: {int: {min: 5, max: 1}}}}}\n", fault.MAN004, []string{"min is greater than max"}},
		{"duplicate", "load: {}\nname: a\nload: {}\n", fault.MAN002, []string{"3:1", "load stands twice", "line 1"}},
		{"tab", "load:\n\tscale: 1\n", fault.MAN002, []string{"seatrial.yaml:2:1"}},
		{"documents", "name: a\n---\nname: b\n", fault.MAN002, []string{"second YAML document"}},
		{"empty", "# nothing\n", fault.MAN002, []string{"empty"}},
		{"list on top", "- a\n", fault.MAN002, []string{"must be a mapping"}},
		{"control", "name: \x01\n", fault.MAN002, []string{"1:7", "control characters"}},
		{"not UTF-8", "name: \xff\n", fault.MAN002, []string{"1:7", "UTF-8"}},
		{"unknown alias", "name: *x\n", fault.MAN002, []string{"1:7", "*x"}},
		{"cyclic alias", "load: &a {traffic: *a}\n", fault.MAN002, []string{"inside its own anchor"}},
		{"tag", "name: !!binary aGk=\n", fault.MAN002, []string{"!!binary"}},
		{"unclosed flow", "load: {scale: 1\n", fault.MAN002, []string{"seatrial.yaml:1:"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list := problems(t, tt.text)
			if len(list) != 1 {
				t.Errorf("%d problems, want 1:\n%v", len(list), list)
			}
			all := list[0].Message + "\n" + list[0].Next + "\n" + list[0].Detail
			if list[0].Code != tt.code {
				t.Errorf("code %s, want %s: %s", list[0].Code, tt.code, all)
			}
			for _, w := range tt.want {
				if !strings.Contains(all, w) {
					t.Errorf("%q is missing from:\n%s", w, all)
				}
			}
		})
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	list := problems(t, "nmae: x\nload:\n  scale: -1\n  duration: 5\n  source: datadog\nservices: {a: {port: 70000}}\n")
	var codes []string
	for _, p := range list {
		codes = append(codes, string(p.Code))
	}
	if got := strings.Join(codes, " "); got != "MAN-003 MAN-004 MAN-004 MAN-004 LOD-012 MAN-004" {
		t.Errorf("codes %s:\n%v", got, list)
	}
}

func TestDefaultsAndOrigins(t *testing.T) {
	m := mustParse(t, "load:\n  source: otel\n  source_config: {path: [a, b]}\n  timeout: 3s\n", Override{"load.scale", "0.5", "--scale"})
	if got := *m.Load.Thresholds.P95Increase; got != 0.25 {
		t.Errorf("p95_increase under otel: %v", got)
	}
	if m.Load.TLSTimeout != 3*time.Second || m.Load.Scale != 0.5 || m.Name != "shop" {
		t.Errorf("effective: %+v", m.Load)
	}
	for path, want := range map[string]Origin{
		"load.timeout":                 {From: "manifest", Line: 4, Column: 3},
		"load.source_config.path[1]":   {From: "manifest", Line: 3, Column: 29},
		"load.scale":                   {From: "flag", Why: "--scale"},
		"load.thresholds.p95_increase": {From: "default", Why: "source otel carries durations"},
	} {
		if got := m.Origins[path]; got != want {
			t.Errorf("%s comes from %+v, want %+v", path, got, want)
		}
	}
	log := mustParse(t, "load: {source: access_log, source_config: {path: a}}\n")
	if log.Load.Thresholds.P95Increase != nil || *log.Load.Thresholds.ErrorRate != 0.01 || *log.Load.Thresholds.ClientErrorIncrease != 0.05 {
		t.Errorf("thresholds under access_log: %+v", log.Load.Thresholds)
	}
}

func TestOverrideIsBlamedOnItsFlag(t *testing.T) {
	list := problems(t, "load: {scale: 2}\n", Override{"load.scale", "zero", "--scale"})
	if len(list) != 1 || list[0].Code != fault.CLI001 || !strings.HasPrefix(list[0].Message, "--scale: load.scale must be a number") {
		t.Errorf("got %v", list)
	}
	list = problems(t, "name: x\n", Override{"load.source", "datadog", "--source"})
	if len(list) != 1 || list[0].Code != fault.LOD012 || !strings.HasPrefix(list[0].Message, "--source: there is no load source called datadog") {
		t.Errorf("got %v", list)
	}
	m := mustParse(t, "name: x\n", Override{"load.rate", "300/m", "--rate"}, Override{"load.traffic.profile", "p.json", "--profile"})
	if m.Load.Rate != 5 || m.Load.Traffic.Profile != "p.json" {
		t.Errorf("effective: %+v", m.Load)
	}
}

func TestWrittenForms(t *testing.T) {
	m := mustParse(t, "\ufeff%YAML 1.2\n---\r\nname: caf\u00e9\r\nload:\r\n  duration: 1h30m\r\n  rate: 30/m\r\nservices:\r\n")
	if m.Name != "caf\u00e9" || m.Load.Duration != 90*time.Minute || m.Load.Rate != 0.5 || m.Services != nil {
		t.Errorf("effective: %+v", m)
	}
}

func TestAnchorsAndMerges(t *testing.T) {
	m := mustParse(t, `services:
  a: &web
    run: serve --port ${PORT} --peer ${service.b.url} --key ${env:KEY}
    health: /healthz
    env: {N: 5, ON: true, V: 1.10}
  b:
    <<: *web
    health: {path: /ready, timeout: 5s}
load: {target: a, safe_routes: [&r "GET /", *r]}
`)
	a, b := m.Services["a"], m.Services["b"]
	if a.Health.Path != "/healthz" || a.Health.Timeout != time.Minute || a.Env["V"] != "1.10" || a.Env["ON"] != "true" {
		t.Errorf("a: %+v", a)
	}
	if b.Run != a.Run || b.Health.Path != "/ready" || b.Health.Timeout != 5*time.Second || b.Replicas != 1 {
		t.Errorf("b: %+v", b)
	}
	if m.Load.SafeRoutes[1] != "GET /" {
		t.Errorf("routes: %q", m.Load.SafeRoutes)
	}
}

// TestHostileInputIsBounded gives shapes that cost a naive reader seconds or its stack.
func TestHostileInputIsBounded(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		prev := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+prev+",", 9) + "*" + prev + "]\n"
	}
	for name, text := range map[string]string{
		"alias bomb": bomb,
		"brackets":   strings.Repeat("[", 100_000),
		"braces":     strings.Repeat("{a: ", 100_000),
		"dashes":     strings.Repeat("- ", 100_000),
		"questions":  strings.Repeat("? ", 100_000),
		"keys":       strings.Repeat("a: 1\n", 100_000),
		"lines":      strings.Repeat("\n", 200_000),
		"anchors":    strings.Repeat("&a ", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range problems(t, text) {
				if p.Code != fault.MAN002 {
					t.Errorf("unexpected %v", p)
				}
			}
		})
	}
	if _, err := Parse(make([]byte, maxBytes+1), dir); err == nil || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("an over-large manifest gave %v", err)
	}
}

func TestReadFindsTheFile(t *testing.T) {
	folder := t.TempDir()
	if _, err := Read(folder); err == nil || !strings.Contains(err.Error(), "MAN-001") {
		t.Errorf("a folder without a manifest gave %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, File), []byte("name: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Read(folder)
	if err != nil || m.Dir != folder || m.Name != "x" {
		t.Fatalf("Read gave %+v, %v", m, err)
	}
	if got := m.Resolve("a/b"); got != filepath.Join(folder, "a/b") {
		t.Errorf("Resolve: %s", got)
	}
	if got := m.Where("name"); got != "seatrial.yaml:1:1" {
		t.Errorf("Where: %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"load:\n  scale: 0.5\n", "a: &a {b: *a}\n", "services: {a: {run: 'x ${PORT}', depends_on: [a]}}\n",
		"load: {params: {'GET /o/{id}': {id: {int: {min: 1, max: 2}}}}}\n", "<<: [*a]\n", "? [a]\n: b\n", "load: |\n  x\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		m, err := Parse([]byte(text), dir)
		if (m == nil) == (err == nil) {
			t.Fatalf("Parse gave %v and %v", m, err)
		}
		if m != nil {
			checkRoundTrip(t, m)
		}
	})
}

// TestAmountsAreRefusedInTheirOwnWords: each value that makes no sense is named once, for what is wrong.
func TestAmountsAreRefusedInTheirOwnWords(t *testing.T) {
	for text, want := range map[string]string{
		"rate: 0/s":           "load.rate must be greater than zero",
		"scale: 1e9":          "load.scale must be from 0 to 10000",
		"scale: -1":           "load.scale must be greater than zero",
		"duration: -1s":       "a duration that is not negative",
		"duration: 999999h":   "a duration of ten years at most",
		"duration: 5":         "a duration with a unit",
		"timeout: 0s":         "load.timeout must be greater than zero",
		"host: héé":           "load.host must be a host name",
		"host: 'x:99999'":     "load.host must be a host name",
		"host: 'x:'":          "load.host must be a host name",
		"host: 'a,b'":         "load.host must be a host name",
		"host: 'a\\b'":        "load.host must be a host name",
		"connect_timeout: 0s": "load.connect_timeout must be greater than zero",
	} {
		_, err := Parse([]byte("load:\n  "+text+"\n"), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err != nil && strings.Count(err.Error(), "MAN-") != 1 {
			t.Errorf("%s is told more than once:\n%v", text, err)
		}
	}
	for _, host := range []string{"shop.example", "shop.example:8080", "127.0.0.1", "'[::1]:80'", "localhost"} {
		if _, err := Parse([]byte("load:\n  host: "+host+"\n"), t.TempDir()); err != nil {
			t.Errorf("host %s: %v", host, err)
		}
	}
}

func TestLokiSaysWhatIsAsked(t *testing.T) {
	m := mustParse(t, "load:\n  source: loki\n  source_config:\n    url: http://loki:3100\n    query: '{app=\"web\"}'\n    from: 2026-01-31T09:00:00Z\n"+
		"    to: 2026-01-31T12:00:00+01:00\n    tenant: 5\n    bearer_env: TOKEN\n")
	s := m.Load.SourceConfig
	if from, to := s.Range(); from.Hour() != 9 || to.Sub(from) != 2*time.Hour || s.Tenant != "5" || s.BearerEnv != "TOKEN" {
		t.Errorf("%v to %v: %+v", from, to, s)
	}
}

func TestFormatWithDurationsAllowsALimit(t *testing.T) {
	const text = "load:\n  source: access_log\n  source_config: {path: a.log, format: '%s'}\n  thresholds: {p95_increase: 0.25}\n"
	for format, allowed := range map[string]bool{"caddy": true, "alb": true, "ingress_nginx": true, "combined": false,
		`"$request" $status $request_time`: true, `"$request" $status`: false, `%%r %%D`: true} {
		format = strings.ReplaceAll(format, "%%", "%")
		_, err := Parse([]byte(strings.Replace(text, "%s", format, 1)), "/srv/shop")
		if (err == nil) != allowed {
			t.Errorf("%s: %v", format, err)
		}
	}
}
