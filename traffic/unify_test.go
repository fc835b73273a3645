package traffic

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spellings are routes as frameworks report them, with a path that each serves.
var spellings = map[string][][3]string{
	"Express, Koa, Fastify": {
		{"/users/:id", "/users/{id}", "/users/7"}, {`/users/:id(\d+)`, "/users/{id}", "/users/7"}, {"/users/:id?", "/users/{id}", "/users/7"},
		{"/files/:name.:ext", "/files/{name}", "/files/a.txt"}, {"/flights/:from-:to", "/flights/{from}", "/flights/LAX-SFO"},
		{"/a/:path*", "/a/{path...}", "/a/b/c"}, {"/a/*", "/a/{rest...}", "/a/b/c"}, {"*", "/{rest...}", "/a/b"}, {"/*splat", "/{splat...}", "/a/b"},
		{`/:file(^\d+).png`, "/{file}.png", "/12.png"}, {`/at/:hour(^\d{2})h:minute(^\d{2})m`, "/at/{hour}", "/at/08h15m"}, {`/o/([0-9]+)`, "/o/{id}", "/o/7"},
	},
	"Flask, Sanic, Bottle": {
		{"/users/<id>", "/users/{id}", "/users/7"}, {"/users/<int:id>/", "/users/{id}/", "/users/7/"}, {"/users/<int(min=1):id>", "/users/{id}", "/users/7"},
		{"/f/<path:rest>", "/f/{rest...}", "/f/a/b"}, {"/l/<string(length=2):lang>/x", "/l/{lang}/x", "/l/de/x"}, {`/r/<regex("[a-z/]+"):x>`, "/r/{x}", "/r/abc"},
		{"/users/<id:int>", "/users/{id}", "/users/7"}, {"/f/<p:path>", "/f/{p...}", "/f/a/b"}, {"/b/<name:re:[a-z]+>", "/b/{name}", "/b/x"},
	},
	"Django": {
		{"articles/<int:year>/<slug:slug>/", "/articles/{year}/{slug}/", "/articles/2024/a-b/"},
		{`^articles/(?P<year>[0-9]{4})/$`, "/articles/{year}/", "/articles/2024/"}, {`^$`, "/", "/"}, {`^about$`, "/about", "/about"},
		{`api/^users/(?P<pk>[^/.]+)/$`, "/api/users/{pk}/", "/api/users/7/"}, {`^users/(?P<pk>[^/.]+)\.(?P<format>[a-z0-9]+)/?$`, "/users/{pk}", "/users/7.json"},
		{`^media/(?P<path>.*)$`, "/media/{path...}", "/media/a/b.png"}, {`^a/([0-9]+)/b\.html$`, "/a/{id}/b.html", "/a/7/b.html"},
	},
	"ASP.NET Core": {
		{"api/users/{id:int}", "/api/users/{id}", "/api/users/7"}, {"api/users/{id:int:min(1)}", "/api/users/{id}", "/api/users/7"},
		{"{controller=Home}/{action=Index}/{id?}", "/{controller}/{action}/{id}", "/Home/Index/7"}, {"files/{*rest}", "/files/{rest...}", "/files/a/b"},
		{"files/{**rest}", "/files/{rest...}", "/files/a/b"}, {"{*path:nonfile}", "/{path...}", "/a/b"}, {`p/{ssn:regex(^\d{{3}}-\d{{2}}$)}`, "/p/{ssn}", "/p/123-45"},
		{"files/{filename}.{ext?}", "/files/{filename}", "/files/a.txt"},
	},
	"Go": {
		{"GET /items/{id}", "/items/{id}", "/items/7"}, {"/items/{id:[0-9]+}", "/items/{id}", "/items/7"}, {`/d/{date:\d{4}-\d{2}}`, "/d/{date}", "/d/2024-01"},
		{"/files/{path...}", "/files/{path...}", "/files/a/b"}, {"/posts/{$}", "/posts/", "/posts/"}, {"/static/*filepath", "/static/{filepath...}", "/static/a/b"},
		{"/s/{rest:.*}", "/s/{rest...}", "/s/a/b"}, {"/v1/{name}:cancel", "/v1/{name}:cancel", "/v1/job:cancel"}, {"/v1/{name=projects/*}/x", "/v1/{name}/x", "/v1/p/x"},
	},
	"Spring, JAX-RS, Micronaut, Ktor": {
		{`/owners/{id:\d+}`, "/owners/{id}", "/owners/7"}, {"/**", "/{rest...}", "/a/b"}, {"/res/{*path}", "/res/{path...}", "/res/a/b"},
		{"/j/{id: [0-9]+}", "/j/{id}", "/j/7"}, {"/j/{p : .+}", "/j/{p...}", "/j/a/b"}, {"/books{?max,offset}", "/books", "/books"},
		{"/k/{path...}", "/k/{path...}", "/k/a/b"}, {"/assets/*.js", "/assets/{rest}.js", "/assets/app.js"},
	},
	"Starlette, FastAPI, aiohttp": {
		{"/items/{id:int}", "/items/{id}", "/items/7"}, {"/f/{file_path:path}", "/f/{file_path...}", "/f/a/b"}, {`/u/{name:\d+}`, "/u/{name}", "/u/7"},
	},
	"Rails, Laravel, Phoenix, Play": {
		{"/articles/:id(.:format)", "/articles/{id}", "/articles/7"}, {"/articles(.:format)", "/articles", "/articles"}, {"/pages/*path(.:format)", "/pages/{path...}", "/pages/a/b"},
		{"users/{id?}", "/users/{id}", "/users/7"}, {"/w/*glob", "/w/{glob...}", "/w/a/b"}, {"/items/$id<[^/]+>", "/items/{id}", "/items/7"}, {"/dl/$name<.+>", "/dl/{name...}", "/dl/a/b"},
	},
	"Next.js, SvelteKit, Remix, Rocket, actix": {
		{"/users/[id]", "/users/{id}", "/users/7"}, {"/docs/[...slug]", "/docs/{slug...}", "/docs/a/b"}, {"/docs/[[...slug]]", "/docs/{slug...}", "/docs/a/b"},
		{"/f/[id=integer]", "/f/{id}", "/f/7"}, {"/[[lang]]/x", "/{lang}/x", "/de/x"}, {"/posts/$postId/edit", "/posts/{postId}/edit", "/posts/7/edit"}, {"/files/$", "/files/{rest...}", "/files/a/b"},
		{"/r/<id>/<path..>", "/r/{id}/{path...}", "/r/7/a/b"}, {"/t/{tail:.*}", "/t/{tail...}", "/t/a/b"},
	},
}

