package manifest

import (
	"net/url"
	"strings"
	"time"

	"seatrial/fault"
)

// Range is from when to when a log server is asked; To is zero where it is now, From where Since says
// it. It is what the checks have found to be readable.
func (s *SourceConfig) Range() (from, to time.Time) {
	from, _ = time.Parse(time.RFC3339Nano, s.From) // checked when the manifest was read
	to, _ = time.Parse(time.RFC3339Nano, s.To)
	return from, to
}

// onlyLoki refuses keys that ask a log server, under a source that is none.
func (c *checker) onlyLoki(l *Load) {
	for _, key := range []string{"server", "url", "query", "from", "to", "since", "tenant", "user_env", "password_env", "bearer_env", "batch_size"} {
		if path := "load.source_config." + key; c.given(path) {
			c.say(fault.MAN004, path, "%s is for source loki; load.source is %s", path, l.Source)
		}
	}
}

// loki checks what is asked of a log server.
func (c *checker) loki(s *SourceConfig) {
	const at = "load.source_config"
	if len(s.Path) > 0 && !c.m.Flagged("load.source") {
		c.say(fault.MAN004, at+".path", "%s.path names files, and source loki asks a server; name entries that were saved under access_log", at)
	}
	if s.Server != "" {
		c.oneOf(at+".server", s.Server, "loki", "victorialogs")
	}
	c.lokiURL(at+".url", s.URL)
	if strings.TrimSpace(s.Query) == "" && c.legible(at+".query") {
		c.say(fault.MAN004, "load.source", "%s.query is needed by source loki", at)
	}
	c.lokiRange(at, s)
	if s.BearerEnv != "" && s.UserEnv+s.PasswordEnv != "" {
		c.say(fault.MAN004, at+".bearer_env", "%s sets both bearer_env and a user; set one of them", at)
	}
	if s.BearerEnv == "" && (s.UserEnv == "") != (s.PasswordEnv == "") {
		c.say(fault.MAN004, "load.source", "%s must set user_env and password_env together", at)
	}
	for key, name := range map[string]string{".user_env": s.UserEnv, ".password_env": s.PasswordEnv, ".bearer_env": s.BearerEnv} {
		if name != "" && !word(name) {
			c.say(fault.MAN004, at+key, "%s%s must be the name of an environment variable", at, key)
		}
	}
	if c.legible(at + ".batch_size") {
		within(c, at+".batch_size", s.BatchSize, 0, 1_000_000)
	}
}

func (c *checker) lokiURL(path, text string) {
	u, err := url.Parse(text)
	switch {
	case text == "" && c.legible(path):
		c.say(fault.MAN004, "load.source", "%s is needed by source loki", path)
	case text == "":
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		c.say(fault.MAN004, path, "%s must be http or https with a host, such as http://loki:3100", path)
	case u.User != nil:
		c.say(fault.MAN004, path, "%s must not hold a user name or password; use user_env and password_env", path)
	case u.RawQuery != "" || u.Fragment != "":
		c.say(fault.MAN004, path, "%s must end before the question mark; the query stands apart", path)
	}
}

func (c *checker) lokiRange(at string, s *SourceConfig) {
	for key, text := range map[string]string{".from": s.From, ".to": s.To} {
		if _, err := time.Parse(time.RFC3339Nano, text); text != "" && err != nil {
			c.say(fault.MAN004, at+key, "%s%s must be a time such as 2026-01-31T09:00:00Z", at, key)
			return
		}
	}
	from, to := s.Range()
	switch {
	case c.given(at+".since") && s.From != "":
		c.say(fault.MAN004, at+".since", "%s sets both from and since; set one of them", at)
	case c.given(at + ".since"):
		positive(c, at+".since", s.Since)
	case s.From == "" && c.legible(at+".from") && c.legible(at+".since"):
		c.say(fault.MAN004, "load.source", "%s.from or %s.since is needed by source loki", at, at)
	case s.To != "" && !from.Before(to):
		c.say(fault.MAN004, at+".to", "%s.to must be after %s.from", at, at)
	}
}
