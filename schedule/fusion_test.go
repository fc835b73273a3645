package schedule

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"strings"
	"testing"
)

// TestNoProductCanBeFused holds the package to its word that a seed means the same on every
// architecture. Go may compute x*y + z with one rounding where the machine can, unless the product is
// converted explicitly; so every product of floating-point numbers that is added, subtracted or
// returned must stand in float64(...).
func TestNoProductCanBeFused(t *testing.T) {
	fset, files := parsePackage(t)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Error: func(error) {}, Importer: nothing{}} // imported names stay unknown
	_, _ = conf.Check("schedule", fset, files, info)

	checked := 0
	refuse := func(e ast.Expr) {
		for {
			if p, ok := e.(*ast.ParenExpr); ok {
				e = p.X
			} else if u, ok := e.(*ast.UnaryExpr); ok {
				e = u.X
			} else {
				break
			}
		}
		b, ok := e.(*ast.BinaryExpr)
		checked++
		if ok && b.Op == token.MUL && maybeFloat(info.Types[b]) {
			t.Errorf("%s: a product that could be fused with what it is added to", fset.Position(b.Pos()))
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.ADD || n.Op == token.SUB {
					refuse(n.X)
					refuse(n.Y)
				}
			case *ast.AssignStmt:
				if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
					refuse(n.Rhs[0])
				}
			case *ast.ReturnStmt:
				for _, r := range n.Results {
					refuse(r)
				}
			}
			return true
		})
	}
	if checked < 50 {
		t.Errorf("only %d operands were looked at; the test has lost its subject", checked)
	}
}

// maybeFloat tells whether a value is a floating-point number, or nobody knows, and no constant.
func maybeFloat(v types.TypeAndValue) bool {
	if v.Value != nil {
		return false
	}
	basic, ok := v.Type.(*types.Basic)
	return v.Type == nil || ok && (basic.Kind() == types.Invalid || basic.Info()&types.IsFloat != 0)
}

func parsePackage(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

// nothing imports empty packages.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	return types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:]), nil
}