func TestUnifyRouteOfFrameworks(t *testing.T) {
	for framework, cases := range spellings {
		for _, c := range cases {
			got, err := UnifyRoute(c[0])
			if err != nil || got.String() != c[1] {
				t.Errorf("%s: %q became %v (%v), want %q", framework, c[0], got, err, c[1])
				continue
			}
			if !got.covers([]byte(c[2])) {
				t.Errorf("%s: %q as %s does not serve %s", framework, c[0], got, c[2])
			}
		}
	}
}

func TestRoutesThatAreNoPath(t *testing.T) {
	for _, route := range []string{"", "http://h.example/a", `/^\/users\/(\d+)$/`, `^a|b$`, `^a[0-9]$`, "/users[/{id}]", "/files{/:opt}", "(/:locale)/x",
		"HomeController#index", "static files", "/a/{", "/a/{x y}", `^(?:a|b)/c$`, `^a(`} {
		if got, err := UnifyRoute(route); err == nil {
			t.Errorf("%q was taken as %q", route, got)
		}
	}
}

func TestUnifyRouteIsIdempotent(t *testing.T) {
	var pieces []string
	for _, cases := range spellings {
		for _, c := range cases {
			pieces = append(pieces, strings.SplitAfter(c[0], "/")...)
		}
	}
	pieces = append(pieces, "^", "$", "*", "**", "(", ")", "{", "}", "<", ">", "[", "]", ":", "?", `\`, "%7b", "é", " ", "GET ", "{id...}", "$$", "...", "(?P<", "x")
	check := func(route string) {
		once, err := UnifyRoute(route)
		if err != nil {
			return
		}
		twice, err := UnifyRoute(once.String())
		if err != nil || twice.String() != once.String() {
			t.Errorf("%q became %q, and that %v (%v)", route, once, twice, err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(rt, "pieces"), ""))
	})
}

func FuzzUnifyRoute(f *testing.F) {
	for _, cases := range spellings {
		for _, c := range cases {
			f.Add(c[0])
		}
	}
	f.Fuzz(func(t *testing.T, route string) {
		once, err := UnifyRoute(route)
		if err != nil {
			return
		}
		if twice, err := UnifyRoute(once.String()); err != nil || twice.String() != once.String() {
			t.Fatalf("%q became %q, and that %v (%v)", route, once, twice, err)
		}
	})
}
