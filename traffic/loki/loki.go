// Package loki reads log lines out of Loki or VictoriaLogs, and out of what logcli printed or either
// server answered. It gives lines in the order of their time, each once; what a line means is for a
// reader of access logs.
package loki

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"seatrial/fault"
)

// Backend is the kind of server that is asked.
type Backend uint8

// The kinds of server.
const (
	Loki         Backend = iota // query is LogQL
	VictoriaLogs                // query is LogsQL
)

// String names the server.
func (b Backend) String() string {
	if b == VictoriaLogs {
		return "VictoriaLogs"
	}
	return "Loki"
}

// The defaults of a Config.
const (
	DefaultBatch    = 5000             // entries; also the most that Loki allows unless it is told otherwise
	DefaultTimeout  = 2 * time.Minute  // of one request
	DefaultAttempts = 6                // at one request
	firstWait       = time.Second / 2  // after the first attempt; doubled after each
	maxWait         = 30 * time.Second // between two attempts, unless the server asks for more
	maxRetryAfter   = 5 * time.Minute  // the most that a server is given when it asks for time
)

// Secret is a text that no formatting shows.
type Secret string

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Config says what is asked, of whom. Secrets come from the caller, which reads them from environment
// variables; they are sent to the URL's own origin and to no other.
type Config struct {
	Backend Backend
	URL     string // of the server, such as http://loki:3100; without /loki/api/v1
	Query   string // a selection of log lines: LogQL without a metric, LogsQL without sort, limit and stats

	// The entries of [From, To) are read. A zero To is now; Since is a From that far before To.
	From, To time.Time
	Since    time.Duration

	Tenant   string // X-Scope-OrgID; "account" or "account:project" of VictoriaLogs
	User     string // of basic authentication
	Password Secret
	Bearer   Secret

	BatchSize int           // entries asked for at once; 0: DefaultBatch
	Timeout   time.Duration // of one request; 0: DefaultTimeout
	Attempts  int           // at one request; 0: DefaultAttempts
	TLS       *tls.Config   // nil: the system's certificates

	// Dial opens connections in place of the network, for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Check tells everything that is wrong with the configuration, as *fault.Error or fault.List
// (TRF-020).
func (c *Config) Check() error {
	var problems fault.List
	say := func(format string, args ...any) {
		problems = append(problems, fault.New(fault.TRF020, format, args...))
	}
	c.checkURL(say)
	if strings.TrimSpace(c.Query) == "" {
		say("there is no query to ask %s for", c.Backend)
	}
	c.checkRange(say)
	c.checkAccess(say)
	if c.BatchSize < 0 || c.Timeout < 0 || c.Attempts < 0 {
		say("the batch size, the timeout and the attempts at %s must not be negative", c.Backend)
	}
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return problems[0]
	}
	return problems
}

func (c *Config) checkURL(say func(string, ...any)) {
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		say("there is no URL of %s", c.Backend)
	case err != nil: // the text is not repeated, as it may hold a password
		say("the URL of %s is not one", c.Backend)
	case u.User != nil:
		say("the URL of %s holds a user name or a password; name environment variables that hold them", c.Backend)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		say("the URL of %s must be http or https with a host, such as http://loki:3100", c.Backend)
	case u.RawQuery != "" || u.Fragment != "":
		say("the URL of %s must end before the question mark: the query is set apart from it", c.Backend)
	}
}

func (c *Config) checkRange(say func(string, ...any)) {
	from, to := c.window(time.Now())
	switch {
	case c.Since < 0:
		say("since must not be negative")
	case c.Since > 0 && !c.From.IsZero():
		say("from and since both say where to begin; set one of them")
	case c.Since == 0 && c.From.IsZero():
		say("nothing says where to begin; set from or since")
	case !from.Before(to):
		say("the range from %s to %s is empty", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	case from.Year() < 1970 || to.Year() > 2261:
		say("the range must lie between the years 1970 and 2261")
	}
}

// window is the range that is read, seen from now.
func (c *Config) window(now time.Time) (from, to time.Time) {
	if from, to = c.From, c.To; to.IsZero() {
		to = now
	}
	if c.Since > 0 {
		from = to.Add(-c.Since)
	}
	return from, to
}

func (c *Config) checkAccess(say func(string, ...any)) {
	if c.Bearer != "" && (c.User != "" || c.Password != "") {
		say("a bearer token and a user name are both set for %s; set one of them", c.Backend)
	}
	if c.User == "" && c.Password != "" {
		say("a password is set for %s without a user name", c.Backend)
	}
	if strings.Contains(c.User, ":") {
		say("a user name of %s cannot hold a colon", c.Backend)
	}
	for name, value := range map[string]string{"user name": c.User, "password": string(c.Password), "bearer token": string(c.Bearer), "tenant": c.Tenant} {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			say("the %s for %s holds a control character, perhaps the end of a line", name, c.Backend)
		}
	}
	if account, project, _ := strings.Cut(c.Tenant, ":"); c.Backend == VictoriaLogs && c.Tenant != "" {
		if !isUint32(account) || !isUint32(project) && strings.Contains(c.Tenant, ":") {
			say("a tenant of VictoriaLogs is written account:project, two whole numbers")
		}
	}
}

func isUint32(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// endpoint is the URL that is asked. Somebody who wrote the whole of it means the same.
func (c *Config) endpoint() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	tail := "/loki/api/v1/query_range"
	if c.Backend == VictoriaLogs {
		tail = "/select/logsql/query"
	}
	base := strings.TrimRight(u.Path, "/")
	for cut := tail; cut != "/" && cut != "."; cut = path.Dir(cut) {
		if strings.HasSuffix(base, cut) && strings.Count(cut, "/") > 1 {
			base = strings.TrimSuffix(base, cut)
			break
		}
	}
	u.Path, u.RawPath = base+tail, ""
	return u, nil
}
