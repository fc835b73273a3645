package env

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"seatrial/fault"
	"seatrial/manifest"
)

// substitution is ${...}; only the forms of EN-1 are ours, the shell sees the others.
var substitution = regexp.MustCompile(`\$\{[^{}]*\}`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// scope gives the values of substitutions for one unit.
type scope struct {
	service string
	port    int               // 0: not known (while building)
	urls    map[string]string // services that are ready
	getenv  func(string) (string, bool)
	used    map[string]string // environment variables that shell lines refer to
}

// text substitutes in a value that is used as it is.
func (s *scope) text(at, in string) (string, error) { return s.expand(at, in, false) }

// shell substitutes in a shell line. ${env:NAME} becomes a reference to the shell variable, not its
// value: a value must not be parsed as commands, nor stand in the process list more than need be.
func (s *scope) shell(at, in string) (string, error) { return s.expand(at, in, true) }

func (s *scope) expand(at, in string, shell bool) (string, error) {
	var first error
	out := substitution.ReplaceAllStringFunc(in, func(m string) string {
		v, err := s.value(m[2:len(m)-1], shell)
		if err != nil && first == nil {
			first = fault.New(fault.MAN004, "services.%s.%s holds %s: %s", s.service, at, m, err)
		}
		return v
	})
	return out, first
}

func (s *scope) value(key string, shell bool) (string, error) {
	switch {
	case key == "PORT" && s.port == 0:
		return "", fmt.Errorf("the port is not known while the service is built")
	case key == "PORT":
		return fmt.Sprint(s.port), nil
	case strings.HasPrefix(key, "service."):
		name := strings.TrimSuffix(strings.TrimPrefix(key, "service."), ".url")
		if u, ok := s.urls[name]; ok && strings.HasSuffix(key, ".url") {
			return u, nil
		}
		return "", fmt.Errorf("there is no such service")
	case strings.HasPrefix(key, "database."):
		return "", fmt.Errorf("this build brings up no database yet")
	case strings.HasPrefix(key, "env:"):
		return s.variable(strings.TrimPrefix(key, "env:"), shell)
	}
	return "${" + key + "}", nil
}

func (s *scope) variable(name string, shell bool) (string, error) {
	if !variableName.MatchString(name) {
		return "", fmt.Errorf("that is not the name of an environment variable")
	}
	v, ok := s.getenv(name)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	if !shell {
		return v, nil
	}
	s.used[name] = v
	return "${" + name + "}", nil
}

// requires gives what a service waits for: depends_on, and every service whose URL it is given.
func requires(s manifest.Service) []string {
	out := slices.Clone(s.DependsOn)
	texts := []string{s.Build, s.Run}
	for _, v := range s.Env {
		texts = append(texts, v)
	}
	for _, t := range texts {
		for _, m := range substitution.FindAllString(t, -1) {
			if name, ok := strings.CutPrefix(m, "${service."); ok {
				if name, ok = strings.CutSuffix(name, ".url}"); ok {
					out = append(out, name)
				}
			}
		}
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// order sorts services so that each comes after what it requires; the same input gives the same
// order. Cycles and unknown names are refused.
func order(services map[string]manifest.Service) ([]string, error) {
	names := make([]string, 0, len(services))
	for n := range services {
		names = append(names, n)
	}
	sort.Strings(names)
	o := orderer{services: services, mark: map[string]int{}}
	for _, n := range names {
		if err := o.visit(n, nil); err != nil {
			return nil, err
		}
	}
	return o.out, nil
}

type orderer struct {
	services map[string]manifest.Service
	mark     map[string]int // 1 on the way, 2 done
	out      []string
}

func (o *orderer) visit(name string, path []string) error {
	if o.mark[name] == 2 {
		return nil
	}
	path = append(path, name)
	if o.mark[name] == 1 {
		from := slices.Index(path, name)
		return fault.New(fault.MAN004, "services wait for each other in a circle: %s", strings.Join(path[from:], " -> "))
	}
	o.mark[name] = 1
	for _, next := range requires(o.services[name]) {
		if _, ok := o.services[next]; !ok {
			return fault.New(fault.MAN004, "services.%s requires the service %q, which is not declared", name, next)
		}
		if err := o.visit(next, path); err != nil {
			return err
		}
	}
	o.mark[name] = 2
	o.out = append(o.out, name)
	return nil
}
