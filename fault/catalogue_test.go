package fault

import (
	"bytes"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRowsAreComplete holds each row to its form: FAM-NNN, known family, full sentences, in order.
func TestRowsAreComplete(t *testing.T) {
	form := regexp.MustCompile(`^[A-Z]{2,3}-\d{3}$`)
	for i, e := range Catalogue() {
		family, _, _ := strings.Cut(string(e.Code), "-")
		switch {
		case !form.MatchString(string(e.Code)):
			t.Errorf("%s is not of the form FAM-NNN", e.Code)
		case familyName(family) == "":
			t.Errorf("%s: the family is not named", e.Code)
		case i > 0 && catalogue[i-1].Code >= e.Code:
			t.Errorf("%s stands after %s", e.Code, catalogue[i-1].Code)
		case e.Title == "" || strings.HasSuffix(e.Title, "."):
			t.Errorf("%s: the title is a phrase without a full stop", e.Code)
		case !strings.HasSuffix(e.Why, ".") || !strings.HasSuffix(e.Next, "."):
			t.Errorf("%s: why and next are full sentences", e.Code)
		}
	}
}

// constants reads the names of all Code constants from codes.go.
func constants(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				code := strings.Trim(lit.Value, `"`)
				if strings.ReplaceAll(code, "-", "") != v.Names[0].Name {
					t.Errorf("constant %s holds %s", v.Names[0].Name, code)
				}
				names = append(names, v.Names[0].Name)
			}
		}
		return true
	})
	return names
}

// TestEveryCodeIsRaisedAndListed reads all code that is not a test: each constant has a row, and each
// is used somewhere outside this package.
func TestEveryCodeIsRaisedAndListed(t *testing.T) {
	names := constants(t)
	if len(names) != len(catalogue) {
		t.Errorf("%d constants and %d rows", len(names), len(catalogue))
	}
	used := map[string]bool{}
	use := regexp.MustCompile(`fault\.([A-Z]{2,3}\d{3})\b`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range use.FindAllSubmatch(text, -1) {
			used[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !used[name] {
			t.Errorf("nothing raises %s", name)
		}
	}
	for name := range used {
		if !slices.Contains(names, name) {
			t.Errorf("%s is raised and not in the catalogue", name)
		}
	}
}

// TestReferencePage keeps docs/errors.md equal to the catalogue; `go test ./fault -args update`
// writes it anew.
func TestReferencePage(t *testing.T) {
	var want bytes.Buffer
	if err := WriteReference(&want); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "docs", "errors.md")
	if slices.Contains(flag.Args(), "update") {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not up to date; run `go test ./fault -args update`", path)
	}
}

func TestErrorForms(t *testing.T) {
	e := New(LOD013, "nothing is left of %d routes", 4).WithNext("Name %s.", "one").WithDetail("x").Because(os.ErrNotExist)
	if e.Error() != "LOD-013 nothing is left of 4 routes" || e.Next != "Name one." || e.Kind() != Unproved || !errors.Is(e, os.ErrNotExist) {
		t.Errorf("got %+v", e)
	}
	list := List{e, New(MAN001, "there is none")}
	found, ok := As(list)
	if !ok || found != e || !strings.Contains(list.Error(), "\nMAN-001 there is none") {
		t.Errorf("the list gives %v and %v", found, list)
	}
	if _, ok := Lookup("XXX-999"); ok {
		t.Error("a code that does not exist was found")
	}
	defer func() {
		if recover() == nil {
			t.Error("a code outside the catalogue must be found at once")
		}
	}()
	_ = New("XXX-999", "x")
}

func TestKindsHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for k := Internal; k <= Leftover; k++ {
		if k.String() == "" || seen[k.String()] {
			t.Errorf("kind %d has no word of its own", k)
		}
		seen[k.String()] = true
	}
}
