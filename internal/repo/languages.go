package repo

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// goServices finds main packages of Go modules that listen. The folder may itself lie within a
// module whose go.mod is further up.
func (s *scanner) goServices() {
	mods := s.named("go.mod")
	if !s.has("go.mod") && s.insideModule() {
		mods = append(mods, "go.mod")
	}
	for _, mod := range mods {
		root := path.Dir(mod)
		for _, dir := range s.mainPackages(root) {
			s.goService(root, dir)
		}
	}
}

// insideModule tells whether a folder above holds a go.mod.
func (s *scanner) insideModule() bool {
	for dir := filepath.Dir(s.root); ; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(dir, "go.mod")); err == nil && info.Mode().IsRegular() {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// mainPackages gives the folders below a module that hold a program, nearest module only.
func (s *scanner) mainPackages(root string) []string {
	var out []string
	for _, f := range s.under(root, ".go") {
		dir := path.Dir(f)
		if strings.HasSuffix(f, "_test.go") || slices.Contains(out, dir) || s.moduleOf(dir) != root {
			continue
		}
		if file, err := parser.ParseFile(token.NewFileSet(), f, s.text(f), parser.SkipObjectResolution); err == nil && isProgram(file) {
			out = append(out, dir)
		}
	}
	return out
}

func isProgram(f *ast.File) bool {
	return f.Name.Name == "main" && slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && fn.Recv == nil && fn.Name.Name == "main"
	})
}

// moduleOf gives the folder of the go.mod that a folder belongs to.
func (s *scanner) moduleOf(dir string) string {
	for {
		if s.has(path.Join(dir, "go.mod")) {
			return dir
		}
		if dir == "." { // the folder's own module, or the one above it
			return dir
		}
		dir = path.Dir(dir)
	}
}

func (s *scanner) goService(root, dir string) {
	own := slices.DeleteFunc(s.under(dir, ".go"), func(f string) bool { return path.Dir(f) != dir || strings.HasSuffix(f, "_test.go") })
	text := ""
	for _, f := range own {
		text += s.text(f) + "\n"
	}
	if !regexp.MustCompile(`ListenAndServe|net\.Listen|http\.Server\b|\.Run\(|\.Start\(|\.Listen\(`).MatchString(text) || !strings.Contains(text, "PORT") &&
		!regexp.MustCompile(`"[^"\s]*:\d{2,5}"|[Ll]isten`).MatchString(text) {
		return
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(dir, root), "/")
	if root == "." && dir != "." {
		rel = dir
	}
	target := "./" + rel
	if rel == "" || rel == "." {
		target = "."
	}
	name := s.nameOf(dir)
	binary := ".seatrial/bin/" + word(name, "service")
	v := Service{Name: name, Kind: "go", From: own[0], Build: at(root, "go build -o "+binary+" "+shell(target)), Run: at(root, binary)}
	switch flag := regexp.MustCompile(`\.(?:String|Int|StringVar|IntVar)\((?:&[\w.]+, ?)?"(addr|address|listen|port|http)"`).FindStringSubmatch(text); {
	case strings.Contains(text, `"PORT"`):
		v.Env = map[string]string{"PORT": "${PORT}"}
	case flag != nil && flag[1] == "port":
		v.Run += " -port ${PORT}"
	case flag != nil:
		v.Run += " -" + flag[1] + " 127.0.0.1:${PORT}"
	default:
		v.Port = portOf(text, `"[^"\s]*:(\d{2,5})"`)
	}
	v.Health, v.HealthFrom = s.health(own, s.under(root, ".go"))
	s.add(v)
}

// packageJSON is the part of a package.json that matters here.
type packageJSON struct {
	Name         string            `json:"name"`
	Scripts      map[string]string `json:"scripts"`
	Dependencies map[string]string `json:"dependencies"`
	Workspaces   json.RawMessage   `json:"workspaces"`
}

func (s *scanner) nodeServices() {
	for _, f := range s.named("package.json") {
		var p packageJSON
		if json.Unmarshal([]byte(s.text(f)), &p) != nil {
			s.note("%s is not valid JSON and was passed over", f)
			continue
		}
		s.nodeService(f, p)
	}
}

