package accesslog

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/input"
)

// casesFile is a file of a published case.
func caseFile(t testing.TB, number, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(sharedData, "cases", number+"-*", name))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v %v", number, found, err)
	}
	return found[0]
}

// readingAs reads text as standard input with a config.
func readingAs(t testing.TB, text string, config Config) *Source {
	t.Helper()
	set, err := input.Open([]string{"-"}, strings.NewReader(text), ".")
	if err != nil {
		t.Fatal(err)
	}
	return New(set, config)
}

// only is the one event of text.
func only(t *testing.T, text string, config Config) (*Source, traffic.Event) {
	t.Helper()
	s := readingAs(t, text, config)
	if !s.Scan() {
		t.Fatalf("%s: no event: %+v %v", text, s.Skipped(), s.Err())
	}
	return s, *s.Event()
}

func TestCase03LoadBalancer(t *testing.T) {
	s := openFile(t, caseFile(t, "03", "alb.log"))
	got := tally(t, s)
	k := s.Skipped()
	if k.Parsed != 3 || k.Reasons[noRequestReason] != 1 || got.routes[[2]string{"GET", "/orders/17"}] != 1 ||
		got.routes[[2]string{"GET", "/shell"}] != 1 || k.Format != "alb" {
		t.Errorf("%v %+v", got.routes, k)
	}
	if len(got.durations) != 1 || got.durations[0] != 21*time.Millisecond {
		t.Errorf("durations %v", got.durations)
	}
}

func TestCase04SeveralUpstreams(t *testing.T) {
	s := openFile(t, caseFile(t, "04", "access.log"))
	got := tally(t, s)
	if fmt.Sprint(got.durations) != "[104ms 3s 10ms]" || got.requests != 3 || s.Skipped().Format != "ingress_nginx" || s.Err() != nil {
		t.Errorf("%v %+v", got.durations, s.Skipped())
	}
	s = openFile(t, caseFile(t, "04", "access.log"))
	for _, want := range []string{"10:00:00", "09:59:58", "10:00:02"} { // of a whole second whole seconds are taken
		if s.Scan(); time.Unix(0, s.Event().UnixNano).UTC().Format("15:04:05") != want {
			t.Errorf("%v, want %s", time.Unix(0, s.Event().UnixNano).UTC(), want)
		}
	}
}

