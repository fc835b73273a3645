package plan

import (
	"encoding/base64"
	"strings"

	"seatrial/engine/httpload"
	"seatrial/fault"
	"seatrial/manifest"
)

// maxSecret bounds a secret's file in bytes.
const maxSecret = 64 << 10

// headers builds the header lines that every request carries. Values that came from the environment
// or a file, or stand under a name that says so, are secrets: they are never in an error, and the
// plan's digest does not cover them.
func (c *compiler) headers() {
	for _, name := range sortedKeys(c.load.Headers) {
		path := "load.headers." + name
		value, fromEnv, ok := c.substitute(path, c.load.Headers[name])
		if !ok {
			continue
		}
		secret := fromEnv || manifest.Sensitive(name)
		c.header(name, value, secret)
	}
	c.auth()
}

func (c *compiler) header(name, value string, secret bool) {
	p := c.plan
	p.Headers = append(p.Headers, httpload.Header{Name: name, Value: value})
	p.hidden = append(p.hidden, secret)
	if secret && value != "" {
		p.secrets = append(p.secrets, value)
	}
}

// substitute replaces ${env:NAME}; the manifest has checked that nothing else stands there.
func (c *compiler) substitute(path, text string) (out string, fromEnv, ok bool) {
	for {
		before, after, found := strings.Cut(text, "${env:")
		if !found {
			return out + text, fromEnv, true
		}
		name, rest, _ := strings.Cut(after, "}")
		value := c.in.Getenv(name)
		if value == "" || !headerSafe(value) {
			c.problem(fault.MAN004, path, "the environment variable %s is not set, or is not one line of text (%s takes it)", name, path)
			return "", true, false
		}
		out, text, fromEnv = out+before+value, rest, true
	}
}

// auth adds the Authorization header.
func (c *compiler) auth() {
	a := c.load.Auth
	if a == nil {
		return
	}
	path, s := "load.auth.bearer", a.Bearer
	if s == nil {
		path, s = "load.auth.basic", a.Basic
	}
	value, ok := c.secret(path, s)
	if !ok {
		return
	}
	if a.Bearer != nil {
		c.header("Authorization", "Bearer "+value, true)
		c.plan.secrets = append(c.plan.secrets, value)
		return
	}
	_, password, found := strings.Cut(value, ":")
	if !found {
		c.problem(fault.MAN004, path, "%s must be of the form user:password", path)
		return
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	c.header("Authorization", "Basic "+encoded, true)
	c.plan.secrets = append(c.plan.secrets, encoded, value)
	if password != "" {
		c.plan.secrets = append(c.plan.secrets, password)
	}
}

// secret reads a secret from where the manifest says. Its value is never part of a message.
func (c *compiler) secret(path string, s *manifest.Secret) (string, bool) {
	value, from := "", "the environment variable "+s.Env
	if s.Env != "" {
		value = c.in.Getenv(s.Env)
	} else {
		from = "the file " + s.File
		b, err := readFile(c.m.Resolve(s.File), maxSecret)
		if err != nil {
			c.problem(fault.MAN004, path+".file", "%s cannot be read (%s takes it)", from, path).Cause = err
			return "", false
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	}
	switch {
	case value == "":
		c.problem(fault.MAN004, path, "%s is not set or empty (%s takes it)", from, path)
		return "", false
	case !headerSafe(value):
		c.problem(fault.MAN004, path, "%s does not hold one line of text (%s takes it)", from, path)
		return "", false
	}
	return value, true
}

// headerSafe tells whether a value can stand in a header line.
func headerSafe(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return (r < ' ' && r != '\t') || r == 0x7f })
}

// Secrets are the values that must never be written anywhere, for the redactor.
func (p *Plan) Secrets() []string { return append([]string(nil), p.secrets...) }