func (s *scanner) nodeService(file string, p packageJSON) {
	dir := path.Dir(file)
	script := ""
	for _, name := range []string{"start", "serve", "start:prod", "dev"} {
		if p.Scripts[name] != "" {
			script = name
			break
		}
	}
	if script == "" {
		return
	}
	tool, install := "npm", "npm install"
	switch {
	case s.has(path.Join(dir, "pnpm-lock.yaml")):
		tool, install = "pnpm", "pnpm install --frozen-lockfile"
	case s.has(path.Join(dir, "yarn.lock")):
		tool, install = "yarn", "yarn install --frozen-lockfile"
	case s.has(path.Join(dir, "package-lock.json")):
		install = "npm ci"
	}
	if p.Scripts["build"] != "" {
		install += " && " + tool + " run build"
	}
	v := Service{Name: s.nameOf(dir), Kind: "node", From: file, Build: at(dir, install), Run: at(dir, tool+" run "+script)}
	text := p.Scripts[script]
	sources := s.under(dir, ".js", ".mjs", ".cjs", ".ts")
	for _, f := range sources[:min(len(sources), 50)] {
		text += "\n" + s.text(f)
	}
	_, next := p.Dependencies["next"]
	switch {
	case next || strings.Contains(text, "process.env.PORT") || strings.Contains(text, "$PORT"):
		v.Env = map[string]string{"PORT": "${PORT}"}
	default:
		v.Port = portOf(text, `--port[ =](\d{2,5})`, `\.listen\(\s*(\d{2,5})`, `(?i)\bport\b\s*[:=]\s*(\d{2,5})`)
		if v.Port == 0 {
			v.Env = map[string]string{"PORT": "${PORT}"}
		}
	}
	v.Health, v.HealthFrom = s.health(sources)
	s.add(v)
}

// pythonServices finds Django, FastAPI and Flask applications.
func (s *scanner) pythonServices() {
	for _, f := range s.named("manage.py") {
		dir := path.Dir(f)
		v := Service{Name: s.nameOf(dir), Kind: "python", From: f, Build: s.pythonBuild(dir),
			Run: at(dir, "python manage.py runserver 127.0.0.1:${PORT} --noreload")}
		v.Health, v.HealthFrom = s.health(s.under(dir, ".py"))
		s.add(v)
	}
	app := regexp.MustCompile(`(?m)^(\w+)\s*(?::[^=\n]+)?=\s*(FastAPI|Flask|Starlette)\(`)
	done := map[string]bool{}
	for _, f := range s.under(".", ".py") {
		m := app.FindStringSubmatch(s.text(f))
		dir := path.Dir(f)
		project := s.pythonProject(dir)
		if m == nil || done[project] || strings.HasPrefix(path.Base(f), "test_") {
			continue
		}
		done[project] = true
		rel := strings.TrimPrefix(strings.TrimPrefix(f, project), "/")
		rel = strings.TrimPrefix(rel, "src/") // the layout in which src is no package
		module := strings.ReplaceAll(strings.TrimSuffix(rel, ".py"), "/", ".")
		run := "python -m uvicorn " + module + ":" + m[1] + " --host 127.0.0.1 --port ${PORT}"
		if m[2] == "Flask" {
			run = "python -m flask --app " + module + ":" + m[1] + " run --host 127.0.0.1 --port ${PORT}"
		}
		v := Service{Name: s.nameOf(project), Kind: "python", From: f, Build: s.pythonBuild(project), Run: at(project, run)}
		v.Health, v.HealthFrom = s.health(s.under(project, ".py"))
		s.add(v)
	}
}

// pythonProject is the nearest folder above that declares dependencies, else the folder itself.
func (s *scanner) pythonProject(dir string) string {
	for d := dir; ; d = path.Dir(d) {
		if s.has(path.Join(d, "requirements.txt")) || s.has(path.Join(d, "pyproject.toml")) {
			return d
		}
		if d == "." {
			return dir
		}
	}
}

func (s *scanner) pythonBuild(dir string) string {
	switch {
	case s.has(path.Join(dir, "uv.lock")):
		return at(dir, "uv sync --frozen")
	case s.has(path.Join(dir, "requirements.txt")):
		return at(dir, "python -m pip install -r requirements.txt")
	case s.has(path.Join(dir, "pyproject.toml")):
		return at(dir, "python -m pip install .")
	}
	return ""
}

// procfile takes the web process of a Procfile, which says how to run what the languages above only
// guess. Other processes are named.
func (s *scanner) procfile() {
	line := regexp.MustCompile(`(?m)^([A-Za-z0-9_-]+):[ \t]*(\S.*)$`)
	for _, f := range s.named("Procfile") {
		dir := path.Dir(f)
		for _, m := range line.FindAllStringSubmatch(s.text(f), -1) {
			if m[1] != "web" {
				s.note("%s has a process %s as well; declare it under services if the web process needs it", f, m[1])
				continue
			}
			command := at(dir, substitutable(strings.TrimSpace(m[2])))
			if i := slices.IndexFunc(s.out.Services, func(v Service) bool { return v.Name == word(s.nameOf(dir), "service") }); i >= 0 {
				v := &s.out.Services[i]
				v.Run, v.From, v.Port = command, f, 0
				v.Env = map[string]string{"PORT": "${PORT}"}
				continue
			}
			s.add(Service{Name: s.nameOf(dir), Kind: "procfile", From: f, Run: command, Env: map[string]string{"PORT": "${PORT}"}})
		}
	}
}
