package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"seatrial/fault"
	"seatrial/internal/run"
	"seatrial/manifest"
)

func (a *app) explainCommand() *cobra.Command {
	var codes bool
	c := &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Print the effective configuration, or what an error code means",
		Long: `Without an argument, explain prints the manifest with every default filled in and where
each value came from. With a code it says what the code means and what to do.`,
		Example: "  seatrial explain\n  seatrial explain LOD-011\n  seatrial explain --codes",
		Args:    atMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case codes:
				return a.listCodes()
			case len(args) == 1:
				return a.explainCode(args[0])
			default:
				return a.explainManifest()
			}
		},
	}
	c.Flags().BoolVar(&codes, "codes", false, "list all error codes")
	return c
}

func (a *app) explainManifest() error {
	m, err := a.readManifest()
	if err != nil {
		return err
	}
	if a.json() {
		b, err := m.ExplainJSON()
		if err != nil {
			return err
		}
		a.printJSON(json.RawMessage(b))
		return nil
	}
	return m.Explain(a.Out)
}

func (a *app) readManifest(overrides ...manifest.Override) (*manifest.Manifest, error) {
	m, err := manifest.Read(a.dir, overrides...)
	if err != nil {
		return nil, err
	}
	a.secrets.Add(run.ServiceSecrets(m, a.Getenv)...)
	return m, nil
}

func (a *app) listCodes() error {
	all := fault.Catalogue()
	if a.json() {
		out := make([]codeJSON, len(all))
		for i, e := range all {
			out[i] = toJSON(e)
		}
		a.printJSON(out)
		return nil
	}
	for _, e := range all {
		_, _ = fmt.Fprintf(a.Out, "%s  %s\n", e.Code, e.Title)
	}
	return nil
}

func (a *app) explainCode(word string) error {
	code := fault.Code(strings.ToUpper(strings.TrimSpace(word)))
	e, ok := fault.Lookup(code)
	if !ok {
		return unknownCode(word)
	}
	if a.json() {
		a.printJSON(toJSON(e))
		return nil
	}
	_, _ = fmt.Fprintf(a.Out, "%s: %s\n\n%s\n\nNext: %s\nExit: %d\n", e.Code, e.Title, wrap(e.Why, 80), e.Next, exitOf(e.Kind))
	return nil
}

// codeJSON is a code of the catalogue as -o json gives it.
type codeJSON struct {
	Code  fault.Code `json:"code"`
	Title string     `json:"title"`
	Why   string     `json:"why"`
	Next  string     `json:"next"`
	Exit  int        `json:"exit"`
}

func toJSON(e fault.Entry) codeJSON {
	return codeJSON{Code: e.Code, Title: e.Title, Why: e.Why, Next: e.Next, Exit: exitOf(e.Kind)}
}

func unknownCode(word string) error {
	family, _, _ := strings.Cut(strings.ToUpper(word), "-")
	var near []string
	for _, e := range fault.Catalogue() {
		if strings.HasPrefix(string(e.Code), family+"-") {
			near = append(near, string(e.Code))
		}
	}
	err := fault.New(fault.CLI004, "there is no error code %q", word)
	if len(near) > 0 {
		slices.Sort(near)
		err = err.WithNext("The codes of that family are %s.", strings.Join(near, ", "))
	}
	return err
}

// wrap breaks a paragraph at spaces so that no line is longer than width.
func wrap(s string, width int) string {
	var b strings.Builder
	col := 0
	for i, w := range strings.Fields(s) {
		if i > 0 && col+1+len(w) > width {
			b.WriteByte('\n')
			col = 0
		} else if i > 0 {
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	return b.String()
}
