// Package manifest holds the words that a person writes in seatrial.yaml: typed, with defaults
// filled in, without behaviour. Reading, positions and refusals are in read.go and its neighbours;
// the struct tags below are also what the JSON Schema and docs/manifest.md are made from.
package manifest

import "time"

// Version is the manifest version that this build reads.
const Version = 1

// File is the name under which a manifest is looked for in a folder.
const File = "seatrial.yaml"

// The load sources that this build reads.
const (
	SourceOTel      = "otel"
	SourceAccessLog = "access_log"
	SourceLoki      = "loki"
	SourceNone      = "none"
)

// Manifest is the effective configuration: what was written, with every default filled in.
type Manifest struct {
	Version  int                `yaml:"version" jsonschema:"enum=1,default=1" jsonschema_description:"Version of the manifest's own shape."`
	Name     string             `yaml:"name" jsonschema_description:"Name of the project in reports; default: the name of the manifest's folder."`
	Services map[string]Service `yaml:"services" jsonschema_description:"The processes that make up an environment, by name."`
	Targets  map[string]Target  `yaml:"targets" jsonschema_description:"Places outside an environment that load may go to, by name."`
	Load     Load               `yaml:"load" jsonschema_description:"What is sent, how much of it, and what must hold."`

	Dir     string            `yaml:"-"` // absolute folder of the manifest
	Origins map[string]Origin `yaml:"-"` // by dotted path, e.g. "load.thresholds.error_rate": where each value came from

	src source // for positions in the problems that later stages find
}

// Origin tells where a value came from.
type Origin struct {
	From   string // "default", "manifest", "flag"
	Line   int    // 1-based, 0 unless From is "manifest"
	Column int    // 1-based, in characters
	Why    string // for defaults: why this one, e.g. "source otel carries durations"; for flags: the flag
}

// Service is one process of the environment (EN-1). Run and Build are shell command lines; ${PORT},
// ${service.NAME.url} and ${env:NAME} are substituted in Run, Build and Env.
type Service struct {
	Build     string            `yaml:"build" jsonschema_description:"Shell command that builds the service, in the manifest's folder; empty: nothing to build."`
	Run       string            `yaml:"run" jsonschema:"required" jsonschema_description:"Shell command that runs the service. ${PORT}, ${service.NAME.url} and ${env:NAME} are substituted."`
	Port      int               `yaml:"port" jsonschema:"minimum=0,maximum=65535,default=0" jsonschema_description:"Port the service listens on; 0: a free one is chosen and given as ${PORT}."`
	Health    Health            `yaml:"health" jsonschema_description:"How the service is known to be ready: a path, or a mapping."`
	Env       map[string]string `yaml:"env" seatrial:"text" jsonschema_description:"Environment variables; the same substitutions as in run."`
	DependsOn []string          `yaml:"depends_on" jsonschema_description:"Services that must be ready before this one starts."`
	Replicas  int               `yaml:"replicas" jsonschema:"minimum=1,maximum=1000,default=1" jsonschema_description:"How many copies run."`
	Resources Resources         `yaml:"resources" jsonschema_description:"What the service may use."`
}

// Health is how a service is known to be ready. Written as a path ("/healthz") or as a mapping.
type Health struct {
	Path    string        `yaml:"path" jsonschema:"default=/" jsonschema_description:"Path that answers 2xx once the service is ready."`
	Timeout time.Duration `yaml:"timeout" jsonschema:"default=60s" jsonschema_description:"How long to wait for it."`
}

// Resources are what a service may use.
type Resources struct {
	CPU    float64 `yaml:"cpu" jsonschema:"minimum=0,default=0" jsonschema_description:"Cores; 0: no limit."`
	Memory string  `yaml:"memory" jsonschema_description:"Memory, such as 512MiB; empty: no limit."`
}

// Target is an admitted target (SA-2). In this version only loopback URLs are admitted.
type Target struct {
	URL     string `yaml:"url" jsonschema:"required" jsonschema_description:"Scheme, host and port, such as http://127.0.0.1:8080, or unix:///path/of.sock; only loopback addresses and Unix sockets are admitted in this version."`
	MaxRate Rate   `yaml:"max_rate" jsonschema:"required" jsonschema_description:"The most requests per second that may be sent there, over all workers."`
}

// Rate is requests per second, written "500/s", "30/m" or a bare number per second.
type Rate float64

