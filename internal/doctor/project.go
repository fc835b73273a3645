package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seatrial/internal/consent"
	"seatrial/manifest"
	"seatrial/plan"
	"seatrial/report/figure"
	"seatrial/traffic"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// cause words an error of the file system without the path in it.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// tools checks git, and the first program of each build and run command.
func tools(ctx context.Context, m *manifest.Manifest) []Result {
	var out []Result
	if _, err := exec.LookPath("git"); err != nil {
		out = append(out, warn("git", "Install git, so that reports can name the revision.", "git is not in PATH"))
	} else {
		version := "its version is unknown"
		if b, err := exec.CommandContext(ctx, "git", "--version").Output(); err == nil {
			version = strings.TrimSpace(string(b))
		}
		out = append(out, ok("git", "%s", version))
	}
	if m == nil {
		return out
	}
	seen := map[string]bool{}
	for _, name := range sorted(m.Services) {
		s := m.Services[name]
		for _, key := range []struct{ name, line string }{{"build", s.Build}, {"run", s.Run}} {
			word := program(key.line)
			if word == "" || seen[word] {
				continue
			}
			seen[word] = true
			out = append(out, tool(m.Dir, word, "services."+name+"."+key.name, s.Build != "" && key.name == "run"))
		}
	}
	return out
}

// tool checks one program. A path inside the project may be what the build makes.
func tool(dir, word, where string, built bool) Result {
	name := "tool " + word
	if strings.Contains(word, "/") {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir() && info.Mode()&0o111 != 0:
			return ok(name, "it is there (%s)", where)
		case built && errors.Is(err, fs.ErrNotExist):
			return ok(name, "it is not there yet; the build is to make it (%s)", where)
		}
		return bad(name, "Build it, or mend the command at "+where+".", "there is no such program (%s)", where)
	}
	if _, err := exec.LookPath(word); err != nil {
		return bad(name, fmt.Sprintf("Install %s, or put its folder into PATH.", word), "%s needs it, and it is not in PATH", where)
	}
	return ok(name, "it is in PATH (%s)", where)
}

// builtins are words of the shell, which no PATH needs to hold.
var builtins = map[string]bool{".": true, ":": true, "[": true, "cd": true, "command": true, "echo": true, "eval": true, "export": true,
	"false": true, "for": true, "if": true, "printf": true, "read": true, "set": true, "test": true, "trap": true, "true": true,
	"ulimit": true, "umask": true, "unset": true, "wait": true, "while": true, "until": true, "case": true, "{": true, "(": true, "!": true}

// program gives the first program that a shell line runs; empty when that takes a shell to know.
func program(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		name, _, assigned := strings.Cut(w, "=")
		switch {
		case assigned && name != "" && !strings.ContainsAny(name, `/"'$`):
			if strings.ContainsAny(w, "\"'`$(") {
				return "" // the value may go on in the next word
			}
			continue
		case w == "exec" || w == "nohup" || w == "time":
			continue
		case w == "env" && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			continue
		case builtins[w] || strings.ContainsAny(w, "\"'`$(){}<>|&;*?[\\~"):
			return ""
		}
		return w
	}
	return ""
}

// place checks that there is something to send at.
func place(m *manifest.Manifest) Result {
	const name = "place to send at"
	if n := len(m.Services) + len(m.Targets); n > 0 {
		return ok(name, "%s, %s", figure.Counted(uint64(len(m.Services)), "service"), figure.Counted(uint64(len(m.Targets)), "target"))
	}
	return bad(name, "Declare a service under `services:`, or list a loopback URL under `targets:`.", "the manifest declares neither a service nor a target")
}

// routes checks that something may be sent. Under source none patterns are filters and only literal
// routes are sent (TR-8).
func routes(m *manifest.Manifest) Result {
	const name = "safe routes"
	next := "Name what may be sent under `load.safe_routes`, such as \"GET /health\"."
	if len(m.Load.SafeRoutes) == 0 {
		return bad(name, next, "none is named, and every route is unsafe until it is")
	}
	literal := 0
	for _, r := range m.Load.SafeRoutes {
		if !strings.ContainsAny(r, "*{") {
			literal++
		}
	}
	if m.Load.Source == manifest.SourceNone && literal == 0 {
		return warn(name, next, "none is literal, and without a traffic source patterns send nothing: only GET / is sent")
	}
	return ok(name, "%s", figure.Counted(uint64(len(m.Load.SafeRoutes)), "pattern"))
}

