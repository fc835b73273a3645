package traffic

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRouteIndex(t *testing.T) {
	var routes []Route
	for _, name := range []string{"GET /", "GET /items", "GET /items/{id}", "GET /items/{id}/parts", "GET /items/{id}/parts/{id}", "GET /items/new", "POST /items", "GET /{id}",
		"GET /files/{rest...}", "GET /img/logo-{id}.png", "GET (unmatched)"} {
		method, path, _ := strings.Cut(name, " ")
		routes = append(routes, Route{Method: method, Path: path, Unmatched: path == Unmatched})
	}
	x := NewRouteIndex(routes)
	for request, want := range map[string]string{
		"GET /": "GET /", "GET /items": "GET /items", "GET /items/7": "GET /items/{id}", "GET /items/new": "GET /items/new", "GET /items/7/parts": "GET /items/{id}/parts",
		"GET /items/7/parts/9": "GET /items/{id}/parts/{id}", "POST /items": "POST /items", "GET /about": "GET /{id}", "GET /files/a/b/c": "GET /files/{rest...}",
		"GET /img/logo-4.png": "GET /img/logo-{id}.png", "GET /img/logo-.png": "", "POST /items/7": "", "GET /items/7/parts/9/x": "", "GET items": "", "GET ": "", "PUT /": "",
		"GET (unmatched)": "", "GET /items/": "",
	} {
		method, path, _ := strings.Cut(request, " ")
		got := ""
		if i, ok := x.Find(method, []byte(path)); ok {
			got = routes[i].Name()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", request, got, want)
		}
	}
}

// TestRouteIndexFindsWhatMatches: it finds a route if and only if a template matches, and never one that
// does not.
func TestRouteIndexFindsWhatMatches(t *testing.T) {
	segment := rapid.SampledFrom([]string{"a", "b", "{id}", "{x}", "a-{id}"})
	value := rapid.SampledFrom([]string{"a", "b", "c", "a-1", ""})
	rapid.Check(t, func(t *rapid.T) {
		var routes []Route
		for _, segs := range rapid.SliceOfN(rapid.SliceOfN(segment, 1, 3), 0, 6).Draw(t, "routes") {
			routes = append(routes, Route{Method: "GET", Path: "/" + strings.Join(segs, "/")})
		}
		path := "/" + strings.Join(rapid.SliceOfN(value, 1, 3).Draw(t, "path"), "/")
		i, ok := NewRouteIndex(routes).Find("GET", []byte(path))
		some := false
		for _, r := range routes {
			p, err := ParseTemplate(r.Path)
			if err != nil {
				continue
			}
			_, match := p.Match(path)
			some = some || match
		}
		if ok != some {
			t.Fatalf("%s: found %v, a template matches: %v", path, ok, some)
		}
		if ok {
			p, _ := ParseTemplate(routes[i].Path)
			if _, match := p.Match(path); !match {
				t.Fatalf("%s is no %s", path, routes[i].Path)
			}
		}
	})
}

func TestPossible(t *testing.T) {
	p, err := NewPolicy([]string{"GET /orders/7", "GET /items/*", "* /open/**", "GET /both/**"}, []string{"GET /items/9", "DELETE /**", "GET /both/*"})
	if err != nil {
		t.Fatal(err)
	}
	for route, want := range map[string]bool{"GET /orders/{id}": true, "GET /orders/{id}/x": false, "GET /items/{id}": true, "DELETE /open/{id}": false, "POST /open/{id}/{x}": true,
		"GET /both/{id}": false, "GET /items/9": false, "GET /orders/7": true, "GET /closed": false, "GET closed": false} {
		method, path, _ := strings.Cut(route, " ")
		if got := p.Possible(method, path); got != want {
			t.Errorf("%s: %v, want %v", route, got, want)
		}
	}
}