// Load is the load block.
type Load struct {
	Enabled      bool          `yaml:"enabled" jsonschema:"default=false" jsonschema_description:"Whether ci runs load."`
	Source       string        `yaml:"source" jsonschema:"enum=otel,enum=access_log,enum=loki,enum=none,default=none" jsonschema_description:"Where the shape of the traffic comes from."`
	SourceConfig SourceConfig  `yaml:"source_config" jsonschema_description:"Where the source's files are, or what is asked of a log server."`
	Target       string        `yaml:"target" jsonschema_description:"A name under services or targets; default: the only one."`
	Scale        float64       `yaml:"scale" jsonschema:"default=1" jsonschema_description:"Share of production's rate to send; a smoke uses 0.1, but 1 under source none."`
	Rate         Rate          `yaml:"rate" jsonschema:"default=0" jsonschema_description:"Requests per second in place of production's rate times scale; 0: not set."`
	Duration     time.Duration `yaml:"duration" jsonschema:"default=60s" jsonschema_description:"Length of the judged part of a run."`
	Warmup       time.Duration `yaml:"warmup" jsonschema:"default=5s" jsonschema_description:"Length of the part that is sent first and not judged; a smoke has none."`
	Arrivals     string        `yaml:"arrivals" jsonschema:"enum=poisson,enum=even,enum=bursty,default=poisson" jsonschema_description:"The arrival process."`
	Engine       string        `yaml:"engine" jsonschema:"enum=auto,enum=loop,enum=portable,default=auto" jsonschema_description:"What sends: the event loop (Linux), or the portable engine; auto is the loop where there is one."`
	Precise      bool          `yaml:"precise" jsonschema:"default=false" jsonschema_description:"Whether the event loop stays awake before a due time; it costs whole cores."`
	HTTP         string        `yaml:"http" seatrial:"text" jsonschema:"enum=auto,enum=1.1,enum=2,enum=2-prior-knowledge,enum=3,default=auto" jsonschema_description:"The version of HTTP. auto is 2 or 1.1, as the TLS handshake agrees, and 1.1 without TLS. 2 is agreed on in a TLS handshake; without TLS give 2-prior-knowledge."`
	Seed         uint64        `yaml:"seed" jsonschema:"default=1" jsonschema_description:"The same seed gives the same sequence of requests."`

	Timeout          time.Duration `yaml:"timeout" jsonschema:"default=10s" jsonschema_description:"Per request, from its due time."`
	ConnectTimeout   time.Duration `yaml:"connect_timeout" jsonschema_description:"For opening a connection; default: timeout."`
	TLSTimeout       time.Duration `yaml:"tls_timeout" jsonschema_description:"For the TLS handshake; default: timeout."`
	FirstByteTimeout time.Duration `yaml:"first_byte_timeout" jsonschema_description:"For the first byte of the response; default: timeout."`
	MaxConnections   int           `yaml:"max_connections" jsonschema:"minimum=1,maximum=1000000,default=1000" jsonschema_description:"Connections open at once."`

	Connections Connections `yaml:"connections" jsonschema_description:"When connections are opened besides those that requests need, and how."`
	TLS         TLS         `yaml:"tls" jsonschema_description:"How connections of an https target are made and proved."`

	SafeRoutes   []string   `yaml:"safe_routes" jsonschema_description:"What may be sent: METHOD /path, where * is one segment and ** the rest. Every route is unsafe until it is named."`
	UnsafeRoutes []string   `yaml:"unsafe_routes" jsonschema_description:"What is never sent, whatever safe_routes says."`
	Traffic      Traffic    `yaml:"traffic" jsonschema_description:"The committed traffic profile."`
	Thresholds   Thresholds `yaml:"thresholds" jsonschema_description:"The limits that are judged."`
	Abort        Abort      `yaml:"abort" jsonschema_description:"When a run ends early."`

	Headers map[string]string           `yaml:"headers" seatrial:"text" jsonschema_description:"Headers of every request; ${env:NAME} is substituted."`
	Auth    *Auth                       `yaml:"auth" jsonschema_description:"Credentials of every request; never stored."`
	Host    string                      `yaml:"host" jsonschema_description:"Host header; default: the target's own."`
	Trace   float64                     `yaml:"trace" jsonschema:"minimum=0,maximum=1,default=0" jsonschema_description:"Share of requests whose traceparent is marked sampled."`
	Params  map[string]map[string]Param `yaml:"params" jsonschema_description:"Values for placeholders, by route and placeholder."`

	Requests map[string]Request `yaml:"requests" jsonschema_description:"What a route's requests carry and what its answers must be, by route."`
}

