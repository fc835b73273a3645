package cli

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"seatrial/fault"
)

// publishedCases is what `traffic record` must give for each folder of the published cases, by its
// number. A folder without an entry fails the test.
func publishedCases() map[string]func(*testing.T, *caseRun) {
	return map[string]func(*testing.T, *caseRun){
		"01": case01, "02": case02, "06": case06, "08": case08, "09": case09, "10": case10, "11": case11,
		"12": case12, "13": case13, "14": case14,
		"03": caseDurations(2, map[string]int{"GET /orders/{id}": 1}),
		"04": caseDurations(3, map[string]int{"GET /v2/items/{id}": 3}),
		"05": caseDurations(2, nil),
		"07": caseDurations(2, map[string]int{"GET /a": 1, "GET /b": 1}),
		"15": laterRefused("a GoReplay capture, for replay", "not one of 20 lines"),
	}
}

// caseRun is one case, recorded with -o json and again as text.
type caseRun struct {
	*answer
	files []string
	plain string // the text that a person sees
	show  string // what traffic show says of the profile
}

// Acceptance 1, cases.
func TestPublishedCases(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(sharedFolder, "cases", "*", "README.md"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no case: the shared folder must stand beside the project (%v)", err)
	}
	known := publishedCases()
	for _, readme := range folders {
		name := filepath.Base(filepath.Dir(readme))
		t.Run(name, func(t *testing.T) {
			check := known[name[:2]]
			if check == nil {
				t.Fatal("a case of which this test does not know the expected result")
			}
			delete(known, name[:2])
			check(t, runCase(t, filepath.Dir(readme)))
		})
	}
	if len(known) > 0 {
		t.Errorf("cases that are not there: %v", slices.Sorted(maps.Keys(known)))
	}
}

func runCase(t *testing.T, dir string) *caseRun {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &caseRun{}
	var args []string
	for _, e := range entries {
		if e.Name() == "README.md" || e.Name() == "format.txt" {
			continue
		}
		c.files = append(c.files, e.Name())
		args = append(args, "--from", absolute(t, filepath.Join(dir, e.Name())))
	}
	c.answer = recordTraffic(t, nil, nil, args...)
	work := t.TempDir()
	c.plain, _ = seatrialIn(t, work, append([]string{"traffic", "record"}, args...)...)
	if c.exit == 0 {
		c.show, _ = seatrialIn(t, work, "traffic", "show")
	}
	return c
}

// everything is all that the program printed or wrote of the case.
func (c *caseRun) everything() string { return c.text + c.plain + c.show + string(c.profile) }

func (c *caseRun) wantCounts(t *testing.T, want map[string]uint64) {
	t.Helper()
	if c.exit != 0 {
		t.Fatalf("exit %d: %s", c.exit, c.text)
	}
	if got := c.counts(); !reflect.DeepEqual(got, want) {
		t.Errorf("routes %v, want %v", got, want)
	}
}

func laterRefused(what, word string) func(*testing.T, *caseRun) {
	return func(t *testing.T, c *caseRun) {
		t.Log(what)
		c.refused(t, word)
	}
}

// caseDurations checks how many requests there are, and of which routes how many durations.
func caseDurations(requests uint64, samples map[string]int) func(*testing.T, *caseRun) {
	return func(t *testing.T, c *caseRun) {
		if c.exit != 0 || c.out.Profile.Requests != requests || !strings.Contains(c.plain, "read as ") {
			t.Fatalf("exit %d, %s", c.exit, c.text)
		}
		got := map[string]int{}
		for _, r := range c.out.Profile.Routes {
			if r.Latency != nil {
				got[r.Name()] = int(r.Latency.Samples)
			}
		}
		if len(got)+len(samples) > 0 && !reflect.DeepEqual(got, samples) {
			t.Errorf("durations of %v, want %v", got, samples)
		}
	}
}

func case01(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /ok": 1})
	s := c.out.Skips
	if s.Format != "combined" || s.Read != 5 || s.Unparsable != 0 || s.Reasons["no usable request"] != 4 || c.out.Warning != "" {
		t.Errorf("%+v, warning %q", s, c.out.Warning)
	}
	if !strings.Contains(c.plain, "not sent  4: no usable request") || strings.Contains(c.plain, "WARNING") {
		t.Errorf("a person is told:\n%s", c.plain)
	}
}

func case02(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"OPTIONS /dav/": 1, "GET /a": 1})
	if s := c.out.Skips; s.Parsed != 3 || s.Reasons["no usable request"] != 1 {
		t.Errorf("%+v", s)
	}
	if st := c.route("OPTIONS /dav/").Status; !reflect.DeepEqual(st, map[string]uint64{"none": 1}) {
		t.Errorf("status %v", st)
	}
	for _, r := range c.out.Profile.Routes {
		if r.Status["4xx"] > 0 || r.Latency != nil {
			t.Errorf("%+v", r)
		}
	}
}

