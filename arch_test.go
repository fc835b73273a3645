// Package seatrial holds no code: this test holds the house together. It knows the floor of every
// package, the hot set and what that may import, and a few rules that no compiler checks.
package seatrial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the import path of the root.
const module = "seatrial"

// room is the place of one package in the house.
type room struct {
	floor int
	hot   bool
	allow []string // third-party modules that a hot package may import besides golang.org/x/sys
}

// rooms is every package, those that are planned included. Imports point only to a lower floor.
func rooms() map[string]room {
	const compress = "github.com/klauspost/compress"
	hot := func(floor int, allow ...string) room { return room{floor, true, allow} }
	cool := func(floor int) room { return room{floor: floor} }
	return map[string]room{
		"fault": hot(0),

		"traffic": hot(1), "schedule": hot(1), "record": hot(1), "traffic/input": hot(1, compress),
		"traffic/logformat": hot(1), "manifest": cool(2), "report/figure": cool(1),

		"traffic/accesslog": hot(2, compress), "traffic/otlp": hot(2, compress), "traffic/loki": hot(2, compress),
		"traffic/recorded": hot(2, compress), "engine": hot(2), "compare": cool(2),
		"engine/httpload/http2": hot(2, "golang.org/x/net/http2/hpack"),

		"engine/httpload": hot(3, "golang.org/x/net/http2/hpack", "github.com/quic-go/quic-go", "github.com/expr-lang/expr"),
		"engine/sqlload":  hot(3, "github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"),
		"judge":           cool(3), "internal/intake": cool(3),
		"traffic/loki/lokitest": cool(0), // a server for tests: it imports nothing of the house

		"engine/scenario": hot(4), "plan": cool(4),

		"evidence": cool(5), "internal/env": cool(5), "internal/consent": cool(5), "internal/kube": cool(5),
		"internal/watch": cool(5),

		"report": cool(6), "report/web": cool(5),
		"internal/env/process": cool(6), "internal/env/docker": cool(6), "internal/env/compose": cool(6),
		"internal/env/postgres": cool(6), "internal/env/worktree": cool(6), "internal/env/envtest": cool(6),
		"internal/watch/tui": cool(6), "internal/watch/prom": cool(6), "internal/watch/remotewrite": cool(6),
		"internal/watch/otlpmetric": cool(6), "internal/fleet": cool(6), "internal/crew": cool(6),
		"internal/repo": cool(6),

		"report/browsertest":   cool(7),
		"internal/fleet/local": cool(7), "internal/fleet/docker": cool(7), "internal/fleet/kube": cool(7),
		"internal/fleet/hook": cool(7), "internal/fleet/fleettest": cool(7), "internal/crew/natscrew": cool(7),
		"internal/crew/kubejob": cool(7), "internal/crew/crewtest": cool(7), "internal/run": cool(7),
		"internal/replay": cool(4),
		"internal/doctor": cool(7),

		"internal/drill": cool(8),
		"internal/cli":   cool(9),

		"cmd/seatrial": cool(10), "bench": cool(10), "bench/peers": cool(10),
		// Somebody else's application: it imports nothing of the house. The folder above embeds it.
		"examples/chandlery": cool(0), "examples": cool(0),
	}
}

// listed is what `go list -json` tells of a package.
type listed struct {
	ImportPath string
	Imports    []string
}

// list runs `go list` over the module.
func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "./...")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errOut.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsPointDown(t *testing.T) {
	house := rooms()
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("go list knows only %d packages", len(packages))
	}
	for _, p := range packages {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if name == module {
			continue
		}
		here, ok := house[name]
		if !ok {
			t.Errorf("%s has no room: give it a floor in arch_test.go and ARCHITECTURE.md, and say why", name)
			continue
		}
		for _, imported := range p.Imports {
			if problem := judgeImport(house, here, imported); problem != "" {
				t.Errorf("%s (floor %d) imports %s: %s", name, here.floor, imported, problem)
			}
		}
	}
}

// judgeImport says what is wrong with an import, if anything.
func judgeImport(house map[string]room, here room, imported string) string {
	if name, inside := strings.CutPrefix(imported, module+"/"); inside {
		there := house[name]
		switch {
		case there.floor >= here.floor:
			return fmt.Sprintf("it is on floor %d, which is not lower", there.floor)
		case here.hot && !there.hot:
			return "a hot package imports only hot packages"
		}
		return ""
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") { // the standard library
		if here.hot && (imported == "log" || imported == "log/slog") {
			return "no logger in the hot set"
		}
		return ""
	}
	if here.hot && !slices.ContainsFunc(append(here.allow, "golang.org/x/sys"), func(prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/")
	}) {
		return "not on the allow-list of the hot set"
	}
	return ""
}