// Connections tells when connections are opened (EG-9). At most one of Share and Rate is set, and
// neither with per_request.
type Connections struct {
	Reuse    string   `yaml:"reuse" jsonschema:"enum=keepalive,enum=per_request,default=keepalive" jsonschema_description:"Whether connections are kept for further requests, or each request has one of its own."`
	Share    float64  `yaml:"share" jsonschema:"minimum=0,maximum=1,default=0" jsonschema_description:"Share of requests that are sent on a connection opened for them."`
	Rate     Rate     `yaml:"rate" jsonschema:"default=0" jsonschema_description:"New connections per second by a schedule of their own, whatever the requests do; 0: none."`
	Arrivals string   `yaml:"arrivals" jsonschema:"enum=poisson,enum=even,default=poisson" jsonschema_description:"The arrival process of that schedule."`
	Resume   float64  `yaml:"resume" jsonschema:"minimum=0,maximum=1,default=1" jsonschema_description:"Share of TLS handshakes that resume a session where one is known."`
	Streams  int      `yaml:"streams" jsonschema:"minimum=1,maximum=10000,default=100" jsonschema_description:"Requests on one connection at once, for HTTP/2 and HTTP/3; the target's own limit counts too."`
	Bind     []string `yaml:"bind" seatrial:"one_or_many" jsonschema_description:"Local addresses that connections are opened from, in turn; default: the system's choice."`
}

// TLS tells how connections of an https target are made and proved.
type TLS struct {
	CA         string `yaml:"ca" jsonschema_description:"Path of a file of certificates, in PEM, that are trusted in place of the system's, relative to the manifest's folder."`
	Cert       string `yaml:"cert" jsonschema_description:"Path of the client's own certificate, in PEM."`
	Key        string `yaml:"key" jsonschema_description:"Path of its private key, in PEM; never stored."`
	ServerName string `yaml:"server_name" jsonschema_description:"The name that the certificate must be for; default: that of the Host header."`
	Insecure   bool   `yaml:"insecure" jsonschema:"default=false" jsonschema_description:"Whether any certificate is accepted; the report says so."`
	Min        string `yaml:"min" seatrial:"text" jsonschema:"enum=1.2,enum=1.3,default=1.2" jsonschema_description:"The lowest version of TLS."`
	Max        string `yaml:"max" seatrial:"text" jsonschema:"enum=1.2,enum=1.3,default=1.3" jsonschema_description:"The highest version of TLS."`
}

// Request tells what a route's requests carry and what its answers must be.
type Request struct {
	Headers map[string]string `yaml:"headers" seatrial:"text" jsonschema_description:"Headers of these requests, besides those of load.headers; ${env:NAME} is substituted."`
	Body    string            `yaml:"body" jsonschema_description:"The body, as text; ${env:NAME} is substituted."`
	JSON    *JSON             `yaml:"json" jsonschema_description:"The body, as any value, sent as JSON."`
	Expect  Expect            `yaml:"expect" jsonschema_description:"What each answer must be; another one is an error, check_failed."`
}

// JSON is a value of any shape, as the JSON text that is sent.
type JSON string

// Expect tells what an answer must be.
type Expect struct {
	Status       []int             `yaml:"status" seatrial:"one_or_many" jsonschema_description:"The status, or a list of those that are right."`
	Header       map[string]string `yaml:"header" seatrial:"text" jsonschema_description:"Headers with their values."`
	BodyContains []string          `yaml:"body_contains" seatrial:"one_or_many" jsonschema_description:"Text that the body must hold as it is sent, or a list of such."`
	MinBytes     int64             `yaml:"min_bytes" jsonschema:"minimum=0,default=0" jsonschema_description:"The least length of the body."`
	MaxBytes     int64             `yaml:"max_bytes" jsonschema:"minimum=0,default=0" jsonschema_description:"The greatest length of the body; 0: no limit of its own."`
}

