package repo

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

func (s *scanner) note(format string, args ...any) {
	s.out.Notes = append(s.out.Notes, fmt.Sprintf(format, args...))
}

// word makes a name that a manifest accepts.
func word(name, fallback string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9'):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	out := strings.Trim(b.String(), "-")
	if len(out) > 40 {
		out = strings.Trim(out[:40], "-")
	}
	if out == "" {
		return fallback
	}
	return out
}

// healthPaths are the paths that services commonly answer when they are ready, surest first.
func healthPaths() []string {
	return []string{"/readyz", "/healthz", "/health", "/ready", "/livez", "/ping", "/status", "/up"}
}

// health looks for a health path, in the service's own files before those around it.
func (s *scanner) health(groups ...[]string) (route, from string) {
	for _, files := range groups {
		if route, from = s.healthIn(files[:min(len(files), 200)]); from != "" {
			return route, from
		}
	}
	return "/", ""
}

func (s *scanner) healthIn(files []string) (route, from string) {
	texts := make([]string, len(files))
	for i, f := range files {
		texts[i] = s.text(f)
	}
	for _, h := range healthPaths() {
		quoted := regexp.MustCompile(`["'` + "`" + `](?:[A-Z]+ )?` + regexp.QuoteMeta(h) + `/?["'` + "`" + `]`)
		for i, f := range files {
			if quoted.MatchString(texts[i]) {
				return h, f
			}
		}
	}
	return "", ""
}

// portOf reads a port literal such as ":8080" or listen(3000).
func portOf(text string, patterns ...string) int {
	for _, p := range patterns {
		if m := regexp.MustCompile(p).FindStringSubmatch(text); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n > 0 && n < 65536 {
				return n
			}
		}
	}
	return 0
}

// at puts a command into a folder below the project's.
func at(dir, command string) string {
	if dir == "." || command == "" {
		return command
	}
	return "cd " + shell(dir) + " && " + command
}

// shell quotes a word for sh where that is needed.
func shell(w string) string {
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./=:@%+,", r)
	}) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// substitutable turns a shell command's ${NAME} into what a manifest substitutes: the port as
// ${PORT}, others as the shell's own $NAME.
func substitutable(command string) string {
	port := regexp.MustCompile(`\$\{PORT(:-[^}]*)?\}|\$PORT\b`)
	command = port.ReplaceAllString(command, "\x00")
	command = regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllString(command, "$$$1")
	command = regexp.MustCompile(`\$\{(\w+):?-([^}]*)\}`).ReplaceAllString(command, "$2")
	command = strings.ReplaceAll(command, "${", "$ {") // anything else the manifest would refuse
	return strings.ReplaceAll(command, "\x00", "${PORT}")
}

// nameOf names a service after its folder, or after the project.
func (s *scanner) nameOf(dir string) string {
	if dir == "." {
		return s.out.Name
	}
	return path.Base(dir)
}
