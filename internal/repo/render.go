package repo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"seatrial/manifest"
)

// Summary says in a few lines what was found, for the terminal.
func (f Findings) Summary() []string {
	var out []string
	for _, s := range f.Services {
		line := fmt.Sprintf("service %s: %s, from %s", s.Name, s.Kind, s.From)
		if s.HealthFrom != "" {
			line += "; health path " + s.Health + " seen in " + s.HealthFrom
		}
		out = append(out, line)
	}
	for _, t := range f.Traffic {
		out = append(out, fmt.Sprintf("traffic %s: source %s", t.Path, t.Source))
	}
	if len(f.Services) == 0 {
		out = append(out, "no service was recognised; the manifest holds an example to fill in")
	}
	out = append(out, f.Notes...)
	for i := range out {
		out[i] = oneLineNote(out[i]) // file names may hold anything
	}
	return out
}

// Render writes a commented seatrial.yaml that loads as it is.
func Render(f Findings) []byte {
	var b strings.Builder
	b.WriteString("# What Seatrial brings up, what it sends, and what must hold. `seatrial explain` prints the\n" +
		"# effective values and where each came from; `seatrial schema` describes every key.\n" +
		"version: 1\n")
	fmt.Fprintf(&b, "name: %s\n\n", manifest.Text(f.Name))
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "# Note: %s.\n", strings.TrimSuffix(oneLineNote(n), "."))
	}
	renderServices(&b, f.Services)
	renderLoad(&b, f)
	return []byte(b.String())
}

// oneLineNote keeps a note inside its comment.
func oneLineNote(n string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, n)
}

func renderServices(b *strings.Builder, services []Service) {
	if len(services) == 0 {
		b.WriteString("# No service was recognised. Say how yours is started:\n" +
			"# services:\n#   web:\n#     build: make build\n#     run: ./bin/web --port ${PORT}\n#     health: /healthz\n\n")
		return
	}
	b.WriteString("services:\n")
	for _, s := range services {
		fmt.Fprintf(b, "  %s: # %s, from %s\n", manifest.Text(s.Name), s.Kind, oneLineNote(s.From))
		if s.Build != "" {
			fmt.Fprintf(b, "    build: %s\n", manifest.Text(s.Build))
		}
		fmt.Fprintf(b, "    run: %s\n", manifest.Text(s.Run))
		if s.Port != 0 {
			fmt.Fprintf(b, "    port: %d # the port it listens on; without it a free one is given as ${PORT}\n", s.Port)
		}
		why := "no health path was seen; name one that answers 2xx once the service is ready"
		if s.HealthFrom != "" {
			why = "seen in " + oneLineNote(s.HealthFrom)
		}
		fmt.Fprintf(b, "    health: %s # %s\n", manifest.Text(s.Health), why)
		if len(s.Env) > 0 {
			b.WriteString("    env:\n")
			for _, k := range slices.Sorted(maps.Keys(s.Env)) {
				fmt.Fprintf(b, "      %s: %s\n", manifest.Text(k), manifest.Text(s.Env[k]))
			}
		}
	}
	b.WriteString("\n")
}

// chosen is the traffic to propose: traces before logs, because they carry durations.
func chosen(all []Traffic) *Traffic {
	for _, source := range []string{manifest.SourceOTel, manifest.SourceAccessLog} {
		for i := range all {
			if all[i].Source == source {
				return &all[i]
			}
		}
	}
	return nil
}

// literal is a route that is sent without recorded traffic: patterns are filters then, and would leave
// only GET /, which many services do not have. A health path that was seen is there for certain.
func literal(f Findings, t *Traffic) string {
	if t != nil || len(f.Services) == 0 || f.Services[0].HealthFrom == "" || strings.ContainsAny(f.Services[0].Health, " *{") {
		return ""
	}
	return "    - " + manifest.Text("GET "+f.Services[0].Health) + " # sent without recorded traffic; name the literal routes that matter\n"
}

func renderLoad(b *strings.Builder, f Findings) {
	b.WriteString("load:\n  enabled: true\n")
	if len(f.Services) > 1 {
		fmt.Fprintf(b, "  target: %s # the service that takes the traffic\n", manifest.Text(f.Services[0].Name))
	}
	t := chosen(f.Traffic)
	if t == nil {
		b.WriteString("  # No recorded traffic was found, so the literal read routes of safe_routes are sent in equal parts.\n" +
			"  # With a trace export or an access log, name it:\n" +
			"  # source: otel # or access_log\n  # source_config:\n  #   path: traffic/production.otlp.json\n  source: none\n")
	} else {
		fmt.Fprintf(b, "  source: %s\n  source_config:\n    path: %s\n", t.Source, manifest.Text(t.Path))
		for _, other := range f.Traffic {
			if other != *t {
				fmt.Fprintf(b, "    # also found: %s (%s)\n", oneLineNote(other.Path), other.Source)
			}
		}
		b.WriteString("  scale: 0.1 # share of production's rate\n")
	}
	b.WriteString("  duration: 60s\n" +
		"  # What may be sent: * is one segment, ** the rest. `seatrial traffic show` prints lines to add.\n" +
		"  safe_routes:\n" + literal(f, t) + "    - GET /**\n" +
		"  # Never sent, whatever stands above. Add what charges, deletes or sends mail.\n" +
		"  unsafe_routes:\n    - \"* /logout\"\n    - \"* /admin/**\"\n    - DELETE /**\n" +
		"  thresholds:\n    error_rate: 0.01\n")
	if t != nil && t.Source == manifest.SourceOTel {
		b.WriteString("    p95_increase: 0.25 # against production's own p95 of each route\n")
	}
}
