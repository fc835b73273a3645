package traffic

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shapes is the table of TR-20; it is the fuzz corpus as well.
var shapes = []struct{ seg, want string }{
	{"users", "users"}, {"v1", "v1"}, {"oauth2", "oauth2"}, {"favicon.ico", "favicon.ico"}, {"style2.css", "style2.css"},
	{"wp-login.php", "wp-login.php"}, {"utf-8", "utf-8"}, {"base64", "base64"}, {"sha256", "sha256"}, {"decade", "decade"},
	{"updateVariation", "updateVariation"}, {"robots.txt", "robots.txt"}, {"disabling-battery-in-ubuntu-vms.html", "disabling-battery-in-ubuntu-vms.html"},
	{"android-chrome-512x512.png", "android-chrome-512x512.png"}, {"xdotool.xhtml", "xdotool.xhtml"}, {"jquery.min.js", "jquery.min.js"},
	{"amp_preconnect_polyfill_404_or_other_error_expected", idHole}, {".well-known", ".well-known"}, {"apple-touch-icon", "apple-touch-icon"},
	{"1", idHole}, {"42", idHole}, {"-3", idHole}, {"3.14", idHole}, {"20240131", idHole}, {"1,2,3", idHole},
	{"0af76519-16cd-43dd-8448-eb211c80319c", idHole}, {"0AF76519-16CD-43DD-8448-EB211C80319C", idHole},
	{"01ARZ3NDEKTSV4RRFFQ69G5FAV", idHole}, {"9f1c2d3e4f5a6b7c", idHole}, {"deadbeefdeadbeef", idHole}, {"3f9a2c1b", idHole},
	{"dQw4w9WgXcQ", idHole}, {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0", idHole}, {"Zm9vYmFyYmF6cXV4MTIz", idHole}, {"Zm9vYg==", idHole},
	{"ann@example.com", idHole}, {"ann%40example.com", idHole}, {"2024-01-31", idHole}, {"2024-W05", idHole}, {"2024-01-31T10:00:00Z", idHole},
	{"abc-123", idHole}, {"order_10293", idHole}, {"p12590", idHole}, {"blue-shoe-48213", idHole}, {"the-10-best-anchors-for-small-boats", idHole},
	{"12345.jpg", "{id}.jpg"}, {"app.3f9a2c1b.js", "app.{hash}.js"}, {"index-BxK3fZ2q.js", "index-{hash}.js"}, {"wp-07faf7.php", "wp-{hash}.php"},
	{"main.4f3c9a1b.chunk.css", "main.{hash}.chunk.css"}, {"0af7651916cd43dd8448eb211c80319c.png", "{id}.png"},
	{"%d8%a2", "%D8%A2"}, {"{id}", "%7Bid%7D"}, {"a b", "a%20b"}, {"", ""}, {strings.Repeat("long", 40), idHole},
}

func TestShape(t *testing.T) {
	for _, c := range shapes {
		got, hashole := appendShape(nil, []byte(c.seg))
		if string(got) != c.want {
			t.Errorf("%q became %q, want %q", c.seg, got, c.want)
		}
		if hashole != strings.Contains(c.want, "{") {
			t.Errorf("%q: hole reported as %v", c.seg, hashole)
		}
	}
}

func TestUnifyRoute(t *testing.T) {
	for route, want := range map[string]string{
		"/": "/", "/users/:id": "/users/{id}", "/users/:id([0-9]+)": "/users/{id}", "/users/{id}": "/users/{id}",
		"/users/{id:[^/]+}": "/users/{id}", "/users/<int:id>": "/users/{id}", "/users/<id>/": "/users/{id}/", "/users/[id]": "/users/{id}",
		"/users/:id?": "/users/{id}", "*": "/{rest...}", "/*": "/{rest...}", "/a/**": "/a/{rest...}", "/a/*path": "/a/{path...}",
		"/a/:path*": "/a/{path...}", "/a/{path...}": "/a/{path...}", "/a/{*path}": "/a/{path...}", "/a/<path:p>": "/a/{p...}",
		"/a/[...slug]": "/a/{slug...}", "/a/(.*)": "/a/{rest...}", "/users/:uuid/avatar.png": "/users/{uuid}/avatar.png",
		"/files/:name.json": "/files/{name}.json", "/files/:name.:ext": "/files/{name}", "/a/*/b": "/a/{rest}/b", "/x/{$}": "/x/",
	} {
		got, err := UnifyRoute(route)
		if err != nil || got.String() != want {
			t.Errorf("%q became %v (%v), want %q", route, got, err, want)
		}
	}
	for _, bad := range []string{"", `/^\/users\/(\d+)$/`, "/a/{", "/a/{x y}"} {
		if got, err := UnifyRoute(bad); err == nil {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
}

func TestTemplateMatchAndExpand(t *testing.T) {
	for _, c := range []struct {
		template, path string
		values         []string
		ok             bool
	}{
		{"/", "/", nil, true}, {"/a", "/a/", nil, false}, {"/a/", "/a/", nil, true},
		{"/{id}/fhir/Med/{id}", "/42/fhir/Med/abc-123", []string{"42", "abc-123"}, true},
		{"/js/app.{hash}.js", "/js/app.3f9a2c1b.js", []string{"3f9a2c1b"}, true}, {"/js/app.{hash}.js", "/js/app..js", nil, false},
		{"/a/{id}", "/a/", nil, false}, {"/a/{id}", "/a/b/c", nil, false}, {"/a/{rest...}", "/a/b/c", []string{"b/c"}, true}, {"/a/{id}", "a/b", nil, false},
	} {
		tpl, err := ParseTemplate(c.template)
		if err != nil {
			t.Fatal(err)
		}
		values, ok := tpl.Match(c.path)
		if ok != c.ok || ok && !slices.Equal(values, c.values) {
			t.Errorf("%s on %s: %q %v", c.template, c.path, values, ok)
		}
		if strings.HasPrefix(c.path, "/") && tpl.covers([]byte(c.path)) != c.ok {
			t.Errorf("%s covers %s: %v", c.template, c.path, !c.ok)
		}
		if ok && tpl.Expand(values) != c.path {
			t.Errorf("%s with %q gave %s", c.template, values, tpl.Expand(values))
		}
	}
	tpl, err := ParseTemplate("/{id}/fhir/Med/{id}")
	if err != nil || !slices.Equal(tpl.Keys(), []string{"id", "id2"}) {
		t.Errorf("keys %q, %v", tpl.Keys(), err)
	}
}

func TestEscapeSegmentStaysOneSegment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.String().Draw(t, "value")
		got := EscapeSegment(v)
		if strings.ContainsAny(got, "/?#\\ ") || got == "." || got == ".." || decodeOnce(got) != v {
			t.Fatalf("%q became %q", v, got)
		}
	})
}