// SourceConfig tells where the source's files are, or under source loki what is asked of a log server.
// Path is one path or glob or a list of them; "-" is standard input.
type SourceConfig struct {
	Path   []string `yaml:"path" seatrial:"one_or_many" jsonschema_description:"A path or glob, or a list of them, relative to the manifest's folder; - is standard input."`
	Format string   `yaml:"format" jsonschema_description:"Format of an access log: a name, or the format string of NGINX or Apache (docs/log-formats.md); empty: recognised by its content."`

	Server      string        `yaml:"server" jsonschema:"enum=,enum=loki,enum=victorialogs" jsonschema_description:"Under source loki: the kind of server; empty: loki."`
	URL         string        `yaml:"url" jsonschema_description:"Under source loki: the server, such as http://loki:3100."`
	Query       string        `yaml:"query" jsonschema_description:"Under source loki: the LogQL, or LogsQL, that selects the lines of access logs."`
	From        string        `yaml:"from" jsonschema_description:"Under source loki: the first instant that is read, as in 2026-01-31T09:00:00Z."`
	To          string        `yaml:"to" jsonschema_description:"Under source loki: the instant before which reading ends; empty: now."`
	Since       time.Duration `yaml:"since" jsonschema_description:"Under source loki: how long before to it begins, in place of from."`
	Tenant      string        `yaml:"tenant" seatrial:"text" jsonschema_description:"Under source loki: X-Scope-OrgID; account:project of VictoriaLogs."`
	UserEnv     string        `yaml:"user_env" jsonschema_description:"Under source loki: the environment variable that holds the user."`
	PasswordEnv string        `yaml:"password_env" jsonschema_description:"Under source loki: the environment variable that holds the password."`
	BearerEnv   string        `yaml:"bearer_env" jsonschema_description:"Under source loki: the environment variable that holds a bearer token, in place of user and password."`
	BatchSize   int           `yaml:"batch_size" jsonschema:"minimum=0,maximum=1000000" jsonschema_description:"Under source loki: entries asked for at once; 0: as many as servers allow as a rule, 5000."`
}

// Traffic names the committed profile.
type Traffic struct {
	Profile string        `yaml:"profile" jsonschema_description:"Path of the profile that traffic record wrote, relative to the manifest's folder."`
	MaxAge  time.Duration `yaml:"max_age" jsonschema:"default=336h" jsonschema_description:"A profile older than this is refused."`
	Routes  []string      `yaml:"routes" jsonschema_description:"Path templates, such as /shop/{category}/{slug}, that win over what is recognised."`
}

// Thresholds are the declared limits. P95Increase is nil when it is neither set nor defaulted.
type Thresholds struct {
	P95Increase         *float64 `yaml:"p95_increase" jsonschema:"minimum=0,maximum=1000" jsonschema_description:"How much slower than its baseline a route's p95 may be, as a share; default: 0.25 under source otel, else none."`
	ErrorRate           *float64 `yaml:"error_rate" jsonschema:"minimum=0,maximum=1,default=0.01" jsonschema_description:"The share of requests that may fail."`
	ClientErrorIncrease *float64 `yaml:"client_error_increase" jsonschema:"minimum=0,maximum=1,default=0.05" jsonschema_description:"How far a route's share of 4xx may exceed production's, in absolute points."`
}

// Abort ends a run early (LD-9).
type Abort struct {
	ErrorRate float64       `yaml:"error_rate" jsonschema:"minimum=0,maximum=1,default=0.5" jsonschema_description:"The run ends early when the error rate stays over this share."`
	For       time.Duration `yaml:"for" jsonschema:"default=30s" jsonschema_description:"For how long it must stay over it."`
}

// Auth is sent with each request and never stored. Exactly one of Bearer and Basic is set.
type Auth struct {
	Bearer *Secret `yaml:"bearer" jsonschema_description:"Where the bearer token is."`
	Basic  *Secret `yaml:"basic" jsonschema_description:"Where user:password is."`
}

// Secret is read from an environment variable or a file, never from the manifest itself.
type Secret struct {
	Env  string `yaml:"env" jsonschema_description:"Name of an environment variable."`
	File string `yaml:"file" jsonschema_description:"Path of a file, relative to the manifest's folder; one final newline is cut."`
}

// Param gives values for one placeholder; exactly one of Values, File and Int is set (TR-51).
type Param struct {
	Values []string  `yaml:"values" seatrial:"text" jsonschema_description:"The values themselves."`
	File   string    `yaml:"file" jsonschema_description:"Path of a file with one value on each line."`
	Int    *IntRange `yaml:"int" jsonschema_description:"Whole numbers from min to max."`
	Pick   string    `yaml:"pick" jsonschema:"enum=uniform,enum=zipf,enum=observed,default=uniform" jsonschema_description:"How values are picked; observed: as often as production's values came again, which the profile or the source tells."`
}

// IntRange is inclusive on both ends.
type IntRange struct {
	Min int64 `yaml:"min" jsonschema:"required" jsonschema_description:"Least value."`
	Max int64 `yaml:"max" jsonschema:"required" jsonschema_description:"Greatest value."`
}