func TestJudgeImportSeesTheMistakes(t *testing.T) {
	house := rooms()
	for _, c := range []struct {
		from, to string
		wrong    bool
	}{
		{"judge", module + "/compare", false},
		{"compare", module + "/judge", true},
		{"judge", module + "/judge", true},
		{"internal/cli", module + "/internal/run", false},
		{"engine/httpload", module + "/compare", true}, // lower, but not hot
		{"engine/httpload", "golang.org/x/sys/unix", false},
		{"engine/httpload", "github.com/spf13/cobra", true},
		{"traffic/otlp", "github.com/klauspost/compress/zstd", false},
		{"schedule", "github.com/klauspost/compress/zstd", true},
		{"record", "log/slog", true},
		{"report", "log/slog", false},
		{"manifest", "github.com/goccy/go-yaml", false},
	} {
		if got := judgeImport(house, house[c.from], c.to); (got != "") != c.wrong {
			t.Errorf("%s imports %s: %q", c.from, c.to, got)
		}
	}
}

func TestNamesSayWhatAPackageIsAbout(t *testing.T) {
	for _, p := range list(t) {
		switch path.Base(p.ImportPath) {
		case "util", "utils", "common", "helpers", "types", "pkg", "misc", "base":
			t.Errorf("%s: the name says nothing", p.ImportPath)
		}
	}
}

// TestArchitecturePageTellsTheSame compares the table of ARCHITECTURE.md with the rooms.
func TestArchitecturePageTellsTheSame(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\| (hot)? *\\|")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		told[m[2]] = m[1] + m[3]
	}
	for name, r := range rooms() {
		want := strconv.Itoa(r.floor)
		if r.hot {
			want += "hot"
		}
		if told[name] != want {
			t.Errorf("ARCHITECTURE.md tells %q of %s; want %q", told[name], name, want)
		}
		delete(told, name)
	}
	for name := range told {
		t.Errorf("ARCHITECTURE.md tells of %s, which has no room", name)
	}
}

// source is one Go file of the repository.
type source struct {
	name string // slash-separated, from the root
	file *ast.File
}

// sources parses every Go file that is no test.
func sources(t *testing.T) []source { return sourcesOf(t, token.NewFileSet()) }

// sourcesOf is sources with the caller's positions.
func sourcesOf(t *testing.T, fset *token.FileSet) []source {
	t.Helper()
	var all []source
	files(t, func(name string) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, filepath.FromSlash(name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		all = append(all, source{name, f})
	})
	if len(all) < 20 {
		t.Fatalf("only %d Go files found", len(all))
	}
	return all
}

// files visits the repository's files; what tools and runs leave is left out.
func files(t *testing.T, visit func(name string)) {
	t.Helper()
	skip := []string{".git", ".bin", ".seatrial", "node_modules", "dist", "bin"}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return filepath.SkipDir
		case d.Type().IsRegular() && name != ".git": // a file in a linked work tree
			visit(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// calls tells whether a file uses the name of an imported package, e.g. os.Exit.
func calls(f *ast.File, importPath, name string) bool {
	local := ""
	for _, imp := range f.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); p == importPath {
			if local = path.Base(importPath); imp.Name != nil {
				local = imp.Name.Name
			}
		}
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			if id, ok := sel.X.(*ast.Ident); ok && local != "" && id.Name == local {
				found = true
			}
		}
		return !found
	})
	return found
}

// TestOnlyEnvironmentsAndConsentAdmit holds the way into engine.Target shut.
func TestOnlyEnvironmentsAndConsentAdmit(t *testing.T) {
	admitted := false
	for _, s := range sources(t) {
		if !calls(s.file, module+"/engine", "Admit") {
			continue
		}
		if strings.HasPrefix(s.name, "internal/env/") || strings.HasPrefix(s.name, "internal/consent/") {
			admitted = true
			continue
		}
		t.Errorf("%s calls engine.Admit: only internal/env and internal/consent may", s.name)
	}
	if !admitted {
		t.Error("nobody calls engine.Admit, so that this test looks for the wrong thing")
	}
}

func TestOnlyMainExits(t *testing.T) {
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.name, "/")
		// A conformance suite starts its own test binary again, as a helper process.
		if slices.Contains([]string{"cmd", "examples", "bench"}, top) || strings.HasSuffix(path.Dir(s.name), "test") {
			continue
		}
		for _, way := range [][2]string{{"os", "Exit"}, {"syscall", "Exit"}, {"log", "Fatal"}, {"log", "Fatalf"}, {"log", "Fatalln"}} {
			if calls(s.file, way[0], way[1]) {
				t.Errorf("%s calls %s.%s: return an error; the exit numbers are in internal/cli", s.name, way[0], way[1])
			}
		}
	}
}

func TestNothingHappensOnImport(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", s.name)
			}
		}
	}
}

