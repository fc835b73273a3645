package loki

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"seatrial/fault"
	"seatrial/traffic/loki/lokitest"
)

// given is one entry that a reader gave.
type given struct {
	at   int64
	line string
}

func all(r *Reader) (out []given) {
	for r.Next() {
		out = append(out, given{r.Time(), string(r.Bytes()) + r.Fault()})
	}
	return out
}

// stock is what a server holds of {app="web"}, in the order of time.
func stock(s *lokitest.Server) (out []given) {
	for _, stream := range s.Streams {
		for _, e := range stream.Entries {
			if stream.Labels["app"] == "web" {
				out = append(out, given{e.Time, e.Line})
			}
		}
	}
	return sorted(out)
}

// sorted orders entries fully: those of one instant come in no particular order.
func sorted(in []given) []given {
	slices.SortFunc(in, func(a, b given) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.line, b.line)) })
	return in
}

func inOrder(in []given) bool {
	return slices.IsSortedFunc(in, func(a, b given) int { return cmp.Compare(a.at, b.at) })
}

// asking gives a configuration for a server in memory, whose stop is called at the end of the test.
func asking(t testing.TB, s http.Handler, from, to int64) Config {
	t.Helper()
	dial, stop := lokitest.Pipe(s)
	t.Cleanup(stop)
	return Config{URL: "http://loki.test", Query: `{app="web"}`, From: time.Unix(0, from), To: time.Unix(0, to), Dial: dial}
}

func reader(t testing.TB, c Config) *Reader {
	t.Helper()
	r, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// lines makes n entries, a second apart from 1000 s on, in two streams.
func lines(n int) *lokitest.Server {
	s := &lokitest.Server{Streams: []lokitest.Stream{
		{Labels: map[string]string{"app": "web", "pod": "a"}}, {Labels: map[string]string{"app": "web", "pod": "b"}},
		{Labels: map[string]string{"app": "db"}, Entries: []lokitest.Entry{{Time: 1001e9, Line: "not asked for"}}},
	}}
	for i := range n {
		p := &s.Streams[i%2]
		p.Entries = append(p.Entries, lokitest.Entry{Time: int64(1000+i) * 1e9, Line: fmt.Sprintf("line %d", i),
			Metadata: map[string]string{"trace_id": fmt.Sprint(i)}})
	}
	return s
}

func TestPagesGiveEveryEntryOnceInTheOrderOfTime(t *testing.T) {
	for _, backend := range []Backend{Loki, VictoriaLogs} {
		t.Run(backend.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := &lokitest.Server{MaxEntries: rapid.IntRange(3, 40).Draw(t, "max"), Plain: rapid.Bool().Draw(t, "plain")}
				if backend == VictoriaLogs {
					s.MaxEntries = 1 << 30 // it knows no such limit
				}
				crowds := map[int64]int{}
				for i := range rapid.IntRange(0, 4).Draw(t, "streams") {
					stream := lokitest.Stream{Labels: map[string]string{"app": "web", "pod": fmt.Sprint(i)}}
					for range rapid.IntRange(0, 60).Draw(t, "entries") {
						at := 1000 + rapid.Int64Range(0, 30).Draw(t, "at")
						crowds[at]++
						stream.Entries = append(stream.Entries, lokitest.Entry{Time: at, Line: rapid.SampledFrom([]string{"a", "b", `"\ ü`}).Draw(t, "line"),
							Metadata: map[string]string{"id": fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "id"))}})
					}
					s.Streams = append(s.Streams, stream)
				}
				c := Config{Backend: backend, URL: "http://loki.test", Query: `{app="web"}`, From: time.Unix(0, 1000), To: time.Unix(0, 1031),
					BatchSize: rapid.IntRange(1, 60).Draw(t, "batch")}
				dial, stop := lokitest.Pipe(s)
				defer stop()
				c.Dial = dial
				r, err := New(context.Background(), c)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = r.Close() }()
				got, want := all(r), stock(s)
				if !inOrder(got) {
					t.Fatalf("out of order: %v", got)
				}
				if err := r.Err(); err != nil {
					e, _ := fault.As(err)
					for _, n := range crowds {
						if e != nil && e.Code == fault.TRF022 && n >= s.MaxEntries {
							return // an instant that no page can hold, and it is said
						}
					}
					t.Fatal(err)
				}
				if !slices.Equal(sorted(got), want) {
					t.Fatalf("gave %v\nhas %v", got, want)
				}
				if r.Number() != int64(len(want)) {
					t.Fatalf("number %d of %d", r.Number(), len(want))
				}
			})
		})
	}
}