func case06(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /p": 6})
	p := c.out.Profile
	if p.Window.Start.Format(time.RFC3339) != "2024-10-27T00:59:58Z" || p.Window.End.Format(time.RFC3339) != "2024-10-27T01:00:03Z" ||
		p.Window.Seconds != 5 || p.Rate != 1.2 || p.Source.OutOfOrder != 0 || len(p.Gaps) != 0 {
		t.Errorf("%+v %+v", p.Window, p)
	}
}

func case08(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /x/{id}": 4})
	if s := c.out.Skips; s.Read != 34 || s.Unparsable != 30 || c.out.Warning != "" {
		t.Errorf("%+v, warning %q", s, c.out.Warning)
	}
	if end := c.out.Profile.Window.End.Format(time.RFC3339); end != "2024-03-05T13:00:03Z" {
		t.Errorf("the last line is not read: the window ends at %s", end)
	}
	for _, user := range []string{"first.last", "Ann", "Example", "10.0.0.1", "garbage"} {
		if strings.Contains(c.everything(), user) {
			t.Errorf("%q of the log is shown", user)
		}
	}
	if !strings.Contains(c.plain, "refused   30") || strings.Contains(c.plain, "WARNING") {
		t.Errorf("a person is told:\n%s", c.plain)
	}
}

func case09(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /r": 6})
	if l := c.route("GET /r").Latency; l.Samples != 2 || l.P50 != 0 || l.Max != 50 {
		t.Errorf("%+v", l)
	}
	if c.out.Skips.Notes["no duration"] != 4 || !strings.Contains(c.plain, "noted     4: no duration") {
		t.Errorf("%v\n%s", c.out.Skips.Notes, c.plain)
	}
	if w := c.out.Profile.Window; w.Start.Year() != 2023 || w.Seconds > 1 {
		t.Errorf("window %+v", w)
	}
}

func case10(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /k": 3})
	s := c.out.Skips
	if want := map[string]int64{"client span": 2, "internal span": 1, "unspecified kind": 2, "unknown kind": 2}; !reflect.DeepEqual(s.Reasons, want) || s.Read != 10 {
		t.Errorf("%+v", s)
	}
	if s.Notes["kind 99"] != 1 || s.Notes["kind server"] != 1 || !strings.Contains(c.plain, "kind 99") {
		t.Errorf("unknown kinds are not named: %v\n%s", s.Notes, c.plain)
	}
}

func case11(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /s/{id}": 2})
	if l := c.route("GET /s/{id}").Latency; l.Samples != 2 || l.P50 != 20 || l.Max != 50 {
		t.Errorf("%+v", l)
	}
}

func case12(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /f": 3})
	if l := c.route("GET /f").Latency; l.Samples != 2 || l.P50 != 1e-6 || l.Max != 50 {
		t.Errorf("%+v, want 1 ns and 50 ms", l)
	}
}

func case13(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /": 1, "GET (unmatched)": 1, "GET /{rest...}": 1, "GET /{id}/fhir/Med/{id}": 1, "GET /users/{id}": 1})
	if c.out.Skips.Reasons["no route and no path"] != 1 || !c.route("GET (unmatched)").Unmatched {
		t.Errorf("%+v", c.out.Skips)
	}
	if strings.Contains(c.everything(), "secret") || strings.Contains(c.everything(), "wp-login") {
		t.Errorf("a query or an unmatched path is shown:\n%s", c.everything())
	}
	if !strings.Contains(c.show, "no route of the source matched") || !strings.Contains(c.show, "cannot be replayed without values") ||
		strings.Contains(c.show, "- GET /**") {
		t.Errorf("traffic show says:\n%s", c.show)
	}
}

func case14(t *testing.T, c *caseRun) {
	c.wantCounts(t, map[string]uint64{"GET /e": 5})
	s := c.out.Skips
	if s.Unparsable != 2 || s.Parsed != 7 || s.Notes["document of logs"] != 1 || s.Notes["document of metrics"] != 1 {
		t.Errorf("%+v", s)
	}
	where := map[string]int64{}
	for _, f := range s.First {
		where[f.Input] = f.Line
	}
	if !reflect.DeepEqual(where, map[string]int64{"a.jsonl": 4, "b.jsonl": 1}) {
		t.Errorf("unparsable at %v", where)
	}
}

// Formats that are not read are refused by name, whatever the file holds.
func TestUnknownFormatsAreRefusedByName(t *testing.T) {
	file := absolute(t, filepath.Join(sharedFolder, "access", "apache_combined_10k.log"))
	for _, format := range []string{"clf2", `$remote_addr - $remote_user [$time_local]`, `%h %l %u %t`} {
		a := recordTraffic(t, nil, nil, "--from", file, "--format", format)
		if a.exit != 2 || len(a.errors) != 1 || a.errors[0].Code != string(fault.TRF004) || a.profile != nil {
			t.Errorf("%s: exit %d, %s", format, a.exit, a.text)
		}
	}
}
