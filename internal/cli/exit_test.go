package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"seatrial/fault"
)

// TestExitPrecedence: when several apply, 1, 8, 6, 9, 10, 7, 0, in any order of appearance.
func TestExitPrecedence(t *testing.T) {
	order := []fault.Kind{fault.Internal, fault.Check, fault.Refused, fault.Cancelled, fault.Leftover, fault.Unproved}
	numbers := []int{1, 8, 6, 9, 10, 7}
	for i, k := range order {
		if got := worst([]fault.Kind{k}); got != numbers[i] {
			t.Errorf("%v alone exits %d, want %d", k, got, numbers[i])
		}
		for j := i + 1; j < len(order); j++ {
			if a, b := worst([]fault.Kind{k, order[j]}), worst([]fault.Kind{order[j], k}); a != numbers[i] || b != numbers[i] {
				t.Errorf("%v with %v exits %d and %d, want %d", k, order[j], a, b, numbers[i])
			}
		}
	}
	if got := worst(nil); got != 0 {
		t.Errorf("nothing wrong exits %d", got)
	}
}

// TestEveryCodeHasAnExit: each code of the catalogue ends in the exit of its kind, none in 0.
func TestEveryCodeHasAnExit(t *testing.T) {
	want := map[fault.Kind]int{fault.Internal: 1, fault.Usage: 2, fault.Manifest: 3, fault.Dependency: 5, fault.Refused: 6, fault.Unproved: 7,
		fault.Check: 8, fault.Cancelled: 9, fault.Leftover: 10}
	for _, e := range fault.Catalogue() {
		k := fault.New(e.Code, "x").Kind()
		if got := exitOf(k); got != want[k] || got == 0 {
			t.Errorf("%s is %v and exits %d", e.Code, k, got)
		}
	}
}

// TestProblemsOfAnError: every fault of a tree is told, none twice, and what is no fault is a defect.
func TestProblemsOfAnError(t *testing.T) {
	one, two := fault.New(fault.ENV004, "one"), fault.New(fault.ENV006, "two")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"one":              {one, "ENV-004 "},
		"wrapped":          {fmt.Errorf("while: %w", one), "ENV-004 "},
		"joined":           {errors.Join(one, fmt.Errorf("then: %w", two)), "ENV-004 ENV-006 "},
		"cause of a fault": {fault.New(fault.EVD001, "x").Because(one), "EVD-001 "},
		"unknown command":  {errors.New(`unknown command "x" for "seatrial"`), "CLI-001 "},
		"no fault":         {errors.New("disk on fire"), "CLI-002 "},
	} {
		got := ""
		for _, p := range problemsOf(c.err) {
			got += string(p.Code) + " "
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWantsJSON(t *testing.T) {
	for line, want := range map[string]bool{"-o json run": true, "run --nope -o=json": true, "--output json": true, "--output=json x": true, "-ojson": true,
		"-o text": false, "run json": false, "-o": false, "run -- -o json": false} {
		if got := wantsJSON(strings.Fields(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
