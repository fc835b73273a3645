package accesslog

import "seatrial/traffic/logformat"

// form is one of the formats that lines are recognised as.
type form uint8

const (
	common form = iota
	combined
	vhostCommon
	vhostCombined
	ingress
	traefikCLF
	proxyManager
	jsonOther
	jsonNGINX
	caddy
	traefik
	envoyJSON
	cloudflare
	linkerd
	jsonGoogle
	jsonKong
	envoyText
	haproxy
	alb
	cloudfront
	w3c
	uwsgi
	zoraxy
	template
	forms
)

// told is how a form is reported: its name in Skips.Format, and by what it is known.
type told struct{ name, label, why string }

// formats is the table of forms.
var formats = [forms]told{
	common:        {"common", "common log format", `address, user, [time], "request", status and size`},
	combined:      {"combined", "combined log format", `[time], "request", status, size and "referrer"`},
	vhostCommon:   {"vhost_common", "common with the virtual host in front", "a host stands before the client's address"},
	vhostCombined: {"vhost_combined", "combined with the virtual host in front", "a host stands before the client's address"},
	ingress:       {"ingress_nginx", "ingress-nginx", "behind a combined line stand request length, request time and [upstream]"},
	traefikCLF:    {"traefik_clf", "Traefik's text log", "behind a combined line stand request count, router, server and a time in ms"},
	proxyManager:  {"nginx_proxy_manager", "Nginx Proxy Manager", "[time] stands first, and [Client] and [Length] behind the path"},
	jsonOther:     {"json", "JSON with names that are known", "the lines are JSON objects with a method, a path and a status"},
	jsonNGINX:     {"nginx_json", "nginx JSON", "the lines are JSON objects with the names of NGINX, such as request_uri or request_time"},
	caddy:         {"caddy", "Caddy", "the lines are JSON objects with a request object, status and duration"},
	traefik:       {"traefik", "Traefik JSON", "the lines are JSON objects with RequestPath and DownstreamStatus"},
	envoyJSON:     {"envoy", "Envoy JSON", "the lines are JSON objects with response_code and duration"},
	cloudflare:    {"cloudflare", "Cloudflare Logpush", "the lines are JSON objects with ClientRequestURI and EdgeResponseStatus"},
	linkerd:       {"linkerd", "Linkerd", "the lines are JSON objects with uri and total_ns"},
	jsonGoogle:    {"json_google", "Google Cloud's load balancer", "the lines are JSON objects with httpRequest"},
	jsonKong:      {"json_kong", "Kong", "the lines are JSON objects with request, response and latencies"},
	envoyText:     {"envoy_text", "Envoy's text log", `[time] stands first, then "request", status, flags, sizes and duration`},
	haproxy:       {"haproxy", "HAProxy's HTTP log", "client:port and [accept date], then frontend, backend/server and five timers"},
	alb:           {"alb", "an AWS load balancer's log", "time, balancer, client, target and three processing times"},
	cloudfront:    {"cloudfront", "AWS CloudFront", "fields between tabs, with an edge location"},
	w3c:           {"w3c", "W3C extended", "a #Fields line names the columns"},
	uwsgi:         {"uwsgi", "uWSGI", "the lines begin with [pid: and hold => generated ... bytes in"},
	zoraxy:        {"zoraxy", "Zoraxy", "[router:...] [origin:...] [client: ...] and a request"},
	template:      {"format string", "the format string that was given", "it was named"},
}

// result is what a line turned out to be.
type result uint8

const (
	isRequest result = iota
	noRequest        // a well-formed line whose request cannot be sent
	notAccess        // a well-formed record that tells of no request, such as a server's other messages
	fewFields
	noTime
	badTime
	noQuotes
	noStatus
	badJSON
	cutJSON
	noObject
	noColumns
	noLines
	noTimers
	otherFormat
	noMatch // Source.reason says why
)

// String is the reason that Skips.First shows.
func (r result) String() string {
	switch r {
	case fewFields:
		return "fewer fields than a log line has"
	case noTime:
		return "no [timestamp] after the user"
	case badTime:
		return "the timestamp is not of a form that is known"
	case noQuotes:
		return `no "request" where the format has it`
	case noStatus:
		return "no status and size where the format has them"
	case badJSON:
		return "the line is not JSON"
	case cutJSON:
		return "the line is cut short"
	case noObject:
		return "no JSON object"
	case noColumns:
		return "another number of fields than the #Fields line names"
	case noLines:
		return "no #Fields line stands before"
	case noTimers:
		return "no timers as HAProxy's HTTP log has them"
	case otherFormat:
		return "a line of another format than the one that was named"
	case notAccess:
		return notAccessReason
	case noRequest:
		return noRequestReason
	}
	return "a request"
}

