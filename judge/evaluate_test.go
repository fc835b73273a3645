package judge

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type scripted struct {
	name    string
	c       Case
	checks  []Check
	want    []string
	verdict string
}

func TestScriptedCases(t *testing.T) {
	cases := readCases(t, "testdata/cases.txt")
	if len(cases) < 20 {
		t.Fatalf("read %d cases", len(cases))
	}
	for _, s := range cases {
		t.Run(s.name, func(t *testing.T) {
			got := Evaluate(s.checks, s.c)
			var lines []string
			for _, f := range got {
				line := f.Check + " " + f.Verdict.String()
				if f.Code != "" {
					line += " " + f.Code
				}
				lines = append(lines, line)
				if f.Reason == "" {
					t.Errorf("%s: a finding without a reason", f.Check)
				}
			}
			if strings.Join(lines, "\n") != strings.Join(s.want, "\n") {
				t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(s.want, "\n"))
			}
			if v := Overall(got); v.String() != s.verdict {
				t.Errorf("verdict %s, want %s", v, s.verdict)
			}
		})
	}
}

func readCases(t *testing.T, path string) []*scripted {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []*scripted
	for sc := bufio.NewScanner(f); sc.Scan(); {
		word, rest, _ := strings.Cut(strings.TrimSpace(sc.Text()), " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		if word == "case" {
			out = append(out, &scripted{name: rest})
			continue
		}
		s := out[len(out)-1]
		switch word {
		case "unasked":
			s.c.Unasked = words(t, "x="+rest).u("x")
		case "smoke":
			s.c.ClientErrorsCount = true
		case "route":
			s.c.Routes = append(s.c.Routes, parseRoute(t, rest))
		case "generator":
			v := words(t, rest)
			s.c.Generator = GeneratorCase{Due: v.u("due"), Sent: v.u("sent"), OwnShortfall: v.u("short"), SendDelayP99: v.d("delay")}
		case "abort":
			s.c.Abort, s.c.AbortRate, s.c.AbortFor = words(t, "x="+rest).f("x"), 0.5, 30*time.Second
		case "check":
			name, args, _ := strings.Cut(rest, " ")
			v := words(t, args)
			k := Check{Name: name, Route: -1, Limit: v.f("limit"), BaselineSamples: v.u("n"), Baseline: v.f("share")}
			if v["route"] != "" {
				k.Route, _ = strconv.Atoi(v["route"])
			}
			if b := v.d("baseline"); b > 0 {
				k.Baseline, k.LimitNanos = float64(b), int64(float64(b)*(1+k.Limit))
			}
			s.checks = append(s.checks, k)
		case "want":
			s.want = append(s.want, rest)
		case "verdict":
			s.verdict = rest
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	return out
}

func parseRoute(t *testing.T, rest string) RouteCase {
	name, args, _ := strings.Cut(rest, " ")
	v := words(t, args)
	return RouteCase{Name: strings.ReplaceAll(name, "_", " "), Due: v.u("due") + v.u("responses"), Ended: v.u("ended"), Under: v.u("under"), NetUnder: v.u("netunder"),
		Responses: v.u("responses"), Answered: v.u("answered"), Errors: v.u("errors"), ClientErrors: v.u("4xx"),
		P95: time.Millisecond, At: func(rank uint64) time.Duration { return time.Duration(rank) }}
}

type fields map[string]string

func words(t *testing.T, s string) fields {
	t.Helper()
	out := fields{}
	for _, w := range strings.Fields(s) {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			t.Fatalf("no value in %q", w)
		}
		out[k] = v
	}
	return out
}

func (f fields) u(k string) uint64        { n, _ := strconv.ParseUint(f[k], 10, 64); return n }
func (f fields) f(k string) float64       { n, _ := strconv.ParseFloat(f[k], 64); return n }
func (f fields) d(k string) time.Duration { d, _ := time.ParseDuration(f[k]); return d }

// The counters alone decide; sorting the values and looking at ranks must agree with them.
func TestCountersAgreeWithRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		under := rapid.IntRange(0, n).Draw(t, "under")
		c := Case{Routes: []RouteCase{{Ended: uint64(n), Under: uint64(under), NetUnder: uint64(under), P95: 1,
			At: func(rank uint64) time.Duration { // values 1 at or under the limit, 3 above it; the limit is 2
				if rank <= uint64(under) {
					return time.Millisecond
				}
				return 3 * time.Millisecond
			}}}, Generator: GeneratorCase{Due: 1, Sent: 1}}
		f := Evaluate([]Check{{Name: P95Increase, LimitNanos: int64(2 * time.Millisecond)}}, c)[0]
		switch {
		case f.Verdict == Fail && !(f.Lo > f.Limit):
			t.Fatalf("failed although the lower end %v is not over the limit %v", f.Lo, f.Limit)
		case f.Verdict == Pass && (f.Unbounded || f.Hi > f.Limit):
			t.Fatalf("passed although the upper end %v (unbounded %v) is over the limit", f.Hi, f.Unbounded)
		case f.Verdict == Unverified && !f.Unbounded && f.Hi <= f.Limit:
			t.Fatalf("unverified although the interval [%v, %v] lies under the limit", f.Lo, f.Hi)
		case f.Verdict == Unverified && f.Lo > f.Limit:
			t.Fatal("unverified although the interval lies above the limit")
		}
	})
}

func TestZeroVerdictIsUnverified(t *testing.T) {
	var v Verdict
	if v.String() != "unverified" || Overall(nil) != Unverified {
		t.Errorf("zero verdict %v, no findings %v", v, Overall(nil))
	}
	for _, want := range []Verdict{Unverified, Pass, Fail, Blocked} {
		var got Verdict
		b, _ := want.MarshalText()
		if err := got.UnmarshalText(b); err != nil || got != want {
			t.Errorf("%s reads back as %v (%v)", b, got, err)
		}
	}
	v = Pass
	if err := v.UnmarshalText([]byte("passed")); err != nil || v != Unverified {
		t.Errorf("an unknown word reads as %v", v)
	}
}

func TestUnknownCheckIsNeverAPass(t *testing.T) {
	f := Evaluate([]Check{{Name: "invented"}}, Case{Generator: GeneratorCase{Due: 1, Sent: 1}})
	if f[0].Verdict != Unverified || Overall(f) != Unverified {
		t.Error(fmt.Sprint(f))
	}
}