func TestAnInstantWithMoreEntriesThanThePage(t *testing.T) {
	crowd := func(n int) *lokitest.Server {
		s := lines(10)
		for i := range n {
			s.Streams[0].Entries = append(s.Streams[0].Entries, lokitest.Entry{Time: 1004e9 + 7, Line: fmt.Sprint(i)})
		}
		s.MaxEntries = 100
		return s
	}
	s := crowd(90)
	c := asking(t, s, 0, 2000e9)
	c.BatchSize = 7
	r := reader(t, c)
	if got := all(r); r.Err() != nil || !slices.Equal(sorted(got), stock(s)) {
		t.Errorf("%d entries of %d, %v", len(got), len(stock(s)), r.Err())
	}
	c = asking(t, crowd(100), 0, 2000e9)
	c.BatchSize = 7
	r = reader(t, c)
	got := all(r)
	wantFault(t, r.Err(), fault.TRF022, "1970-01-01T00:16:44.000000007Z", "100 entries")
	if len(got) != 5 {
		t.Errorf("%d entries before the instant, not 5", len(got))
	}
}

func wantFault(t testing.TB, err error, code fault.Code, words ...string) {
	t.Helper()
	e, ok := fault.As(err)
	if !ok || e.Code != code {
		t.Errorf("%v, not %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Message+e.Next, w) {
			t.Errorf("%q lacks %q", e.Message+" "+e.Next, w)
		}
	}
}

func TestLimitsOfTheServerAreHeeded(t *testing.T) {
	s := lines(300)
	s.MaxEntries, s.MaxRange = 50, 70*time.Second
	r := reader(t, asking(t, s, 0, 2000e9))
	if got := all(r); r.Err() != nil || !slices.Equal(got, stock(s)) {
		t.Errorf("%d entries, %v", len(got), r.Err())
	}
	s = lines(300)
	s.SilentCap = 100
	r = reader(t, asking(t, s, 0, 2000e9))
	_ = all(r)
	wantFault(t, r.Err(), fault.TRF022, "gave 100 entries where 5000", "at most 100")
	s = lines(100) // a round number, and nothing after it
	r = reader(t, asking(t, s, 0, 2000e9))
	if got := all(r); r.Err() != nil || len(got) != 100 {
		t.Errorf("%d entries, %v", len(got), r.Err())
	}
}

func TestTheRangeIsHalfOpenAndMayBeEmpty(t *testing.T) {
	for _, backend := range []Backend{Loki, VictoriaLogs} {
		c := asking(t, lines(10), 1002e9, 1005e9)
		c.Backend = backend
		r := reader(t, c)
		got := all(r)
		if len(got) != 3 || got[0].line != "line 2" || got[2].line != "line 4" || r.Err() != nil || r.Input() != "loki.test" {
			t.Errorf("%s: %v, %v", backend, got, r.Err())
		}
		c.From, c.To = time.Unix(1, 0), time.Unix(2, 0)
		r = reader(t, c)
		if got := all(r); got != nil || r.Err() != nil {
			t.Errorf("%s: %v, %v", backend, got, r.Err())
		}
	}
}

func TestPassingTroubleIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lines(50)
		s.Before = func(n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 1:
				return lokitest.Refuse(w, 429, "too many outstanding requests", "Retry-After", "7")
			case 2:
				return lokitest.Refuse(w, 503, "starting")
			case 4:
				s.Cut(w, r, 0.5)
			case 5:
				<-r.Context().Done() // never answers
			case 6:
				return lokitest.Refuse(w, 429, "later", "Retry-After", time.Now().Add(40*time.Second).UTC().Format(http.TimeFormat))
			}
			return false
		}
		c := asking(t, s, 0, 2000e9)
		c.BatchSize = 20
		begin := time.Now()
		r := reader(t, c)
		got := all(r)
		sent, again := r.Requests()
		if r.Err() != nil || !slices.Equal(got, stock(s)) || again != 5 || sent != int64(len(s.Requests())) {
			t.Errorf("%d entries, %d requests, %d again, %v", len(got), sent, again, r.Err())
		}
		if took := time.Since(begin); took < 7*time.Second+2*time.Minute+39*time.Second || took > 4*time.Minute {
			t.Errorf("took %v", took)
		}
		_ = r.Close()
	})
}

func TestLastingTroubleIsToldOnceItIsClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lines(5)
		s.Before = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			return lokitest.Refuse(w, 502, "no\x1b[31m backend\n")
		}
		r := reader(t, asking(t, s, 0, 2000e9))
		if all(r) != nil || len(s.Requests()) != DefaultAttempts {
			t.Errorf("%d requests", len(s.Requests()))
		}
		wantFault(t, r.Err(), fault.TRF023, "loki.test", "status 502: no [31m backend", "6 attempts")
		_ = r.Close()

		c := asking(t, s, 0, 2000e9)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := New(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if begin := time.Now(); r.Next() || !errors.Is(r.Err(), context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", r.Err(), time.Since(begin))
		}
		_ = r.Close()
	})
}

func TestNobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, stop := lokitest.Pipe(lines(1))
		stop()
		c := Config{URL: "http://loki.test", Query: "{a=\"b\"}", Since: time.Hour, Dial: dial, Attempts: 2}
		r := reader(t, c)
		_ = all(r)
		wantFault(t, r.Err(), fault.TRF023, "loki.test cannot be read", "2 attempts")
	})
}

func TestRefusalsAreToldInTheServersWords(t *testing.T) {
	const password, token = "hunter2-canary", "glsa-canary"
	for name, c := range map[string]struct {
		server *lokitest.Server
		change func(*Config)
		words  []string
	}{
		"tenant":   {&lokitest.Server{Tenant: "x"}, func(*Config) {}, []string{"status 401: no org id", "tenant"}},
		"user":     {&lokitest.Server{User: "u", Password: "other"}, func(c *Config) { c.User, c.Password = "u", password }, []string{"invalid username"}},
		"token":    {&lokitest.Server{Bearer: "other"}, func(c *Config) { c.Bearer = token }, []string{"403", "permission denied"}},
		"query":    {&lokitest.Server{}, func(c *Config) { c.Query = "{app=" }, []string{"status 400: parse error at line 1, col 5"}},
		"matrix":   {&lokitest.Server{}, func(c *Config) { c.Query = `count_over_time({app="web"}[1m])` }, []string{"holds a matrix, not log lines"}},
		"path":     {&lokitest.Server{}, func(c *Config) { c.URL += "/prefix" }, []string{"404", "/prefix/loki/api/v1/query_range"}},
		"echo":     {&lokitest.Server{Before: refuse(400, "bad token "+token+" of "+password)}, func(c *Config) { c.Bearer = token }, []string{"[redacted]"}},
		"json":     {&lokitest.Server{Before: refuse(400, `{"status":"error","error":"said so"}`)}, func(*Config) {}, []string{"status 400: said so"}},
		"long":     {&lokitest.Server{Before: refuse(400, strings.Repeat("ü", 9000))}, func(*Config) {}, []string{"..."}},
		"html":     {&lokitest.Server{Before: refuse(200, "<html>")}, func(*Config) {}, []string{"not well-formed JSON", "URL"}},
		"other":    {&lokitest.Server{Before: refuse(200, `{"status":"success"}`)}, func(*Config) {}, []string{"holds no data"}},
		"error":    {&lokitest.Server{Before: refuse(200, `{"status":"error","error":"inner"}`)}, func(*Config) {}, []string{"inner"}},
		"unstated": {&lokitest.Server{Before: refuse(400, "max entries limit")}, func(c *Config) { c.BatchSize = 4 }, []string{"max entries"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := asking(t, c.server, 0, 2000e9)
			c.change(&config)
			r := reader(t, config)
			if got := all(r); got != nil {
				t.Errorf("gave %v", got)
			}
			wantFault(t, r.Err(), fault.TRF021, c.words...)
			if text := fmt.Sprintf("%v %+v %#v", r.Err(), config, config); strings.Contains(strings.ReplaceAll(text, password, "canary"), "canary") && name != "echo" ||
				strings.Contains(text, token) || len(r.Err().Error()) > 600 {
				t.Errorf("tells too much: %s", text)
			}
		})
	}
}

func refuse(status int, words string) func(int, http.ResponseWriter, *http.Request) bool {
	return func(_ int, w http.ResponseWriter, _ *http.Request) bool { return lokitest.Refuse(w, status, words) }
}

