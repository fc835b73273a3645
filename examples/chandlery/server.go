package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// healthRoute is answered whatever is injected, so that an environment can come up.
const healthRoute = "GET /healthz"

// Server is the shop with its faults and its records.
type Server struct {
	mux      *http.ServeMux
	started  time.Time
	released chan struct{} // closed by Release: held requests are let go
	release  sync.Once
	sinks    []sink
}

// sink keeps a record of each request that ended.
type sink interface {
	record(*served)
	Close() error
}

// served is one request that ended.
type served struct {
	start, end time.Time
	method     string
	route      string // template, e.g. "/api/products/{id}"; empty when no route matched
	target     string // path and query as received
	path       string // path as received
	proto      string // "1.1"
	host       string
	client     string // address without port
	user       string // user of basic authentication
	agent      string
	referer    string
	parent     string // traceparent header
	status     int    // 499 when the client was never answered
	bytes      int64  // of the body
}

// New makes a Server. It opens the files of cfg; Close flushes and closes them.
func New(cfg Config) (*Server, error) {
	also, err := readAlso(cfg.Also)
	if err != nil {
		return nil, err
	}
	routes := append(newShop().routes(), also...)
	names := make([]string, len(routes))
	for i, r := range routes {
		names[i] = r.name
	}
	faults, err := newInjector(cfg, names)
	if err != nil {
		return nil, err
	}
	s := &Server{mux: http.NewServeMux(), started: time.Now(), released: make(chan struct{})}
	if err := s.register(routes, faults, cfg.Unauthorized); err != nil {
		return nil, err
	}
	return s, s.open(cfg)
}

// register gives every route its handler. The mux panics on patterns that it cannot hold; those come
// from the file of further routes, so that becomes an error.
func (s *Server) register(routes []route, in injector, unauthorized bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("routes: %v", p)
		}
	}()
	for _, r := range routes {
		s.mux.HandleFunc(r.name, s.wrap(r, in.of(r.name), unauthorized))
	}
	s.mux.HandleFunc("/", s.wrap(route{"", http.NotFound}, in.of(""), unauthorized))
	s.mux.HandleFunc(healthRoute, func(w http.ResponseWriter, r *http.Request) {
		matched(w, healthRoute)
		page("text/plain", "ok\n")(w, r)
	})
	return nil
}

// wrap puts the faults before a route's handler.
func (s *Server) wrap(r route, f faults, unauthorized bool) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		matched(w, r.name)
		status := f.apply(req.Context(), s.started, s.released)
		switch {
		case unauthorized:
			w.Header().Set("WWW-Authenticate", `Basic realm="chandlery"`)
			refuse(w, http.StatusUnauthorized, "not authorised")
		case status != 0:
			refuse(w, status, "injected")
		default:
			r.handle(w, req)
		}
	}
}

// matched notes the route that took the request.
func matched(w http.ResponseWriter, name string) {
	if rec, ok := w.(*recorder); ok {
		rec.route = name
	}
}

// open opens the records that cfg asks for.
func (s *Server) open(cfg Config) error {
	for _, f := range []struct {
		path string
		make func(io.WriteCloser) sink
	}{{cfg.AccessLog, newAccessLog}, {cfg.OTLP, newOTLP}} {
		if f.path == "" {
			continue
		}
		file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		s.sinks = append(s.sinks, f.make(file))
	}
	return nil
}

// ServeHTTP implements http.Handler: it serves, and records when there is something that wants it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(s.sinks) == 0 {
		s.mux.ServeHTTP(w, r)
		return
	}
	// What is recorded is taken before the mux sees the request.
	rec := &recorder{ResponseWriter: w}
	out := &served{start: time.Now(), method: r.Method, target: r.RequestURI, host: r.Host, agent: r.UserAgent(),
		referer: r.Referer(), parent: r.Header.Get("Traceparent"), proto: fmt.Sprintf("%d.%d", r.ProtoMajor, r.ProtoMinor)}
	out.path, _, _ = strings.Cut(out.target, "?")
	out.client, _, _ = cutLast(r.RemoteAddr, ":")
	out.client = strings.Trim(out.client, "[]")
	out.user, _, _ = r.BasicAuth()
	defer func() {
		panicked := recover()
		out.end, out.bytes, out.status = time.Now(), rec.bytes, statusOf(rec.status, panicked)
		if _, out.route, _ = strings.Cut(rec.route, " "); out.route == "/{$}" {
			out.route = "/"
		}
		for _, sink := range s.sinks {
			sink.record(out)
		}
		if panicked != nil {
			panic(panicked) // net/http drops the connection
		}
	}()
	s.mux.ServeHTTP(rec, r)
}

// statusGone is what NGINX logs for a request whose client went away unanswered.
const statusGone = 499

// statusOf is the status of a request: as written, or 499 when the handler gave up before it wrote
// one, or 200 as net/http sends it for a handler that wrote nothing.
func statusOf(written int, panicked any) int {
	switch {
	case written != 0:
		return written
	case panicked != nil:
		return statusGone
	default:
		return http.StatusOK
	}
}

// Release lets go of the requests that a lock-up holds.
func (s *Server) Release() { s.release.Do(func() { close(s.released) }) }

// Close flushes and closes the records.
func (s *Server) Close() error {
	s.Release()
	var errs []error
	for _, sink := range s.sinks {
		errs = append(errs, sink.Close())
	}
	return errors.Join(errs...)
}

// recorder notes what was answered.
type recorder struct {
	http.ResponseWriter
	route  string
	status int
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// readAlso reads further routes, one "METHOD /template" a line; # starts a comment. Each answers with
// a small page whose text depends on the path alone.
func readAlso(path string) ([]route, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	var routes []route
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if method, template, ok := strings.Cut(text, " "); !ok || method == "" || !strings.HasPrefix(template, "/") {
			return nil, fmt.Errorf("%s:%d: want METHOD /template", path, n)
		}
		routes = append(routes, route{text, alsoPage})
	}
	return routes, lines.Err()
}

// alsoPage answers for a route of the file of further routes.
func alsoPage(w http.ResponseWriter, r *http.Request) {
	kind := "text/html; charset=utf-8"
	if strings.HasPrefix(r.URL.Path, "/image/") {
		kind = "image/png"
	}
	page(kind, fmt.Sprintf("<!doctype html><p>page %016x\n", hashString(r.URL.Path)))(w, r)
}

// hashString is FNV-1a.
func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
