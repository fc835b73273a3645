package report

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"time"

	"seatrial/evidence"
	"seatrial/judge"
)

type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
	Skipped *junitSkipped `xml:"skipped"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// JUnit writes junit.xml (RE-6): one case per judged check. A check that did not hold is a failure;
// one that is unverified or blocked is skipped with its reason. When no check tells the run's own
// verdict, as for a run that was blocked or cancelled, a case named "run" does.
func JUnit(w io.Writer, run *evidence.Run) error {
	s := junitSuite{Name: "seatrial " + run.Command, Time: seconds(length(run)), Timestamp: run.Started.UTC().Format("2006-01-02T15:04:05")}
	told := false
	for _, f := range run.Findings {
		told = told || f.Verdict == run.Verdict
		name := f.Check
		if f.Route != "" {
			name += " " + f.Route
		}
		text := f.Reason + "\nmeasured " + measured(f) + ", " + limit(f)
		if i := interval(f); i != "" {
			text += ", interval " + i
		}
		s.add(name, f.Verdict, f.Code, f.Reason, text)
	}
	if !told {
		code := ""
		if len(run.Causes) > 0 {
			code = run.Causes[0].Code
		}
		s.add("run", run.Verdict, code, sentence(run), sentence(run))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(name string, v judge.Verdict, code, message, text string) {
	c := junitCase{Class: s.Name, Name: name, Time: "0.000"}
	if code != "" {
		message = code + " " + message
	}
	switch v {
	case judge.Pass:
	case judge.Fail:
		c.Failure = &junitFailure{Message: message, Type: code, Text: text}
		s.Failures++
	default:
		if !strings.HasPrefix(strings.ToLower(message), v.String()) {
			message = v.String() + ": " + message
		}
		c.Skipped = &junitSkipped{Message: message}
		s.Skipped++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}

// length is how long the run took; 0 when it has no end.
func length(run *evidence.Run) time.Duration {
	if run.Ended == nil {
		return 0
	}
	return max(0, run.Ended.Sub(run.Started))
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
