package fault

import (
	"fmt"
	"io"
	"strings"
)

// String gives the word that the reference page uses for a kind.
func (k Kind) String() string {
	switch k {
	case Usage:
		return "wrong usage"
	case Manifest:
		return "invalid manifest"
	case Dependency:
		return "something needed is not there, or stale"
	case Refused:
		return "refused for safety"
	case Check:
		return "a declared check did not hold"
	case Unproved:
		return "blocked or unverified"
	case Cancelled:
		return "cancelled"
	case Leftover:
		return "tear-down left something behind"
	default:
		return "internal fault"
	}
}

// families names the first three letters of the codes.
func families() [][2]string {
	return [][2]string{
		{"CLI", "command line"},
		{"CMP", "comparison"},
		{"DB", "database"},
		{"DST", "distribution"},
		{"ENV", "environment"},
		{"EVD", "evidence"},
		{"FLT", "fleet"},
		{"GAT", "gate"},
		{"GEN", "generator"},
		{"LOD", "load"},
		{"MAN", "manifest"},
		{"RPL", "replay"},
		{"TRF", "traffic"},
	}
}

// WriteReference writes docs/errors.md from the catalogue.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Error codes\n\n" +
		"Every failure that a person can meet has a code, one sentence that names the thing at fault, and a next\n" +
		"step. `seatrial explain CODE` prints the same text. This page is generated from `fault/codes.go`.\n")
	family := ""
	for _, e := range catalogue {
		if f, _, _ := strings.Cut(string(e.Code), "-"); f != family {
			family = f
			fmt.Fprintf(&b, "\n## %s: %s\n", f, familyName(f))
		}
		fmt.Fprintf(&b, "\n### %s: %s\n\n%s\n\nKind: %s.\n\nNext: %s\n", e.Code, e.Title, e.Why, e.Kind, e.Next)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// familyName gives the name of a family; empty for one that families lacks.
func familyName(short string) string {
	for _, f := range families() {
		if f[0] == short {
			return f[1]
		}
	}
	return ""
}
