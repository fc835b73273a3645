package intake

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const logLine = `203.0.113.9 - - [02/Jan/2026:03:00:00 +0000] "GET /items/7 HTTP/1.1" 200 12` + "\n"

const traces = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",` +
	`"kind":2,"name":"GET /items/{id}","startTimeUnixNano":"1767322800000000000","endTimeUnixNano":"1767322800050000000",` +
	`"attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},{"key":"http.route","value":{"stringValue":"/items/{id}"}},` +
	`{"key":"url.path","value":{"stringValue":"/items/7"}},{"key":"http.response.status_code","value":{"intValue":"200"}}]}]}]}]}`

// TestKindByContent: what nobody named is told apart by how it begins.
func TestKindByContent(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"a log":                              {logLine, AccessLog},
		"a trace export":                     {traces, OTel},
		"traces after a byte-order mark":     {"\xef\xbb\xbf \n" + traces, OTel},
		"an array of documents":              {"[" + traces + "]", OTel},
		"what rotation leaves before a log":  {strings.Repeat("\x00", 64) + logLine, AccessLog},
		"an error log's bracketed time":      {"[Sat Jan 02 03:00:00 2026] [error] x\n" + logLine, AccessLog},
		"a bracketed time without a weekday": {"[02/Jan/2026:03:00:00 +0000] x\n" + logLine, AccessLog},
	} {
		got, err := Read(t.Context(), Config{Paths: []string{"-"}, Stdin: strings.NewReader(c.in), Now: now})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Kind != c.want || got.Profile.Requests != 1 {
			t.Errorf("%s: %d requests of %s, want one of %s", name, got.Profile.Requests, got.Kind, c.want)
		}
	}
}

// TestFormatSaysLog: a named format is an access log's, whatever the first byte.
func TestFormatSaysLog(t *testing.T) {
	_, err := Read(t.Context(), Config{Paths: []string{"-"}, Stdin: strings.NewReader(traces), Format: "combined", Now: now})
	if e, _ := fault.As(err); e == nil || e.Code != fault.TRF002 {
		t.Errorf("traces as a combined log: %v, want TRF-002", err)
	}
}

// TestCancelled: a reader of an endless source ends with its context.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(ctx, Config{Paths: []string{"-"}, Stdin: endless{}, Now: now})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// endless is a log that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(logLine) <= len(p) {
		n += copy(p[n:], logLine)
	}
	if n == 0 {
		n = copy(p, logLine)
	}
	return n, nil
}

// TestBinaryTraces: traces in protobuf, and with a length before each message, are known by content.
func TestBinaryTraces(t *testing.T) {
	for name, format := range map[string]string{
		"java_agent_v0165_native.pb.zst":       "otlp-proto length-prefixed",
		"java_agent_v0165_legacy.pb.zst.bin":   "otlp-proto length-prefixed zstd",
		"java_agent_v0165_legacy.json.zst.bin": "otlp-json length-prefixed zstd",
	} {
		got, err := Read(t.Context(), Config{Paths: []string{name}, Dir: "../../traffic/otlp/testdata", Now: now})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Kind != OTel || got.Profile.Requests != 81 || got.Profile.Source.Format != format {
			t.Errorf("%s: %d requests of %s as %s", name, got.Profile.Requests, got.Kind, got.Profile.Source.Format)
		}
	}
	_, err := Read(t.Context(), Config{Paths: []string{"-"}, Stdin: strings.NewReader("\x00\x00\x00\x07\x0a\x05\x0a\x00\x12\x01x"), Now: now})
	if e, _ := fault.As(err); e == nil || e.Code != fault.TRF002 || !strings.Contains(e.Message, "protobuf") {
		t.Errorf("a damaged message alone: %v", err)
	}
}

// TestNoRequestIsAWarning: records that parsed and hold nothing to send are told loudly.
func TestNoRequestIsAWarning(t *testing.T) {
	for name, in := range map[string]string{
		"a log of probes":        `192.0.2.1 - - [05/Mar/2024:10:00:00 +0000] "\x16\x03" 400 150` + "\n",
		"an export of no server": strings.Replace(traces, `"kind":2`, `"kind":3`, 1),
	} {
		got, err := Read(t.Context(), Config{Paths: []string{"-"}, Stdin: strings.NewReader(in), Now: now})
		if err != nil || got.Profile.Requests != 0 || !strings.Contains(got.Warning, "not one of 1 records") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
