package repo

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/klauspost/compress/zstd"
)

// containers reads Dockerfiles and Compose files. This build runs services as processes, so what
// they say becomes a hint: a port for the only service, or a note.
func (s *scanner) containers() {
	for _, f := range s.files {
		base := path.Base(f)
		switch {
		case base == "Dockerfile" || strings.HasPrefix(base, "Dockerfile.") || base == "Containerfile":
			s.dockerfile(f)
		case slices.Contains([]string{"docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml"}, base):
			s.compose(f)
		}
	}
}

func (s *scanner) dockerfile(f string) {
	text := s.text(f)
	port := portOf(text, `(?im)^\s*EXPOSE\s+(\d{2,5})`)
	command := ""
	if all := regexp.MustCompile(`(?im)^\s*(?:CMD|ENTRYPOINT)\s+(.+)$`).FindAllStringSubmatch(text, -1); all != nil {
		command = strings.TrimSpace(all[len(all)-1][1])
	}
	if mine := s.below(path.Dir(f)); len(mine) > 0 {
		v := mine[0]
		if len(mine) == 1 && v.Port == 0 && v.Env == nil && !strings.Contains(v.Run, "${PORT}") {
			v.Port = port
		}
		return
	}
	say := fmt.Sprintf("%s: this build cannot run a service from a Dockerfile yet; write the command that runs it as a process", f)
	if command != "" {
		say += " (the image runs " + oneLine(command) + ")"
	}
	if port != 0 {
		say += fmt.Sprintf("; it exposes port %d", port)
	}
	s.out.Notes = append(s.out.Notes, say)
}

// below gives the services that were found in a folder or below it.
func (s *scanner) below(dir string) []*Service {
	var out []*Service
	for i := range s.out.Services {
		if v := &s.out.Services[i]; dir == "." || strings.HasPrefix(v.From, dir+"/") {
			out = append(out, v)
		}
	}
	return out
}

// oneLine keeps a note to one short line of plain text.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if r := []rune(text); len(r) > 100 {
		text = string(r[:97]) + "..."
	}
	return text
}

// composeFile is the part of a Compose file that matters here.
type composeFile struct {
	Services map[string]struct {
		Image string `yaml:"image"`
		Ports []any  `yaml:"ports"`
	} `yaml:"services"`
}

func (s *scanner) compose(f string) {
	text := s.text(f)
	if strings.Count(text, "\n") > 5000 {
		s.note("%s is too long and was passed over", f)
		return
	}
	var c composeFile
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		s.note("%s is not valid YAML and was passed over", f)
		return
	}
	var names []string
	for name, v := range c.Services {
		if v.Image != "" {
			name += " (" + v.Image + ")"
		}
		names = append(names, oneLine(name))
	}
	slices.Sort(names)
	if len(names) > 0 {
		s.note("%s declares %s; this build does not start Compose services, so start what the services need yourself", f, strings.Join(names, ", "))
	}
}

// maxTraffic is how many files of recorded traffic are proposed.
const maxTraffic = 20

// traffic looks for recorded traffic by content.
func (s *scanner) traffic() {
	for _, f := range s.files {
		if len(s.out.Traffic) == maxTraffic {
			return
		}
		name := strings.ToLower(path.Base(f))
		plain := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
		jsonish := strings.HasSuffix(plain, ".json") || strings.HasSuffix(plain, ".jsonl") || strings.HasSuffix(plain, ".ndjson")
		loggish := strings.HasSuffix(plain, ".log") || strings.Contains(plain, "access")
		if !jsonish && !loggish {
			continue
		}
		switch head := s.beginning(f); {
		case jsonish && isOTLP(head):
			s.out.Traffic = append(s.out.Traffic, Traffic{Path: f, Source: "otel"})
		case loggish && isAccessLog(head):
			s.out.Traffic = append(s.out.Traffic, Traffic{Path: f, Source: "access_log"})
		}
	}
}

// beginning gives the first 64 KiB of a file, decompressed.
func (s *scanner) beginning(f string) []byte {
	const limit = 64 << 10
	head := s.head(f, limit)
	var r io.Reader
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return nil
		}
		r = z
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(bytes.NewReader(head), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(16<<20))
		if err != nil {
			return nil
		}
		defer z.Close()
		r = z
	default:
		return head
	}
	out, _ := io.ReadAll(io.LimitReader(r, limit)) // the input is cut on purpose, so an error at its end says nothing
	return out
}

func isOTLP(head []byte) bool {
	return bytes.Contains(head, []byte(`"resourceSpans"`)) || bytes.Contains(head, []byte(`"resource_spans"`))
}

// isAccessLog looks for a line with a bracketed time, a quoted request and a status.
func isAccessLog(head []byte) bool {
	return regexp.MustCompile(`(?m)^\S+ .*\[[^\]\n]+\] "[A-Z]+ [^"\n]+" \d{3}[ \n]`).Match(head)
}