func TestCase05ForwardedListFirst(t *testing.T) {
	path := caseFile(t, "05", "access.log")
	s := openFile(t, path)
	if got := tally(t, s); got.requests != 2 || got.routes[[2]string{"GET", "/cart"}] != 2 || len(got.durations) != 0 {
		t.Errorf("without a format: %v %+v", got.routes, s.Skipped())
	}
	format, err := os.ReadFile(caseFile(t, "05", "format.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s = readingAs(t, string(text), Config{Format: string(format)})
	got := tally(t, s)
	if k := s.Skipped(); len(got.durations) != 1 || got.durations[0] != 109488*time.Microsecond || k.Unparsable != 1 || k.First[0].Line != 2 {
		t.Errorf("with its format: %v %+v", got.durations, k)
	}
}

func TestCase07NotQuiteJSON(t *testing.T) {
	s := openFile(t, caseFile(t, "07", "access.jsonl"))
	got := tally(t, s)
	k := s.Skipped()
	if got.routes[[2]string{"GET", "/a"}] != 1 || got.routes[[2]string{"GET", "/b"}] != 1 || fmt.Sprint(got.durations) != "[20ms 30ms]" {
		t.Errorf("%v %v", got.routes, got.durations)
	}
	if k.Unparsable != 1 || k.First[0] != (traffic.Skip{Input: "access.jsonl", Line: 3, Reason: "the line is cut short"}) ||
		Warning(k) != "" || k.Format != "nginx_json" || !strings.Contains(k.Recognised[0].Why, "request_time") {
		t.Errorf("%+v", k)
	}
}

const (
	ownALB   = `http 2024-03-05T10:00:00.100000Z app/lb/0 192.0.2.7:1111 10.0.0.5:80 0.001 0.020 0.000 200 200 100 900 "GET http://h:80/own?a=1 HTTP/1.1" "seatrial/1"`
	ownEdge  = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs-uri-stem sc-status cs(User-Agent) cs-uri-query time-taken\n2024-03-05\t10:00:00\tFRA\t900\t192.0.2.7\tGET\t/own\t200\tseatrial/1\ta=1\t0.021"
	ownIIS   = "#Fields: date time cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) sc-status sc-bytes cs-bytes time-taken\n2024-03-05 10:00:00 GET /own a=1 192.0.2.7 seatrial/1 200 900 100 21"
	ownProxy = `192.0.2.7:1111 [05/Mar/2024:10:00:00.079] f b/s 1/0/0/20/21 200 900 - - ---- 1/1/0/0/0 0/0 {h|seatrial/1} "GET /own?a=1 HTTP/1.1"`
)

// Each form of log, once with all that it carries: the same request, sent by Seatrial.
func ownLines() map[string]string {
	return map[string]string{
		"combined":            `192.0.2.7 - - [05/Mar/2024:10:00:00 +0000] "GET /own?a=1 HTTP/1.1" 200 900 "-" "seatrial/1"`,
		"vhost_combined":      `h.example 192.0.2.7 - - [05/Mar/2024:10:00:00 +0000] "GET /own?a=1 HTTP/1.1" 200 900 "-" "seatrial/1"`,
		"ingress_nginx":       `192.0.2.7 - - [05/Mar/2024:10:00:00 +0000] "GET /own?a=1 HTTP/1.1" 200 900 "-" "seatrial/1" 100 0.021 [w] [] 10.0.0.1:80 900 0.02 200 ab`,
		"traefik_clf":         `192.0.2.7 - - [05/Mar/2024:10:00:00 +0000] "GET /own?a=1 HTTP/1.1" 200 900 "-" "seatrial/1" 5 "r" "http://s" 21ms`,
		"nginx_proxy_manager": `[05/Mar/2024:10:00:00 +0000] - 200 200 - GET https h.example "/own?a=1" [Client 192.0.2.7] [Length 900] [Gzip -] [Sent-to s] "seatrial/1" "-"`,
		"nginx_json":          `{"time_iso8601":"2024-03-05T10:00:00+00:00","remote_addr":"192.0.2.7","request_method":"GET","request_uri":"/own?a=1","status":"200","body_bytes_sent":"900","request_length":100,"request_time":"0.021","http_user_agent":"seatrial/1"}`,
		"json":                `{"ts":1709632800.079,"method":"GET","path":"/own","query":"a=1","status":200,"bytes":900,"duration_ms":21,"user_agent":"seatrial/1","client_ip":"192.0.2.7"}`,
		"caddy":               `{"ts":1709632800.1,"logger":"http.log.access","request":{"client_ip":"192.0.2.7","method":"GET","uri":"/own?a=1","headers":{"User-Agent":["seatrial/1"]}},"duration":0.021,"size":900,"status":200}`,
		"traefik":             `{"ClientHost":"192.0.2.7","DownstreamContentSize":900,"DownstreamStatus":200,"Duration":21000000,"RequestMethod":"GET","RequestPath":"/own?a=1","StartUTC":"2024-03-05T10:00:00.079Z","request_User-Agent":"seatrial/1"}`,
		"envoy":               `{"start_time":"2024-03-05T10:00:00.079Z","method":"GET","path":"/own?a=1","response_code":200,"bytes_sent":900,"bytes_received":100,"duration":21,"user_agent":"seatrial/1","x_forwarded_for":"192.0.2.7"}`,
		"envoy_text":          `[2024-03-05T10:00:00.079Z] "GET /own?a=1 HTTP/1.1" 200 - via_upstream - "-" 100 900 21 20 "192.0.2.7" "seatrial/1" "id" "h" "s:80"`,
		"cloudflare":          `{"ClientIP":"192.0.2.7","ClientRequestMethod":"GET","ClientRequestURI":"/own?a=1","ClientRequestUserAgent":"seatrial/1","EdgeStartTimestamp":"2024-03-05T10:00:00.079Z","EdgeEndTimestamp":"2024-03-05T10:00:00.1Z","EdgeResponseBytes":900,"EdgeResponseStatus":200}`,
		"linkerd":             `{"client.addr":"192.0.2.7","method":"GET","uri":"http://h/own?a=1","status":200,"timestamp":"2024-03-05T10:00:00.079Z","total_ns":"21000000","processing_ns":"1","user_agent":"seatrial/1","response_bytes":"900"}`,
		"json_google":         `{"timestamp":"2024-03-05T10:00:00.079Z","httpRequest":{"requestMethod":"GET","requestUrl":"https://h/own?a=1","status":200,"responseSize":"900","latency":"0.021s","userAgent":"seatrial/1","remoteIp":"192.0.2.7"}}`,
		"json_kong":           `{"request":{"method":"GET","uri":"/own?a=1","size":100,"headers":{"user-agent":"seatrial/1"}},"response":{"status":200,"size":900},"latencies":{"request":21},"started_at":1709632800079,"client_ip":"192.0.2.7"}`,
		"alb":                 ownALB,
		"cloudfront":          ownEdge,
		"w3c":                 ownIIS,
		"haproxy":             ownProxy,
		"zoraxy":              `2024/03/05 10:00:00 [2024-03-05 10:00:00.000000] [router:h] [origin:h] [client: 192.0.2.7] [useragent: seatrial/1] GET /own?a=1 200`,
	}
}

func TestOwnRequestsAreNoTraffic(t *testing.T) {
	for name, text := range ownLines() {
		s := readingAs(t, text, Config{})
		if s.Scan() {
			t.Errorf("%s: an event %+v", name, s.Event())
		}
		if k := s.Skipped(); k.Reasons[traffic.OwnReason] != 1 || k.Format != name || k.Unparsable != 0 || s.Err() != nil {
			t.Errorf("%s: %+v, %v", name, k, s.Err())
		}
	}
}

func TestEveryFormatGivesTheSame(t *testing.T) {
	lasting := map[string]bool{"combined": false, "vhost_combined": false, "nginx_proxy_manager": false, "zoraxy": false}
	for name, text := range ownLines() {
		s, e := only(t, strings.ReplaceAll(text, "seatrial/1", "curl/8"), Config{Replay: true})
		if string(e.Method) != "GET" || string(e.Path) != "/own" || string(e.Query) != "a=1" || string(e.Client) != "192.0.2.7" || e.Status != 200 {
			t.Errorf("%s: %s %s?%s %d of %s", name, e.Method, e.Path, e.Query, e.Status, e.Client)
		}
		if e.ResponseSize != 900 && name != "zoraxy" {
			t.Errorf("%s: %d bytes", name, e.ResponseSize)
		}
		want := 21 * time.Millisecond
		if _, without := lasting[name]; without {
			want = -1
		}
		if e.Duration != want {
			t.Errorf("%s: took %v, want %v", name, e.Duration, want)
		}
		begun := time.Date(2024, 3, 5, 10, 0, 0, 0, time.UTC).UnixNano()
		if s.clock.unit < int64(time.Second) && want > 0 && name != "json" {
			begun += 79 * int64(time.Millisecond)
		}
		if name == "json" {
			begun += 58 * int64(time.Millisecond)
		}
		if math.Abs(float64(e.UnixNano-begun)) > 1000 {
			t.Errorf("%s: began at %v", name, time.Unix(0, e.UnixNano).UTC())
		}
		_, e = only(t, strings.ReplaceAll(text, "seatrial/1", "curl/8"), Config{})
		if e.Query != nil || e.Client != nil {
			t.Errorf("%s: a query or a client that nobody asked for", name)
		}
	}
}

// A named format reads its own lines and refuses those of others.
func TestNamedFormatIsUsedAlone(t *testing.T) {
	lines := ownLines()
	for _, name := range Formats() {
		text, ok := lines[name]
		if !ok {
			continue
		}
		if _, e := only(t, strings.ReplaceAll(text, "seatrial/1", "curl/8"), Config{Format: name}); string(e.Path) != "/own" {
			t.Errorf("%s: %s", name, e.Path)
		}
		stranger := lines["alb"]
		if name == "alb" {
			stranger = lines["caddy"]
		}
		s := readingAs(t, stranger+"\n", Config{Format: name})
		if s.Scan() || s.Skipped().Unparsable != 1 {
			t.Errorf("%s reads another format: %+v", name, s.Skipped())
		}
		if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF002 {
			t.Errorf("%s: %v", name, s.Err())
		}
	}
}

func TestPrefixesAreRemoved(t *testing.T) {
	lines := ownLines()
	for name, text := range lines {
		if strings.Contains(text, "\n") { // a W3C log has no prefix
			continue
		}
		text = strings.ReplaceAll(text, "seatrial/1", "curl/8")
		packed := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(text)
		for _, whole := range []string{
			"2024-03-05T10:00:00.123456789+01:00 stdout F " + text,
			"2024-03-05T10:00:00.123456789Z stderr F " + text,
			"<13>Mar  5 10:00:00 host app[7]: " + text,
			"Mar  5 10:00:00 host app: " + text,
			"<165>1 2024-03-05T10:00:00.003Z host app 7 ID47 - " + text,
			`<165>1 2024-03-05T10:00:00.003Z host app - - [a@1 b="c\"] "] ` + text,
			"web-1  | " + text,
			"\x1b[36mweb-1  | \x1b[0m" + text,
			"[pod/web-5d/web] " + text,
			`{"log":"` + packed + `\n","stream":"stdout","time":"2024-03-05T10:00:00Z"}`,
			`{"stream":"stdout","log":"` + packed + `\n","kubernetes":{"labels":{"a":[1,"b"]}}}`,
		} {
			s, e := only(t, whole, Config{Replay: true})
			if string(e.Path) != "/own" || s.Skipped().Format != name || string(e.Client) != "192.0.2.7" {
				t.Errorf("%s: %s of %s as %s", whole, e.Path, e.Client, s.Skipped().Format)
			}
		}
	}
}

func TestMixedFile(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"combined", "caddy", "haproxy", "alb", "envoy_text", "combined", "traefik", "zoraxy", "haproxy"} {
		all.WriteString(strings.ReplaceAll(ownLines()[name], "seatrial/1", "curl/8") + "\n")
	}
	s := readingAs(t, all.String()+"{\"level\":\"info\",\"msg\":\"started the server, and all is well\"}\n", Config{})
	n := 0
	for ; s.Scan(); n++ {
		if string(s.Event().Path) != "/own" {
			t.Errorf("%s", s.Event().Path)
		}
	}
	k := s.Skipped()
	if n != 9 || k.Unparsable != 0 || k.Reasons[notAccessReason] != 1 || k.Format != "combined,caddy,traefik,envoy_text,haproxy,alb,zoraxy" {
		t.Errorf("%d events, %+v", n, k)
	}
	for _, r := range k.Recognised {
		if r.Why == "" || r.Lines < 1 || r.Format == "" {
			t.Errorf("%+v", r)
		}
	}
}

func TestFormatStrings(t *testing.T) {
	for _, c := range []struct {
		format, line, path, query string
		took                      time.Duration
	}{
		{`$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" rt=$request_time uct="$upstream_connect_time"`,
			`192.0.2.7 - a b [05/Mar/2024:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 900 "-" "c" rt=0.021 uct="-"`, "/a", "b=1", 21 * time.Millisecond},
		{"log_format main escape=json '{\"t\":\"$time_iso8601\",\"r\":\"$request\",\"s\":$status,'\n  '\"d\":$request_time}';",
			`{"t":"2024-03-05T10:00:00+00:00","r":"GET /say\"hi\"?b=1 HTTP/1.1","s":200,"d":0.021}`, `/say"hi"`, "b=1", 21 * time.Millisecond},
		{`$time_iso8601 $request_method $scheme://$host$request_uri $status $upstream_response_time $request_time more`,
			`2024-03-05T10:00:00+00:00 GET https://h.example/a?b=1 200 0.010, 0.011 0.021 more`, "/a", "b=1", 21 * time.Millisecond},
		{`$msec|$request_method|$host$uri$is_args$args|$status`, `1709632800.079|GET|h.example/a?b=1|200`, "/a", "b=1", -1},
		{`$msec $request_method $uri "$args" ${status}`, `1709632800.079 GET /a "b=1" 200`, "/a", "b=1", -1},
		{`%h %l %u %t "%r" %>s %b %D`, `h - - [05/Mar/2024:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 - 21000 more`, "/a", "b=1", 21 * time.Millisecond},
		{`LogFormat "%v:%p %a %t \"%m %U%q %H\" %s %{ms}T \"%{User-agent}i\"" vhost`, `h:80 192.0.2.7 [05/Mar/2024:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 21 "c"`, "/a", "b=1", 21 * time.Millisecond},
		{`%{%Y-%m-%dT%H:%M:%S}t.%{msec_frac}t%{%z}t %m %U %q %s %T/%D`, `2024-03-05T10:00:00.079+0000 GET /a ?b=1 200 0/21000`, "/a", "b=1", 21 * time.Millisecond},
		{`[%{%d/%b/%Y:%T %z}t] %r`, `[05/Mar/2024:10:00:00 +0000] GET /a?b=1 HTTP/1.1`, "/a", "b=1", -1},
		{`%{usec}t %r`, `1709632800000000 GET /a?b=1 HTTP/1.1`, "/a", "b=1", -1},
		{`%{end:sec}t %m %U %q %T`, `1709632802 GET /a ?b=1 2`, "/a", "b=1", 2 * time.Second},
		{`%m %U %q`, `GET /a ?b=1`, "/a", "b=1", -1},
	} {
		s, e := only(t, c.line+"\n", Config{Format: c.format, Replay: true})
		if string(e.Path) != c.path || string(e.Query) != c.query || e.Duration != c.took {
			t.Errorf("%s: %s?%s took %v", c.format, e.Path, e.Query, e.Duration)
		}
		if at := time.Unix(0, e.UnixNano).UTC().Format("2006-01-02T15:04:05"); at != "2024-03-05T10:00:00" && c.format != `%m %U %q` {
			t.Errorf("%s: at %s", c.format, at)
		}
		if HasDuration(c.format) != (c.took >= 0) || s.Skipped().Format != "format string" {
			t.Errorf("%s: HasDuration is %v", c.format, HasDuration(c.format))
		}
		s = readingAs(t, "secret\n", Config{Format: c.format})
		if s.Scan() || s.Skipped().Unparsable != 1 || strings.Contains(s.Skipped().First[0].Reason, "secret") {
			t.Errorf("%s: %+v", c.format, s.Skipped())
		}
	}
}

func TestHasDuration(t *testing.T) {
	for format, want := range map[string]bool{"": false, "combined": false, "caddy": true, "alb": true, "iis": true,
		"ingress-nginx": true, "nonsense": false, "$status": false, `"$request" $upstream_response_time`: false, "%r %D": true} {
		if got := HasDuration(format); got != want {
			t.Errorf("%q: %v", format, got)
		}
	}
}

func TestMessagesAreNoRequests(t *testing.T) {
	text := `{"level":"debug","ts":1709632800,"logger":"http.handlers.reverse_proxy","msg":"upstream roundtrip","duration":0.02,"request":{"method":"GET","uri":"/a"},"status":200}` + "\n" +
		`{"level":"info","msg":"listening on port 80 since just now"}` + "\n" + `{"a":{"b":[1,{"c":null},[true,"x"]]}}` + "\n"
	s := readingAs(t, text, Config{})
	if s.Scan() {
		t.Fatalf("%+v", s.Event())
	}
	if e, ok := fault.As(s.Err()); !ok || e.Code != fault.TRF002 || !strings.Contains(e.Next, "JSON") || s.Skipped().Reasons[notAccessReason] != 3 {
		t.Errorf("%v %+v", s.Err(), s.Skipped())
	}
}

func TestDurationWithoutUnitIsNone(t *testing.T) {
	s, e := only(t, `{"time":"2024-03-05T10:00:00Z","method":"GET","path":"/a","status":200,"duration":21}`, Config{})
	if e.Duration >= 0 || s.Skipped().Notes["a duration without a unit"] != 1 {
		t.Errorf("%v %+v", e.Duration, s.Skipped().Notes)
	}
	_, e = only(t, `{"time":"2024-03-05T10:00:00Z","method":"GET","path":"/a","status":200,"duration":"1m2.5s"}`, Config{})
	if e.Duration != 62500*time.Millisecond {
		t.Errorf("%v", e.Duration)
	}
}

func TestBadJSONIsNamed(t *testing.T) {
	for text, want := range map[string]result{
		`{"a":1`: cutJSON, `{"a`: cutJSON, `{"a":"b\`: cutJSON, `{`: cutJSON, `{"a":[1,`: cutJSON, `{"a" 1}`: badJSON, `{1:2}`: badJSON,
		`{"a":1}x`: badJSON, `{"a":[1}`: badJSON, `{"a":{}`: cutJSON, `{"a":[,]}`: badJSON,
		strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100): badJSON,
	} {
		s := readingAs(t, text, Config{})
		if s.Scan() || len(s.Skipped().First) != 1 || s.Skipped().First[0].Reason != want.String() {
			t.Errorf("%s: %+v", text, s.Skipped())
		}
	}
}

// slice gives lines that stand in memory, as another provider than files does.
type slice struct {
	lines []string
	at    int
}

func (s *slice) Next() bool    { s.at++; return s.at <= len(s.lines) }
func (s *slice) Bytes() []byte { return []byte(s.lines[s.at-1]) }
func (s *slice) Fault() string { return "" }
func (s *slice) Number() int64 { return int64(s.at) }
func (s *slice) Input() string { return "loki" }
func (s *slice) Err() error    { return nil }

func TestLinesFromAnywhere(t *testing.T) {
	s := NewFrom(&slice{lines: []string{ownALB, strings.ReplaceAll(ownALB, "seatrial", "curl"), "x"}}, Config{})
	n := 0
	for s.Scan() {
		n++
	}
	if k := s.Skipped(); n != 1 || k.First[0].Input != "loki" || k.Reasons[traffic.OwnReason] != 1 || s.Err() != nil {
		t.Errorf("%d %+v %v", n, k, s.Err())
	}
	s = NewFrom(&slice{}, Config{})
	if s.Scan() || s.Err() == nil {
		t.Error("no line is no error")
	}
}

// fuzzed reads one line as each format, and as any.
func fuzzed(t *testing.T, line []byte, config Config) {
	s := NewFrom(&slice{lines: []string{"#Fields: date time cs-method cs-uri-stem sc-status time-taken", string(line)}}, config)
	for s.Scan() {
		e := s.Event()
		if len(e.Method) == 0 || len(e.Path) == 0 || bytes.ContainsAny(e.Path, "?#\r\n") || e.Status < 0 || e.Status > 999 || e.UnixNano < -1<<62 {
			t.Fatalf("%+v: event %+v", config, e)
		}
		if !config.Replay && (e.Query != nil || e.Client != nil) {
			t.Fatalf("%+v: %+v", config, e)
		}
	}
	if k := s.Skipped(); k.Read+k.Blank+k.Comment != 2 {
		t.Fatalf("%+v: %+v", config, k)
	}
}

func FuzzFormats(f *testing.F) {
	for _, text := range ownLines() {
		f.Add([]byte(text), true)
	}
	f.Add([]byte(`{"log":"{\"log\":\"{\\\"log\\\":1}\"}"}`), false)
	f.Fuzz(func(t *testing.T, line []byte, replay bool) {
		fuzzed(t, line, Config{Replay: replay})
		for _, format := range Formats() {
			fuzzed(t, line, Config{Format: format, Replay: replay})
		}
	})
}

func FuzzFormatString(f *testing.F) {
	f.Add(`$remote_addr - $remote_user [$time_local] "$request" $status`, []byte(ownLines()["combined"]))
	f.Add(`"%{X-Forwarded-For}i" %h %l %u %t "%r" %>s %b`, []byte(ownLines()["combined"]))
	f.Add(`{"r":"$request","u":"$upstream_addr"}`, []byte(`{"r":"GET /\\","u":"a : b, c"}`))
	f.Fuzz(func(t *testing.T, format string, line []byte) {
		if CheckFormat(format) == nil {
			fuzzed(t, line, Config{Format: format, Replay: true})
		}
	})
}

// texts are logs of each format, for what is measured.
func texts() map[string]string {
	out := map[string]string{}
	for name, text := range ownLines() {
		out[name] = strings.ReplaceAll(text, "seatrial/1", "Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0") + "\n"
	}
	for _, name := range []string{"w3c", "cloudfront"} {
		head, row, _ := strings.Cut(out[name], "\n")
		row = strings.ReplaceAll(row, " (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0", "+(X11)")
		out[name] = head + "\n" + strings.Repeat(row, 200)
	}
	return out
}

func TestNoAllocationInAnyFormat(t *testing.T) {
	for name, text := range texts() {
		s := reading(t, &endless{text: []byte(text), left: 1 << 40})
		for range 5000 {
			if !s.Scan() {
				t.Fatalf("%s: %v", name, s.Err())
			}
		}
		if n := testing.AllocsPerRun(5000, func() { s.Scan() }); n != 0 {
			t.Errorf("%s: %v allocations per line", name, n)
		}
	}
}

func BenchmarkFormats(b *testing.B) {
	for name, text := range texts() {
		b.Run(name, func(b *testing.B) {
			const size = 8 << 20
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				s := reading(b, &endless{text: []byte(text), left: size})
				for s.Scan() {
				}
				if s.Err() != nil {
					b.Fatal(s.Err())
				}
			}
		})
	}
}