// The keys of Skips.Reasons besides traffic.OwnReason.
const (
	noRequestReason = "no usable request"
	notAccessReason = "not a line about a request"
)

// Formats lists the formats that are read, as a user writes them.
func Formats() []string { return logformat.Names() }

// CheckFormat refuses a format that is not read, by name and with those that are, and a format string
// that says too little (TRF-004).
func CheckFormat(format string) error { return logformat.Check(format) }

// HasDuration tells whether a format, by name or as a format string, holds how long each request took.
func HasDuration(format string) bool { return logformat.HasDuration(format) }

// decoder reads one line, whose prefix is removed, into s.event and sets s.form.
type decoder func(s *Source, line []byte) result

// named gives the decoder of a format that the user named, and the forms that it may find.
func named(name string) (decoder, []form) {
	switch name {
	case "common", "combined", "vhost_combined":
		return (*Source).clf, []form{common, combined, vhostCommon, vhostCombined}
	case "ingress_nginx":
		return (*Source).clf, []form{common, combined, vhostCommon, vhostCombined, ingress}
	case "traefik_clf":
		return (*Source).clf, []form{common, combined, vhostCommon, vhostCombined, traefikCLF}
	case "nginx_proxy_manager":
		return (*Source).npm, []form{proxyManager}
	case "nginx_json":
		return (*Source).json, []form{jsonNGINX, jsonOther}
	case "caddy":
		return (*Source).json, []form{caddy}
	case "traefik":
		return (*Source).json, []form{traefik}
	case "cloudflare":
		return (*Source).json, []form{cloudflare}
	case "linkerd":
		return (*Source).json, []form{linkerd}
	case "envoy":
		return (*Source).envoy, []form{envoyJSON, envoyText}
	case "haproxy":
		return (*Source).haproxy, []form{haproxy}
	case "alb":
		return (*Source).alb, []form{alb}
	case "cloudfront", "w3c":
		return (*Source).w3c, []form{w3c, cloudfront}
	case "uwsgi":
		return (*Source).uwsgi, []form{uwsgi}
	case "zoraxy":
		return (*Source).zoraxy, []form{zoraxy}
	}
	return (*Source).json, nil // any JSON
}

// envoy reads a line of either form.
func (s *Source) envoy(line []byte) result {
	if len(line) > 0 && line[0] == '{' {
		return s.json(line)
	}
	return s.envoyText(line)
}

// allowed tells whether the form of the current line is one that the user named.
func (s *Source) allowed() bool { return s.may(s.form) }

// recognise reads a line of a format that nobody named: as the last good one first, and then as its
// first bytes suggest. The reason of a line that nothing fits is that of the likeliest format.
func (s *Source) recognise(line []byte) result {
	if len(line) == 0 {
		return fewFields
	}
	if line[0] == '{' {
		return s.json(line)
	}
	if s.favourite != nil {
		if r := s.favourite(s, line); r <= noRequest {
			return r
		}
	}
	decode := s.guess(line)
	r := decode(s, line)
	if r <= noRequest {
		s.favourite = decode
		return r
	}
	for _, other := range fallbacks {
		if again := other(s, line); again <= noRequest {
			s.favourite = other
			return again
		}
	}
	return r
}

// fallbacks are the formats that lines without a mark of their own may have.
var fallbacks = [...]decoder{(*Source).clf, (*Source).haproxy, (*Source).alb, (*Source).w3c}

// guess is the likeliest format of a line that is no JSON.
func (s *Source) guess(line []byte) decoder {
	switch c := line[0]; {
	case c == '[' && len(line) > 5 && string(line[:5]) == "[pid:":
		return (*Source).uwsgi
	case c == '[' && len(line) > 5 && isDigit(line[1]) && line[5] == '-':
		return (*Source).envoyText
	case c == '[':
		return (*Source).npm
	case isDigit(c) && len(line) > 10 && line[4] == '/' && line[7] == '/':
		return (*Source).zoraxy
	case s.table.ready || isDigit(c) && len(line) > 11 && line[4] == '-' && line[7] == '-' && line[10] != 'T':
		return (*Source).w3c
	case isBalancer(line):
		return (*Source).alb
	}
	return (*Source).clf
}