func TestCredentialsAreSentAndStayAtHome(t *testing.T) {
	s := lines(3)
	s.User, s.Password, s.Tenant = "u", "p w", "team"
	c := asking(t, s, 0, 2000e9)
	c.User, c.Password, c.Tenant = "u", "p w", "team"
	c.URL += "/loki/api/v1/" // which means the same
	r := reader(t, c)
	if got := all(r); len(got) != 3 || r.Err() != nil {
		t.Errorf("%v, %v", got, r.Err())
	}
	if h := s.Requests()[0].Header; h.Get("X-Scope-OrgID") != "team" || h.Get("Accept-Encoding") != "gzip" {
		t.Errorf("headers %v", h)
	}

	foreign := lines(3)
	elsewhere := httptest.NewServer(foreign)
	t.Cleanup(elsewhere.Close)
	s = &lokitest.Server{Before: func(_ int, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL+"/loki/api/v1/query_range", http.StatusTemporaryRedirect)
		return true
	}}
	c = asking(t, s, 0, 2000e9)
	c.Bearer = "secret"
	r = reader(t, c)
	_ = all(r)
	wantFault(t, r.Err(), fault.TRF021, "sends the question on to "+elsewhere.URL)
	if len(foreign.Requests()) != 0 {
		t.Error("the redirect was followed")
	}

	c = asking(t, lines(3), 0, 2000e9)
	c.Backend, c.Tenant = VictoriaLogs, "12:34"
	if h := c.headers(); h.Get("AccountID") != "12" || h.Get("ProjectID") != "34" || h.Get("X-Scope-OrgID") != "" {
		t.Errorf("headers %v", h)
	}
}

func TestConfigurationsThatCannotWorkAreRefusedWhole(t *testing.T) {
	good := Config{URL: "http://l:3100", Query: "{a=\"b\"}", Since: time.Hour}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"no URL":                    func(c *Config) { c.URL = "" },
		"name environment":          func(c *Config) { c.URL = "http://u:canary@l" },
		"is not one":                func(c *Config) { c.URL = "http://u:canary@l:x" },
		"must be http":              func(c *Config) { c.URL = "l:3100" },
		"question mark":             func(c *Config) { c.URL += "?query=x" },
		"no query":                  func(c *Config) { c.Query = " " },
		"where to begin; set from":  func(c *Config) { c.Since = 0 },
		"set one of them":           func(c *Config) { c.From = time.Unix(1, 0) },
		"is empty":                  func(c *Config) { c.From, c.To, c.Since = time.Unix(5, 0), time.Unix(5, 0), 0 },
		"bearer token and a user":   func(c *Config) { c.Bearer, c.User = "canary", "u" },
		"without a user name":       func(c *Config) { c.Password = "canary" },
		"control character":         func(c *Config) { c.Bearer = "canary\n" },
		"written account:project":   func(c *Config) { c.Backend, c.Tenant = VictoriaLogs, "a:b" },
		"must not be negative":      func(c *Config) { c.BatchSize = -1 },
		"between the years 1970":    func(c *Config) { c.Since, c.From = 0, time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC) },
		"cannot hold a colon":       func(c *Config) { c.User = "a:b" },
		"since must not be negativ": func(c *Config) { c.Since = -1 },
	} {
		c := good
		change(&c)
		_, err := New(t.Context(), c)
		wantFault(t, err, fault.TRF020)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, not %q", err, want)
		}
	}
	if err := (&Config{}).Check(); strings.Count(err.Error(), "TRF-020") != 3 {
		t.Errorf("not all at once: %v", err)
	}
}

func TestWhatIsLongerThanALineIsCounted(t *testing.T) {
	s := lines(3)
	s.Streams[0].Entries[1].Line = strings.Repeat("x", maxLine+1)
	r := reader(t, asking(t, s, 0, 2000e9))
	got := all(r)
	if len(got) != 3 || got[2].line != faultLong || r.Err() != nil {
		t.Errorf("%d entries, %v", len(got), r.Err())
	}
}

func TestLongLinesMakeShorterPages(t *testing.T) {
	s := lines(80)
	for i := range 2 {
		for k := range s.Streams[i].Entries {
			s.Streams[i].Entries[k].Line += strings.Repeat("y", 900<<10)
		}
	}
	r := reader(t, asking(t, s, 0, 2000e9))
	n := 0
	for r.Next() {
		if len(r.Bytes()) > n {
			n = len(r.Bytes())
		}
	}
	if r.Err() != nil || r.Number() != 80 || n < 900<<10 {
		t.Errorf("%d entries, %v", r.Number(), r.Err())
	}
}

// endless answers with pages that are made up as they are asked for.
type endless struct{ total int64 }

func (e endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var start, limit int64
	_, _ = fmt.Sscan(r.URL.Query().Get("start"), &start)
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	text := []byte(`{"status":"success","data":{"resultType":"streams","result":[{"stream":{},"values":[`)
	for i := start; i < min(start+limit, e.total); i++ {
		if i > start {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `["%d","198.18.0.1 - - [22/Jan/2019:03:56:14 +0330] \"GET /a/%d HTTP/1.1\" 200 30577 \"-\" \"agent\"",{}]`, i, i)
	}
	_, _ = w.Write(append(text, `]}]}}`...))
}