// TestPackageVariablesStay checks that no function assigns to, or takes the address of, a variable of
// its package, and that none is a lock or a counter: state belongs to a value that somebody made.
// A variable that only the linker sets, and tables, are fine.
func TestPackageVariablesStay(t *testing.T) {
	packages := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, s := range sourcesOf(t, fset) {
		packages[path.Dir(s.name)] = append(packages[path.Dir(s.name)], s.file)
	}
	for dir, parsed := range packages {
		info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		// Imports stay unknown, which is fine: only names of the package itself are looked at.
		conf := types.Config{Importer: noImports{}, Error: func(error) {}}
		pkg, _ := conf.Check(dir, fset, parsed, &info)
		for _, f := range parsed {
			for _, at := range mutations(f, pkg, &info) {
				t.Errorf("%s: a package variable is changed or shared", fset.Position(at))
			}
		}
	}
}

// noImports is an importer that knows nothing.
type noImports struct{}

// Import implements types.Importer.
func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// mutations finds where a file changes a variable of its package, takes its address, or declares one
// that is a lock or a counter.
func mutations(f *ast.File, pkg *types.Package, info *types.Info) []token.Pos {
	var found []token.Pos
	check := func(e ast.Expr) {
		if id := root(e); id != nil {
			if v, ok := info.Uses[id].(*types.Var); ok && v.Parent() == pkg.Scope() {
				found = append(found, e.Pos())
			}
		}
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				if sel, ok := spec.(*ast.ValueSpec).Type.(*ast.SelectorExpr); ok {
					if id, ok := sel.X.(*ast.Ident); ok && (id.Name == "sync" || id.Name == "atomic") {
						found = append(found, spec.Pos())
					}
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				check(e)
			}
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X)
			}
		}
		return true
	})
	return found
}

// root is the variable that an expression such as v.f[i] starts from.
func root(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return nil
}

func TestMutationsSeesTheMistakes(t *testing.T) {
	const code = `package p
import "sync"
var table = map[string]int{"a": 1}
var n int
var mu sync.Mutex
type s struct{ n int }
func f(x *s) int {
	n := table["a"] // a local n
	n++
	x.n = n
	return len(table)
}
func g() { n++ }
func h() { table["b"] = 2 }
func i() *int { return &n }
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", code, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := conf.Check("p", fset, []*ast.File{f}, &info)
	var lines []int
	for _, at := range mutations(f, pkg, &info) {
		lines = append(lines, fset.Position(at).Line)
	}
	if want := []int{5, 13, 14, 15}; !slices.Equal(lines, want) {
		t.Errorf("found lines %v; want %v", lines, want)
	}
}

// TestGlossaryNamesFiles checks that each word of the glossary has a file that exists, and that each
// word of the specification has a row.
func TestGlossaryNamesFiles(t *testing.T) {
	page, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$`)
	link := regexp.MustCompile(`\]\(\.\./([^)#]+)[^)]*\)`)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "word" {
			continue
		}
		for _, word := range strings.Split(m[1], ",") {
			words[strings.TrimSpace(word)] = true
		}
		links := link.FindAllStringSubmatch(m[2], -1)
		if len(links) == 0 && strings.TrimSpace(m[2]) != "planned" {
			t.Errorf("%s: neither a file nor planned", m[1])
		}
		for _, l := range links {
			if _, err := os.Stat(filepath.FromSlash(l[1])); err != nil {
				t.Errorf("%s: %v", m[1], err)
			}
		}
	}
	for _, word := range []string{"due time", "response time", "service time", "send delay", "offered rate",
		"achieved rate", "valid rate", "goodput", "route", "mix", "profile", "scenario", "session", "iteration",
		"bucket", "objective", "golden", "branch", "baseline", "candidate", "capacity", "evidence"} {
		if !words[word] {
			t.Errorf("docs/glossary.md lacks %q", word)
		}
	}
}

// TestFilesNameNoMachine looks for paths of the machine that something was written on, and for
// settings of a registry. Tests may make up home directories: they are what a redactor is tried on.
func TestFilesNameNoMachine(t *testing.T) {
	rooted := func(folders ...string) string {
		return `(?m)(?:^|[\s"'` + "`" + `(=:])/(?:` + strings.Join(folders, "|") + `)/[a-z]`
	}
	registry := "|" + strings.Join([]string{"GOPROXY" + "=", "registry" + `\.npmjs`, "proxy" + `\.golang`}, "|")
	inTests := regexp.MustCompile(rooted("work", "farm") + registry)
	elsewhere := regexp.MustCompile(rooted("work", "farm", "root", "home") + registry)
	files(t, func(name string) {
		if strings.Contains(name, "testdata/") || slices.Contains([]string{".gz", ".zst", ".png", ".sum"}, path.Ext(name)) {
			return
		}
		content, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Error(err)
			return
		}
		bad := elsewhere
		if strings.HasSuffix(name, "_test.go") {
			bad = inTests
		}
		if at := bad.Find(content); at != nil {
			t.Errorf("%s holds %q", name, bytes.TrimSpace(at))
		}
	})
}
