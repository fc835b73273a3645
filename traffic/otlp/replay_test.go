package otlp

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seatrial/traffic"
)

// bothWays gives the same span in JSON and in protobuf, read for a replay or not.
func bothWays(t *testing.T, replay bool, pairs ...any) (fromJSON, fromProto *Source) {
	t.Helper()
	var attributes [][]byte
	for i := 0; i < len(pairs); i += 2 {
		attributes = append(attributes, pbAttribute(pairs[i].(string), pairs[i+1]))
	}
	fromJSON = reading(t, strings.NewReader(documentOf(asJSON(2, 5, 7, pairs))))
	fromProto = reading(t, bytes.NewReader(pbMessage(pbSpan(2, 5, 7, attributes...))))
	fromJSON.span.replay, fromProto.span.replay = replay, replay
	return fromJSON, fromProto
}

func TestOwnRequestsAreNoTraffic(t *testing.T) {
	for _, key := range []string{"user_agent.original", "http.user_agent"} {
		for agent, own := range map[string]bool{"seatrial/1.2.3 (run 7)": true, "seatrial/dev": true, "Mozilla/5.0 seatrial/1": false, "curl/8.5": false, "": false} {
			a, b := bothWays(t, false, "http.request.method", "GET", "http.route", "/r", key, agent)
			for _, s := range []*Source{a, b} {
				want := int64(0)
				if own {
					want = 1
				}
				if got := events(s); len(got) != 1-int(want) || s.Skipped().Reasons[traffic.OwnReason] != want || s.Counts().Own != want ||
					s.Counts().HTTPServer != 1 || s.Err() != nil {
					t.Errorf("%s %q: %q, %+v, %+v, %v", key, agent, got, s.Skipped(), s.Counts(), s.Err())
				}
			}
		}
	}
}

func TestQueryAndClientAreForAReplay(t *testing.T) {
	get := func(pairs ...any) []any {
		return append([]any{"http.request.method", "GET", "url.path", "/p"}, pairs...)
	}
	for name, c := range map[string]struct {
		pairs         []any
		query, client string
	}{
		"none":                     {get(), "", ""},
		"url.query":                {get("url.query", "a=1&b=%20", "url.full", "http://h/p?x"), "a=1&b=%20", ""},
		"url.query with its mark":  {get("url.query", "?a=1"), "a=1", ""},
		"url.full":                 {get("url.full", "http://h/p?a=1#f?g"), "a=1", ""},
		"http.target":              {get("http.target", "/p?a=1"), "a=1", ""},
		"http.url":                 {get("http.url", "http://h/p?a?b"), "a?b", ""},
		"an empty query":           {get("http.target", "/p?"), "", ""},
		"a fragment only":          {get("http.target", "/p#a?b"), "", ""},
		"client.address":           {get("client.address", "192.0.2.1", "net.peer.ip", "192.0.2.2"), "", "192.0.2.1"},
		"http.client_ip":           {get("http.client_ip", "192.0.2.3", "net.peer.ip", "192.0.2.2"), "", "192.0.2.3"},
		"net.peer.ip":              {get("net.peer.ip", "192.0.2.2", "net.sock.peer.addr", "192.0.2.4"), "", "192.0.2.2"},
		"net.sock.peer.addr":       {get("net.sock.peer.addr", "192.0.2.4"), "", "192.0.2.4"},
		"network.peer.address":     {get("network.peer.address", "192.0.2.5"), "", "192.0.2.5"},
		"a query of many segments": {get("url.query", strings.Repeat("a=1&", 900)), strings.Repeat("a=1&", 900), ""},
	} {
		for _, replay := range []bool{true, false} {
			a, b := bothWays(t, replay, c.pairs...)
			for _, s := range []*Source{a, b} {
				if !s.Scan() {
					t.Fatalf("%s: %v, %+v", name, s.Err(), s.Skipped())
				}
				e := s.Event()
				query, client := c.query, c.client
				if !replay {
					query, client = "", ""
				}
				if string(e.Query) != query || string(e.Client) != client || (e.Query == nil) != (query == "") || (e.Client == nil) != (client == "") ||
					string(e.Path) != "/p" {
					t.Errorf("%s, replay %v: %q, %q, %q", name, replay, e.Path, e.Query, e.Client)
				}
			}
		}
	}
	a, b := bothWays(t, true, get("url.query", "a\nHost: x")...)
	for _, s := range []*Source{a, b} {
		if got := events(s); len(got) != 0 || s.Skipped().Reasons["control character in the query"] != 1 {
			t.Errorf("%q, %+v", got, s.Skipped())
		}
	}
}

func TestConfigReplay(t *testing.T) {
	text := documentOf(spanOf(attributesOf("http.method", "GET", "http.target", "/a?b=c", "client.address", "192.0.2.1")))
	set := reading(t, strings.NewReader(text)).set
	s := NewWith(set, Config{Replay: true})
	if got := replayed(s); !slices.Equal(got, []string{"GET  /a?b=c 192.0.2.1 0 0 -1"}) || s.Err() != nil {
		t.Errorf("%q, %v", got, s.Err())
	}
}

// A route that an instrumentation gives where none matched is counted, whatever the source makes of it.
func TestRoutesThatSayLittle(t *testing.T) {
	for _, c := range []struct {
		route, path         string
		unmatched, catchAll int64
	}{
		{"/", "/", 0, 0}, {"/", "", 0, 0}, {"/", "/wp-login.php", 1, 0}, {"/*", "/a", 0, 1}, {"*", "/a/b", 0, 1}, {"/**", "/a", 0, 1},
		{"/{*path}", "/a", 0, 1}, {"{**slug}", "/a", 0, 1}, {"/{path...}", "/a", 0, 1}, {"/*splat", "/a", 0, 1}, {"/(.*)", "/a", 0, 1},
		{"/a/*", "/a/b", 0, 0}, {"/{id}", "/a", 0, 0}, {"", "/a", 0, 0}, {"/*/b", "/a/b", 0, 0},
	} {
		a, b := bothWays(t, false, "http.request.method", "GET", "http.route", c.route, "url.path", c.path)
		for _, s := range []*Source{a, b} {
			got := events(s)
			notes := s.Skipped().Notes
			if len(got) != 1 || notes["route / of an unmatched request"] != c.unmatched || notes["route of a catch-all"] != c.catchAll {
				t.Errorf("%q of %q: %q, %v", c.route, c.path, got, notes)
			}
		}
	}
}

// Case 13 as a profile: what no route matched is no GET /, and a catch-all cannot be sent.
func TestCase13AsAProfile(t *testing.T) {
	s := openFiles(t, casePath(t, "13", "traces.jsonl"))
	p := profileOf(t, s)
	got := map[string]uint64{}
	for _, r := range p.Routes {
		got[r.Name()] = r.Requests
		if r.Unmatched {
			continue
		}
		tpl, err := traffic.ParseTemplate(r.Path)
		if err != nil || tpl.Rest() != (r.Path == "/{rest...}") {
			t.Errorf("%s: %v", r.Path, err)
		}
	}
	want := map[string]uint64{"GET /": 1, "GET (unmatched)": 1, "GET /{rest...}": 1, "GET /{id}/fhir/Med/{id}": 1, "GET /users/{id}": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := s.Skipped().Notes; n["route / of an unmatched request"] != 1 || n["route of a catch-all"] != 1 || s.Skipped().Reasons["no route and no path"] != 1 {
		t.Errorf("%+v", s.Skipped())
	}
}