func TestAMillionEntriesInConstantMemory(t *testing.T) {
	const total = 1_000_000
	r := reader(t, asking(t, endless{total}, 0, total))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before, most uint64
	for next := int64(0); r.Next(); next++ {
		if r.Time() != next {
			t.Fatalf("entry %d has the time %d", next, r.Time())
		}
		if next == total/20 {
			before = heap()
		}
		if next%(total/10) == total/10-1 {
			most = max(most, heap())
		}
	}
	if r.Err() != nil || r.Number() != total {
		t.Fatalf("%d entries, %v", r.Number(), r.Err())
	}
	if before == 0 || most > before+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, most)
	}
}

func TestEntriesOfAPageDoNotAllocate(t *testing.T) {
	s := lines(4000)
	rand.Shuffle(len(s.Streams[0].Entries), func(i, k int) {
		e := s.Streams[0].Entries
		e[i], e[k] = e[k], e[i]
	})
	r := reader(t, asking(t, s, 0, 9000e9))
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if n := testing.AllocsPerRun(3000, func() {
		if !r.Next() || len(r.Bytes()) == 0 {
			t.Fatal("the page is too short")
		}
	}); n != 0 {
		t.Errorf("%v allocations for each entry", n)
	}
}

// What a real server answered, refusal of the limit included, goes through the client unchanged.
func TestRecordedAnswersOfARealServer(t *testing.T) {
	for _, name := range []string{"query_range_forward.json.gz", "query_range_backward.json.gz"} {
		var limits []string
		s := &lokitest.Server{Before: func(n int, w http.ResponseWriter, r *http.Request) bool {
			limits = append(limits, r.URL.Query().Get("limit"))
			switch n {
			case 1:
				return lokitest.Refuse(w, 400, string(file(t, "error_limit_too_high.txt")))
			case 2:
				return lokitest.Refuse(w, 200, string(file(t, name)))
			}
			return lokitest.Refuse(w, 200, string(file(t, "query_range_empty.json")))
		}}
		c := asking(t, s, 1548116700e9, 1548117900e9)
		c.BatchSize = 9999
		r := reader(t, c)
		got := all(r)
		instants := map[int64]bool{}
		for _, e := range got {
			instants[e.at] = true
		}
		// 400 entries at 223 instants, says whoever recorded them; 400 is round, so that the end is proved
		if r.Err() != nil || len(got) != 400 || len(instants) != 223 || !inOrder(got) || !slices.Equal(limits, []string{"9999", "5000", "1"}) {
			t.Errorf("%s: %d entries at %d instants, limits %v, %v", name, len(got), len(instants), limits, r.Err())
		}
		if want := sorted(byEncodingJSON(t, file(t, name))); !slices.Equal(sorted(got), want) {
			t.Errorf("%s: other entries", name)
		}
	}
	s := &lokitest.Server{Before: refuse(200, string(file(t, "query_range_matrix_not_logs.json.gz")))}
	r := reader(t, asking(t, s, 0, 2000e9))
	_ = all(r)
	wantFault(t, r.Err(), fault.TRF021, "a matrix, not log lines")
}

// A small answer that unpacks to an endless one costs bounded memory, and ends.
func TestABombIsGivenUp(t *testing.T) {
	s := &lokitest.Server{Before: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		space := bytes.Repeat([]byte(" "), 1<<20)
		for range 2*maxAnswer/len(space) + 1 {
			if _, err := z.Write(space); err != nil {
				return true // the client has seen enough
			}
		}
		t.Error("all of it was read")
		return true
	}}
	c := asking(t, s, 0, 2000e9)
	c.BatchSize = 1
	r := reader(t, c)
	if r.Next() || len(s.Requests()) != 1 {
		t.Errorf("%d requests", len(s.Requests()))
	}
	wantFault(t, r.Err(), fault.TRF021, "larger than Seatrial holds")
}

// A server that gives what it was not asked for is not believed.
func TestEntriesFromOutsideTheRange(t *testing.T) {
	answer := `{"status":"success","data":{"resultType":"streams","result":[{"stream":{},"values":[["%d","x"]]}]}}`
	for at, want := range map[int64]int{999: 0, 1000: 1, 1999: 1, 2000: 0} {
		r := reader(t, asking(t, &lokitest.Server{Before: refuse(200, fmt.Sprintf(answer, at))}, 1000, 2000))
		if got := all(r); len(got) != want || (r.Err() != nil) != (at == 999) {
			t.Errorf("%d: %v, %v", at, got, r.Err())
		}
	}
}