// FuzzTemplate holds templating to what the rest relies on: every path gets a template that reads
// back, that covers the path it came from, and that templating again does not change.
func FuzzTemplate(f *testing.F) {
	for _, c := range shapes {
		f.Add("/x/" + c.seg)
	}
	f.Add("/")
	f.Add("//a//")
	f.Add("/" + strings.Repeat("a/", 50))
	f.Add("/%zz/{rest...}/a{b}c")
	f.Add("/x/0AF76519-16CD" + strings.Repeat("\xc2", 700))
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
			return
		}
		p, o := build(t, BuilderConfig{}, []Event{seen("GET", path)})
		if len(p.Routes) != 1 || p.Routes[0].Unmatched {
			t.Fatalf("%q became %q", path, names(p))
		}
		tpl, err := ParseTemplate(p.Routes[0].Path)
		if err != nil || tpl.String() != p.Routes[0].Path {
			t.Fatalf("%q: template %q: %v", path, p.Routes[0].Path, err)
		}
		clean := string(appendClean(nil, []byte(path)))
		values, ok := tpl.Match(clean)
		if !ok || tpl.Expand(values) != clean || !tpl.covers([]byte(clean)) {
			t.Fatalf("%q: %q does not cover %q (%q)", path, tpl, clean, values)
		}
		if !tpl.Literal() && !tpl.Rest() && len(clean) <= maxKeptPath && len(o.Tuples(p.Routes[0].Name())) != 1 {
			t.Fatalf("%q: no values", path)
		}
	})
}
