// Package logformat knows the formats of access logs: their names, what each holds, and the format
// strings of NGINX (log_format) and Apache (LogFormat), which it compiles into matchers of lines.
package logformat

import (
	"strings"

	"seatrial/fault"
)

// Format is a format that has a name.
type Format struct {
	Name     string // as a user writes it and as it is reported
	Means    string // for people, e.g. "an AWS Application Load Balancer's log"
	Duration bool   // it holds how long each request took
}

// Named lists the formats that have a name, the usual ones first.
func Named() []Format {
	return []Format{
		{"common", "the common log format", false},
		{"combined", "the combined log format", false},
		{"vhost_combined", "combined with the virtual host in front", false},
		{"ingress_nginx", "combined with the fields of ingress-nginx behind", true},
		{"nginx_proxy_manager", "the log of Nginx Proxy Manager", false},
		{"json", "JSON lines with names that are known", true},
		{"nginx_json", "JSON lines that an NGINX log_format writes", true},
		{"caddy", "Caddy's JSON log", true},
		{"traefik", "Traefik's JSON log", true},
		{"traefik_clf", "Traefik's text log", true},
		{"envoy", "Envoy's log, as JSON or as text", true},
		{"cloudflare", "Cloudflare's Logpush of HTTP requests", true},
		{"linkerd", "the JSON log of Linkerd's proxy", true},
		{"haproxy", "HAProxy's HTTP log", true},
		{"alb", "the log of an AWS load balancer", true},
		{"cloudfront", "the log of AWS CloudFront", true},
		{"w3c", "a W3C extended log, such as that of IIS", true},
		{"uwsgi", "the request log of uWSGI", true},
		{"zoraxy", "the log of Zoraxy", false},
	}
}

// Names lists the names alone.
func Names() []string {
	var out []string
	for _, f := range Named() {
		out = append(out, f.Name)
	}
	return out
}

// Canonical is the name of a format under which it is listed; other spellings that people use are known
// too. A name that is not known comes back as it is.
func Canonical(name string) string {
	switch low := strings.ReplaceAll(strings.ToLower(name), "-", "_"); low {
	case "iis":
		return "w3c"
	case "ingress":
		return "ingress_nginx"
	case "npm":
		return "nginx_proxy_manager"
	case "clf":
		return "common"
	case "elb":
		return "alb"
	default:
		if _, ok := find(low); ok {
			return low
		}
		return name
	}
}

func find(name string) (Format, bool) {
	for _, f := range Named() {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// IsTemplate tells a format string from a name.
func IsTemplate(format string) bool { return strings.ContainsAny(format, "$%") }

// Check refuses a format that is not read: by name with those that are, or with what is wrong with a
// format string (TRF-004). The empty format means recognition by content, and is fine.
func Check(format string) error {
	if format == "" {
		return nil
	}
	if IsTemplate(format) {
		_, err := Compile(format)
		return err
	}
	if _, ok := find(Canonical(format)); ok {
		return nil
	}
	return fault.New(fault.TRF004, "the log format %q is not known; those that are read are %s, and the format strings of NGINX (with $) and Apache (with %%)",
		format, strings.Join(Names(), ", "))
}

// HasDuration tells whether the lines of a format hold how long each request took. It is false for the
// empty format, of which nothing is known before the lines are read, and for one that Check refuses.
func HasDuration(format string) bool {
	if IsTemplate(format) {
		t, err := Compile(format)
		return err == nil && t.duration()
	}
	f, ok := find(Canonical(format))
	return ok && f.Duration
}
