package traffic

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"seatrial/fault"

	"pgregory.net/rapid"
)

func policy(t testing.TB, safe, unsafe []string) *Policy {
	t.Helper()
	p, err := NewPolicy(safe, unsafe)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecide(t *testing.T) {
	p := policy(t, []string{"GET /**", "POST /api/search", "* /any/*", "PUT /caf%C3%A9"},
		[]string{"POST /api/payments/**", "DELETE /**", "GET /admin/*", "GET /out/"})
	for _, c := range []struct {
		method, path string
		safe         bool
		list         string
	}{
		{"GET", "/", true, SafeRoutes}, {"GET", "/a/b?x=/../admin/1", true, SafeRoutes}, {"POST", "/api/search", true, SafeRoutes},
		{"POST", "/api/search/", false, ""}, {"POST", "/api/searches", false, ""}, {"PATCH", "/any/1", true, SafeRoutes}, {"PATCH", "/any/", false, ""},
		{"PATCH", "/any/1/2", false, ""}, {"get", "/", false, ""}, {"HEAD", "/", false, ""},
		{"DELETE", "/any/1", false, UnsafeRoutes}, {"delete", "/any/1", false, UnsafeRoutes}, {"POST", "/api/payments", false, UnsafeRoutes},
		{"GET", "/admin/1", false, UnsafeRoutes}, {"GET", "/Admin/1", false, UnsafeRoutes}, {"GET", "/admin/1/2", true, SafeRoutes}, {"GET", "/admin", true, SafeRoutes},
		{"GET", "/x/../admin/1", false, UnsafeRoutes}, {"GET", "/%61dmin/1", false, UnsafeRoutes}, {"GET", "/%2561dmin/1", false, UnsafeRoutes},
		{"GET", "/%252561dmin/1", false, UnsafeRoutes}, {"GET", "//admin//1", false, UnsafeRoutes}, {"GET", "/admin%2f1", false, UnsafeRoutes},
		{"GET", "/admin;x=1/1;y", false, UnsafeRoutes}, {"GET", "/admin%5C1", false, UnsafeRoutes}, {"GET", "/admin\\1", false, UnsafeRoutes},
		{"GET", "/x/%2e%2E/admin/1", false, UnsafeRoutes}, {"GET", "/x/.%2e;/admin/1", false, UnsafeRoutes}, {"GET", "/admin/1%3Fx", false, UnsafeRoutes},
		{"GET", "/out/", false, UnsafeRoutes}, {"GET", "/out", true, SafeRoutes},
		{"PUT", "/café", true, SafeRoutes}, {"PUT", "/caf%c3%a9", true, SafeRoutes}, {"POST", "/api%2Fsearch", false, ""}, {"POST", "/api/search;a", false, ""},
		{"GET", "/a%00b", false, ""}, {"GET", "/a%c0%afb", false, ""}, {"GET", "/a%u002fb", false, ""}, {"GET", "", false, ""}, {"OPTIONS", "*", false, ""},
		{"GET", "http://h/", false, ""}, {"GET", "/" + strings.Repeat("a", maxJudge), false, ""}, {"GET", "/a/./b", true, SafeRoutes},
	} {
		if d := p.Decide(c.method, c.path); d.Safe != c.safe || d.List != c.list || d.Safe != (d.Why() == "") {
			t.Errorf("%s %s: %+v", c.method, c.path, d)
		}
	}
	if d := (&Policy{}).Decide("GET", "/"); d.Safe {
		t.Error("the zero policy allows something")
	}
}

func TestBadPatternsAreAllNamed(t *testing.T) {
	bad := []string{"GET", "/a", "GET a", "GET /**/b", "GET /a*", "GET /{a", "GET /a?b", "G1 /", "GET /../a", "GET //a", "GET /a b"}
	_, err := NewPolicy(bad, []string{"DELETE /x**"})
	var list fault.List
	if !errors.As(err, &list) || len(list) != len(bad)+1 {
		t.Fatalf("%v", err)
	}
	for i, b := range append(bad, "DELETE /x**") {
		if list[i].Code != fault.MAN004 || !strings.Contains(list[i].Message, fmt.Sprintf("%q", b)) {
			t.Errorf("%q: %v", b, list[i])
		}
	}
}

func TestDecideTemplate(t *testing.T) {
	p := policy(t, []string{"GET /users/*", "GET /files/**", "GET /me", "GET /js/*", "GET /lit/eral"},
		[]string{"GET /users/export", "GET /files/{name}/raw", "POST /**"})
	for _, c := range []struct {
		method, template string
		safe, partial    bool
		list             string
	}{
		{"GET", "/users/{id}", false, true, UnsafeRoutes}, {"GET", "/users/export", false, false, UnsafeRoutes},
		{"GET", "/files/{a}/raw", false, false, UnsafeRoutes}, {"GET", "/files/{a}/{b}", false, true, UnsafeRoutes}, {"GET", "/files/{a}", true, false, SafeRoutes},
		{"GET", "/files/{rest...}", false, true, UnsafeRoutes}, {"GET", "/me", true, false, SafeRoutes}, {"GET", "/{id}", false, false, ""},
		{"GET", "/js/app.{hash}.js", true, false, SafeRoutes}, {"GET", "/users/app.{hash}.js", true, false, SafeRoutes}, {"GET", "/lit/{id}", false, false, ""},
		{"POST", "/x/{id}", false, false, UnsafeRoutes}, {"GET", "bad", false, false, ""},
	} {
		if d := p.DecideTemplate(c.method, c.template); d.Safe != c.safe || d.Partial != c.partial || d.List != c.list {
			t.Errorf("%s %s: %+v", c.method, c.template, d)
		}
	}
}

// disguise spells a path in another way that some server reads as the same path.
func disguise(rng *rand.Rand, path string) string {
	escape := func(c byte) string {
		if rng.IntN(2) == 0 {
			return fmt.Sprintf("%%%02x", c)
		}
		return fmt.Sprintf("%%%02X", c)
	}
	for range 1 + rng.IntN(3) {
		var b strings.Builder
		b.WriteByte('/')
		for i := 1; i < len(path); i++ {
			c := path[i]
			switch r := rng.IntN(12); {
			case c == '/' && r == 0:
				b.WriteString("//")
			case c == '/' && r == 1:
				b.WriteString("/./")
			case c == '/' && r == 2:
				b.WriteString("/zz/%2e./")
			case c == '/' && r == 3:
				b.WriteString(`\`)
			case c == '/' && r == 4:
				b.WriteString(";v=1/")
			case r == 5 || c == '%' && r < 9:
				b.WriteString(escape(c))
			default:
				b.WriteByte(c)
			}
		}
		path = b.String()
	}
	return path
}

// No request whose normalised form matches unsafe_routes is ever safe (TR-40).
func TestDisguiseNeverHelps(t *testing.T) {
	p := policy(t, []string{"* /**"}, []string{"POST /api/payments/**", "* /admin/*", "DELETE /orders/{id}/lines/*"})
	targets := []struct{ method, path string }{
		{"POST", "/api/payments"}, {"POST", "/api/payments/7/refund"}, {"GET", "/admin/users"}, {"DELETE", "/orders/7/lines/3"},
	}
	rapid.Check(t, func(rt *rapid.T) {
		target := rapid.SampledFrom(targets).Draw(rt, "target")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		path := disguise(rng, target.path)
		if d := p.Decide(target.method, path); d.Safe {
			rt.Fatalf("%s %s is taken for safe", target.method, path)
		}
	})
}

func TestSingleStarWarnings(t *testing.T) {
	prof := &Profile{Routes: []Route{{Method: "DELETE", Path: "/orders/{id}"}, {Method: "DELETE", Path: "/a/b/c"}, {Method: "GET", Path: "/orders/{id}"}, {Method: "DELETE", Path: Unmatched, Unmatched: true}}}
	p := policy(t, nil, []string{"DELETE /*", "DELETE /orders/**", "GET /x/*", "POST /*"})
	got := p.SingleStarWarnings(prof)
	if len(got) != 1 || !strings.Contains(got[0], `"DELETE /*"`) || !strings.Contains(got[0], "DELETE /a/b/c") || !strings.Contains(got[0], "DELETE /**") {
		t.Errorf("%q", got)
	}
}

func TestOverrideHeader(t *testing.T) {
	for _, name := range []string{"X-HTTP-Method-Override", "x_http_method_override", "X-Method-Override", "X-HTTP-Method"} {
		if m, ok := HasOverrideHeader(map[string]string{"Accept": "*/*", name: " delete "}); !ok || m != "DELETE" {
			t.Errorf("%s: %q %v", name, m, ok)
		}
	}
	if _, ok := HasOverrideHeader(map[string]string{"Method": "DELETE", "X-HTTP-Foo": "x"}); ok {
		t.Error("an ordinary header counts as an override")
	}
}

func TestCover(t *testing.T) {
	var events []Event
	add := func(n int, method, path string) { events = append(events, repeat(n, seen(method, path))...) }
	add(50, "GET", "/users/7")
	add(30, "GET", "/")
	add(10, "POST", "/api/orders")
	add(6, "DELETE", "/api/orders/7")
	add(4, "GET", "/caf%C3%A9/*")
	p, _ := build(t, BuilderConfig{}, events)
	c := Cover(p, policy(t, []string{"GET /"}, []string{"DELETE /**"}))
	if c.Reached != 0.3 || c.Heaviest != "GET /users/{id}" || c.HeaviestPart != 0.5 {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(c.Suggested, []string{"GET /users/*", "GET /caf%C3%A9/%2A"}) || !slices.Equal(c.Writes, []string{"POST /api/orders"}) {
		t.Errorf("suggested %q and %q", c.Suggested, c.Writes)
	}
	if len(c.Removed) != 2 || c.Removed[0].Pattern != WhyNotNamed || c.Removed[1].Pattern != "unsafe_routes: DELETE /**" || c.Removed[1].Requests != 6 {
		t.Errorf("%+v", c.Removed)
	}
	all := Cover(p, policy(t, slices.Concat([]string{"GET /"}, c.Suggested, c.Writes), nil))
	if all.Reached != 0.94 {
		t.Errorf("with the suggestions %v is reached", all.Reached)
	}
}

// What Cover suggests covers what it was suggested for, in a log of any kind.
func TestSuggestionsCover(t *testing.T) {
	p, _ := build(t, BuilderConfig{}, combined(t, "nginx_shop_fa_1k.log"))
	before := Cover(p, &Policy{})
	after := Cover(p, policy(t, slices.Concat(before.Suggested, before.Writes), nil))
	if before.Reached != 0 || after.Reached < 0.98 {
		t.Errorf("%v of the requests are reached; not: %+v", after.Reached, after.Removed)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add("/x/%2e%2e/admin/users", "GET")
	f.Add("/admin%252Fusers", "GET")
	f.Add("//;//\\..", "POST")
	f.Add("/%%%2%25%32%66", "GET")
	p := policy(f, []string{"* /**"}, []string{"* /admin/**"})
	strict := policy(f, []string{"GET /admin/**"}, nil)
	f.Fuzz(func(t *testing.T, path, method string) {
		d := p.Decide(method, path)
		if strings.HasPrefix(removeDots("/"+strings.TrimLeft(decodeOnce(path), "/")), "/admin/") && d.Safe {
			t.Fatalf("%q is safe", path)
		}
		if s := strict.Decide(method, path); s.Safe && !strings.HasPrefix(foldASCII(decodeAll(path)), "/admin") {
			t.Fatalf("%q is taken for one below /admin", path)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	p := policy(b, []string{"GET /**"}, []string{"DELETE /**", "* /api/payments/**"})
	b.ReportAllocs()
	for b.Loop() {
		if !p.Decide("GET", "/api/products/123").Safe {
			b.Fatal("not safe")
		}
	}
}
