package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"seatrial/fault"
)

// The exit numbers of spec 00.
const (
	exitPass       = 0
	exitInternal   = 1
	exitUsage      = 2
	exitManifest   = 3
	exitDependency = 5
	exitRefused    = 6
	exitUnproved   = 7
	exitFail       = 8
	exitCancelled  = 9
	exitLeftover   = 10
)

func exitOf(k fault.Kind) int {
	switch k {
	case fault.Usage:
		return exitUsage
	case fault.Manifest:
		return exitManifest
	case fault.Dependency:
		return exitDependency
	case fault.Refused:
		return exitRefused
	case fault.Check:
		return exitFail
	case fault.Unproved:
		return exitUnproved
	case fault.Cancelled:
		return exitCancelled
	case fault.Leftover:
		return exitLeftover
	default:
		return exitInternal
	}
}

// inRun is the precedence of what can happen inside a run; the refusals before one stand after
// the internal fault, since they end a command before anything else can happen.
var inRun = []int{exitInternal, exitUsage, exitManifest, exitDependency, exitFail, exitRefused, exitCancelled, exitLeftover, exitUnproved}

// worst picks the exit number of several kinds by precedence: 1, 8, 6, 9, 10, 7, 0.
func worst(kinds []fault.Kind) int {
	for _, want := range inRun {
		for _, k := range kinds {
			if exitOf(k) == want {
				return want
			}
		}
	}
	return exitPass
}

// fail prints an error for people, or as JSON, and gives its exit number.
func (a *app) fail(err error) int {
	problems := problemsOf(err)
	for i, p := range problems {
		problems[i] = a.clean(p)
	}
	kinds := make([]fault.Kind, len(problems))
	for i, p := range problems {
		kinds[i] = p.Kind()
	}
	exit := worst(kinds)
	if a.json() {
		a.failJSON(problems, exit)
		return exit
	}
	for _, p := range problems {
		_, _ = fmt.Fprint(a.Err, a.errorText(p))
	}
	return exit
}

// clean gives a fault without secrets: what a service printed may stand in it, and lines of the
// manifest, and addresses (SA-5).
func (a *app) clean(p *fault.Error) *fault.Error {
	out := *p
	out.Message, out.Detail, out.Next = a.secrets.String(p.Message), a.secrets.String(p.Detail), a.secrets.String(p.Next)
	out.Cause = a.secrets.Error(p.Cause)
	return &out
}

func (a *app) failJSON(problems []*fault.Error, exit int) {
	type problem struct {
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
		Detail  string     `json:"detail,omitempty"`
		Next    string     `json:"next"`
	}
	out := struct {
		Errors []problem `json:"errors"`
		Exit   int       `json:"exit"`
	}{Exit: exit}
	for _, p := range problems {
		out.Errors = append(out.Errors, problem{p.Code, p.Message, p.Detail, p.Next})
	}
	a.printJSON(out)
}

func (a *app) errorText(p *fault.Error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", p.Code, sentence(plain(p.Message)))
	if p.Detail != "" {
		for line := range strings.Lines(p.Detail) {
			b.WriteString("  " + plain(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	if a.verbose && p.Cause != nil {
		fmt.Fprintf(&b, "  cause: %s\n", plain(p.Cause.Error()))
	}
	fmt.Fprintf(&b, "Next: %s\n", plain(p.Next))
	return b.String()
}

func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// problemsOf gives the faults in an error; an error without one is a defect, or cobra's own refusal
// of a command line.
func problemsOf(err error) []*fault.Error {
	if all := faults(err); len(all) > 0 {
		return all
	}
	if cancelled(err) {
		return []*fault.Error{fault.New(fault.CLI003, "cancelled before there was anything to report")}
	}
	for _, own := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "invalid argument", "flag needs", "accepts ", "requires "} {
		if strings.HasPrefix(err.Error(), own) {
			return []*fault.Error{usage("%s", err.Error())}
		}
	}
	return []*fault.Error{fault.New(fault.CLI002, "an unexpected failure: %v", err).Because(err)}
}

// faults gives every fault of an error's tree that is not the cause of another one.
func faults(err error) []*fault.Error {
	switch e := err.(type) { //nolint:errorlint // this walks the tree itself
	case *fault.Error:
		return []*fault.Error{e}
	case interface{ Unwrap() []error }:
		var out []*fault.Error
		for _, part := range e.Unwrap() {
			out = append(out, faults(part)...)
		}
		return out
	case interface{ Unwrap() error }:
		return faults(e.Unwrap())
	}
	return nil
}

func (a *app) printJSON(v any) {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}