// carried checks what requests carry besides their URL: secrets of the environment, files, certificates.
func carried(m *manifest.Manifest) []Result {
	var out []Result
	for _, p := range plan.CheckCarried(m, os.Getenv) {
		out = append(out, bad("requests", p.Next, "%s", p.Message))
	}
	return out
}

// targets checks that what `targets:` lists would be admitted.
func targets(ctx context.Context, m *manifest.Manifest) []Result {
	var out []Result
	for _, name := range sorted(m.Targets) {
		title := "target " + name
		if _, _, err := consent.Admit(ctx, name, m.Targets[name], net.DefaultResolver); err != nil {
			out = append(out, bad(title, "Only loopback URLs with `max_rate` are admitted.", "%v", err))
			continue
		}
		out = append(out, ok(title, "a loopback address, at most %g requests per second", float64(m.Targets[name].MaxRate)))
	}
	return out
}

// source checks that the files of the load source and the committed profile can be read.
func source(m *manifest.Manifest) []Result {
	const name = "load source"
	var out []Result
	if m.Load.Source == "otel" || m.Load.Source == "access_log" {
		for _, pattern := range m.Load.SourceConfig.Path {
			out = append(out, sourcePath(m.Dir, pattern))
		}
		if len(m.Load.SourceConfig.Path) == 0 {
			out = append(out, bad(name, "Set `load.source_config.path`.", "%s names no file", m.Load.Source))
		}
	} else if m.Load.Source == "loki" {
		out = append(out, ok(name, "asks a log server, which is not done here"))
	} else {
		out = append(out, ok(name, "none: an assumed smoke of the safe routes"))
	}
	if p, path, err := profile(m); path != "" {
		switch {
		case err != nil:
			out = append(out, bad("traffic profile", "Record it again with `seatrial traffic record`.", "%v", err))
		default:
			out = append(out, ok("traffic profile", "%s, recorded %s", figure.Counted(uint64(len(p.Routes)), "route"), p.Recorded.Format(time.DateOnly)))
		}
	}
	return out
}

func sourcePath(dir, pattern string) Result {
	const name = "load source"
	if pattern == "-" {
		return ok(name, "standard input")
	}
	at := pattern
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	found := []string{at}
	if _, err := os.Lstat(at); err != nil {
		if found, err = filepath.Glob(at); err != nil || len(found) == 0 {
			return bad(name, "Mend `load.source_config.path`; it is relative to the folder of the manifest.", "%s matches no file", pattern)
		}
	}
	for _, path := range found {
		if err := readable(path); err != nil {
			return bad(name, "Make the file readable.", "%s cannot be read: %v", filepath.Base(path), cause(err))
		}
	}
	return ok(name, "%s: %d readable", pattern, len(found))
}

func readable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		if info.IsDir() {
			return errors.New("it is a folder")
		}
		return nil // a pipe is read once, by the run
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	_, err = f.Read(make([]byte, 1))
	return err
}

// profile reads the committed profile that the manifest names. The path is empty when it names none.
func profile(m *manifest.Manifest) (*traffic.Profile, string, error) {
	path := m.Load.Traffic.Profile
	if path == "" {
		return nil, "", nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.Dir, path)
	}
	p, err := traffic.ReadProfileFile(path, time.Now(), m.Load.Traffic.MaxAge)
	return p, path, err
}

// patterns warns of unsafe patterns that end in a single `*` while the profile holds deeper paths
// under them (TR-42).
func patterns(m *manifest.Manifest) []Result {
	const name = "unsafe routes"
	policy, err := traffic.NewPolicy(m.Load.SafeRoutes, m.Load.UnsafeRoutes)
	if err != nil {
		return []Result{bad(name, "Mend the pattern; it is `METHOD /path`.", "%v", err)}
	}
	p, _, err := profile(m)
	if p == nil || err != nil {
		return nil
	}
	var out []Result
	for _, text := range policy.SingleStarWarnings(p) {
		out = append(out, warn(name, "Write `**` where everything below is meant.", "%s", text))
	}
	return out
}
