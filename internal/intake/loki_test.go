package intake

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
	"seatrial/traffic/loki"
	"seatrial/traffic/loki/lokitest"
)

// accessLines are 300 lines of an access log, and something else.
func accessLines() []string {
	var out []string
	for i := range 300 {
		out = append(out, fmt.Sprintf(`198.18.0.1 - - [22/Jan/2019:03:%02d:%02d +0330] "GET /a/%d HTTP/1.1" 200 1 "-" "x"`, i/60, i%60, i%3))
	}
	return append(out, "no access log")
}

func askLoki(t *testing.T, s *lokitest.Server) (*Traffic, error) {
	t.Helper()
	dial, stop := lokitest.Pipe(s)
	defer stop()
	return Read(t.Context(), Config{Kind: Loki, Now: time.Unix(2e9, 0), Loki: loki.Config{URL: "http://loki.test", Query: `{app="web"}`,
		From: time.Unix(0, 0), To: time.Unix(3000, 0), BatchSize: 70, Attempts: 1, Dial: dial}})
}

// What a server holds becomes the same traffic as the file that it was collected from.
func TestLokiGivesWhatTheFileGives(t *testing.T) {
	var entries []lokitest.Entry
	for i, line := range accessLines() {
		entries = append(entries, lokitest.Entry{Time: int64(1000+i/2) * 1e9, Line: line})
	}
	got, err := askLoki(t, &lokitest.Server{Streams: []lokitest.Stream{{Labels: map[string]string{"app": "web"}, Entries: entries}}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(context.Background(), Config{Paths: []string{"-"}, Stdin: strings.NewReader(strings.Join(accessLines(), "\n")), Now: time.Unix(2e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != Loki || got.Profile.Requests != 300 || got.Skips.Unparsable != 1 || got.Skips.First[0].Line != 301 {
		t.Errorf("%+v, %+v", got, got.Skips)
	}
	for i := range got.Skips.First { // it names the server
		if got.Skips.First[i].Input == "-" {
			t.Errorf("%+v", got.Skips.First[i])
		}
		got.Skips.First[i].Input = "-"
	}
	if !reflect.DeepEqual(got.Profile.Routes, want.Profile.Routes) || !reflect.DeepEqual(got.Skips, want.Skips) {
		t.Errorf("%+v, %+v\nnot %+v, %+v", got.Profile.Routes, got.Skips, want.Profile.Routes, want.Skips)
	}
}

func TestLokiThatGivesNothingIsToldByItsOwnName(t *testing.T) {
	long := lokitest.Stream{Labels: map[string]string{"app": "web"}, Entries: []lokitest.Entry{
		{Time: 1e9, Line: string(bytes.Repeat([]byte("x"), 2<<20))}, {Time: 2e9, Line: accessLines()[0] + "\nand\nmore"}}}
	if got, err := askLoki(t, &lokitest.Server{Streams: []lokitest.Stream{long}}); err != nil || got.Profile.Requests != 1 || got.Skips.Unparsable != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for code, s := range map[fault.Code]*lokitest.Server{
		fault.TRF002: {},
		fault.TRF021: {Tenant: "team"},
		fault.TRF023: {Before: func(_ int, w http.ResponseWriter, _ *http.Request) bool { return lokitest.Refuse(w, 503, "busy") }},
	} {
		_, err := askLoki(t, s)
		if e, ok := fault.As(err); !ok || e.Code != code || !strings.Contains(e.Message, "loki.test") {
			t.Errorf("%v, not %s", err, code)
		}
	}
	if _, err := Read(t.Context(), Config{Kind: Loki}); err == nil || !strings.Contains(err.Error(), "TRF-020") {
		t.Errorf("%v", err)
	}
}
