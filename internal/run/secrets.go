package run

import (
	"regexp"

	"seatrial/manifest"
)

// fromEnvironment finds what a manifest takes from the environment.
var fromEnvironment = regexp.MustCompile(`\$\{env:([^}]+)\}`)

// ServiceSecrets gives what the services of a manifest are told and nobody else needs to know: every
// value that they take from the environment, and every variable whose name says that it is a secret.
// What a service prints may hold them, so they are made known to the redactor (SA-5).
func ServiceSecrets(m *manifest.Manifest, getenv func(string) string) []string {
	var out []string
	take := func(text string) {
		for _, found := range fromEnvironment.FindAllStringSubmatch(text, -1) {
			if v := getenv(found[1]); v != "" {
				out = append(out, v)
			}
		}
	}
	for _, s := range m.Services {
		take(s.Build)
		take(s.Run)
		for name, value := range s.Env {
			take(value)
			if manifest.Sensitive(name) && !fromEnvironment.MatchString(value) && value != "" {
				out = append(out, value)
			}
		}
	}
	return out
}
