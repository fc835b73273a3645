package otlp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/traffic"
	"seatrial/traffic/accesslog"
	"seatrial/traffic/input"
)

// profileOf reads a source into a profile.
func profileOf(t *testing.T, s traffic.Source) *traffic.Profile {
	t.Helper()
	b, err := traffic.NewBuilder(traffic.BuilderConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for s.Scan() {
		b.Add(s.Event())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	p, _, err := b.Finish(s.Skipped(), time.Unix(1800000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// served is one route of a made-up application: what its framework calls it, the paths that it serves,
// and the code that it answers.
type served struct {
	method, route string
	weight        int
	status        int
	path          func(r *rand.Rand) string
}

func number(format string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return fmt.Sprintf(format, 1+r.IntN(90_000)) }
}

func always(path string) func(*rand.Rand) string { return func(*rand.Rand) string { return path } }

// application is a small shop; spell puts the framework's placeholder between two ends of a route.
func application(spell func(prefix, suffix string) string) []served {
	return []served{
		{"GET", "/", 20, 200, always("/")},
		{"GET", spell("", "/products"), 40, 200, always("/products")},
		{"GET", spell("/products/", ""), 80, 200, number("/products/%d")},
		{"POST", spell("/orders/", "/items"), 15, 201, number("/orders/%d/items")},
		{"DELETE", spell("/orders/", "/items"), 5, 204, number("/orders/%d/items")},
		{"GET", "/", 9, 404, always("/wp-login.php")}, // no route matched
		{"GET", "", 7, 200, number("/reports/%d")},    // the instrumentation names no route
	}
}

// hole puts a framework's placeholder between two ends; without a prefix there is none.
func hole(placeholder string) func(prefix, suffix string) string {
	return func(prefix, suffix string) string {
		if prefix == "" {
			return suffix
		}
		return prefix + placeholder + suffix
	}
}

// made writes the same requests as a log, as JSON Lines and as protobuf with lengths.
func made(app []served, requests int) (log, jsonl string, proto []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	var total int
	for _, a := range app {
		total += a.weight
	}
	var logged, lines strings.Builder
	start := time.Unix(1700000000, 0).UTC()
	for i := range requests {
		n, a := r.IntN(total), 0
		for ; n >= app[a].weight; a++ {
			n -= app[a].weight
		}
		at := start.Add(time.Duration(i) * time.Second)
		path := app[a].path(r)
		agent := "Mozilla/5.0"
		fmt.Fprintf(&logged, "192.0.2.%d - - [%s] \"%s %s?q=%d HTTP/1.1\" %d 17 \"-\" %q\n", i%200, at.Format("02/Jan/2006:15:04:05 -0700"),
			app[a].method, path, i, app[a].status, agent)
		pairs := []any{"http.request.method", app[a].method, "url.path", path, "url.query", fmt.Sprint("q=", i),
			"http.response.status_code", app[a].status, "user_agent.original", agent}
		if app[a].route != "" {
			pairs = append(pairs, "http.route", app[a].route)
		}
		var attributes [][]byte
		for j := 0; j < len(pairs); j += 2 {
			attributes = append(attributes, pbAttribute(pairs[j].(string), pairs[j+1]))
		}
		begin := uint64(at.UnixNano())
		lines.WriteString(documentOf(asJSON(2, begin, begin+5e6, pairs), asJSON(3, begin, begin+1e6, pairs)) + "\n")
		proto = append(proto, withLength(pbMessage(pbSpan(2, begin, begin+5e6, attributes...), pbSpan(3, begin, begin+1e6, attributes...)))...)
	}
	return logged.String(), lines.String(), proto
}

// A trace and a log of the same traffic give the same routes with the same weights.
func TestATraceAndALogOfTheSameTrafficAgree(t *testing.T) {
	for framework, placeholder := range map[string]string{
		"Express": ":id", "Express with a pattern": `:id(\d+)`, "Flask": "<int:id>", "ASP.NET": "{id:int}", "gorilla": "{id:[0-9]+}",
		"Django": "(?P<id>[0-9]+)", "Next.js": "[id]", "Play": "$id<[0-9]+>", "net/http": "{id}",
	} {
		log, jsonl, proto := made(application(hole(placeholder)), 3000)
		set, err := input.Open([]string{"-"}, strings.NewReader(log), ".")
		if err != nil {
			t.Fatal(err)
		}
		want := profileOf(t, accesslog.New(set, accesslog.Config{}))
		if len(want.Routes) != 7 || want.Requests != 3000 {
			t.Fatalf("the log gives %d requests of %s", want.Requests, weights(want))
		}
		for encoding, s := range map[string]*Source{"JSON": reading(t, strings.NewReader(jsonl)), "protobuf": reading(t, bytes.NewReader(proto))} {
			got := profileOf(t, s)
			if a, b := weights(got), weights(want); a != b {
				t.Errorf("%s in %s:%s\nthe log:%s", framework, encoding, a, b)
			}
			if got.Rate != want.Rate || got.Requests != want.Requests {
				t.Errorf("%s in %s: %d at %v, want %d at %v", framework, encoding, got.Requests, got.Rate, want.Requests, want.Rate)
			}
		}
	}
}

// weights are the routes of a profile with their weights and status classes, as comparable text. The request
// that matched no route is a path of its own in a log, and kept apart in a trace.
func weights(p *traffic.Profile) string {
	var lines []string
	for _, r := range p.Routes {
		name := r.Name()
		if r.Unmatched || r.Path == "/wp-login.php" {
			name = "what matched no route"
		}
		lines = append(lines, fmt.Sprintf("\n%s %.9f %v", name, r.Weight, r.Status))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
