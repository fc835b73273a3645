// Package manifest holds the words that a person writes in seatrial.yaml: typed, with defaults
// filled in, without behaviour. Reading, positions and refusals are in read.go.
package manifest

import "time"

// Version is the manifest version that this build reads.
const Version = 1

// Manifest is the effective configuration: what was written, with every default filled in.
type Manifest struct {
	Version  int                `yaml:"version"`
	Name     string             `yaml:"name"` // default: the folder's name
	Services map[string]Service `yaml:"services"`
	Targets  map[string]Target  `yaml:"targets"`
	Load     Load               `yaml:"load"`

	Dir     string            `yaml:"-"` // absolute folder of the manifest
	Origins map[string]Origin `yaml:"-"` // by dotted path, e.g. "load.thresholds.error_rate": where each value came from
}

// Origin tells where a value came from.
type Origin struct {
	From   string // "default", "manifest", "flag"
	Line   int    // 1-based, 0 unless From is "manifest"
	Column int
	Why    string // for defaults: why this one, e.g. "source otel carries durations"
}

// Service is one process of the environment (EN-1). Run and Build are shell command lines; ${PORT},
// ${service.NAME.url} and ${env:NAME} are substituted in Run, Build and Env.
type Service struct {
	Build     string            `yaml:"build"`
	Run       string            `yaml:"run"`
	Port      int               `yaml:"port"` // 0: a free one is chosen
	Health    Health            `yaml:"health"`
	Env       map[string]string `yaml:"env"`
	DependsOn []string          `yaml:"depends_on"`
	Replicas  int               `yaml:"replicas"` // default 1
	Resources Resources         `yaml:"resources"`
}

// Health is how a service is known to be ready. Written as a path ("/healthz") or as a mapping.
type Health struct {
	Path    string        `yaml:"path"`    // default "/"
	Timeout time.Duration `yaml:"timeout"` // default 60s
}

// Resources are what a service may use.
type Resources struct {
	CPU    float64 `yaml:"cpu"`    // cores; 0: no limit
	Memory string  `yaml:"memory"` // e.g. "512MiB"; empty: no limit
}

// Target is an admitted target (SA-2). In this version only loopback URLs are admitted.
type Target struct {
	URL     string `yaml:"url"`
	MaxRate Rate   `yaml:"max_rate"`
}

// Rate is requests per second, written "500/s", "30/m" or a bare number per second.
type Rate float64

// Load is the load block.
type Load struct {
	Enabled      bool          `yaml:"enabled"`
	Source       string        `yaml:"source"` // otel, access_log, none (default)
	SourceConfig SourceConfig  `yaml:"source_config"`
	Target       string        `yaml:"target"`   // a name under services or targets; default: the only one
	Scale        float64       `yaml:"scale"`    // default 1 (smoke: 0.1, but 1 under source none)
	Rate         Rate          `yaml:"rate"`     // 0: production's rate x scale
	Duration     time.Duration `yaml:"duration"` // default 60s
	Warmup       time.Duration `yaml:"warmup"`   // default 5s
	Arrivals     string        `yaml:"arrivals"` // poisson (default), even, bursty
	Seed         uint64        `yaml:"seed"`     // default 1

	Timeout          time.Duration `yaml:"timeout"`            // default 10s, from the due time
	ConnectTimeout   time.Duration `yaml:"connect_timeout"`    // default: timeout
	TLSTimeout       time.Duration `yaml:"tls_timeout"`        // default: timeout
	FirstByteTimeout time.Duration `yaml:"first_byte_timeout"` // default: timeout
	MaxConnections   int           `yaml:"max_connections"`    // default 1000

	SafeRoutes   []string   `yaml:"safe_routes"`
	UnsafeRoutes []string   `yaml:"unsafe_routes"`
	Traffic      Traffic    `yaml:"traffic"`
	Thresholds   Thresholds `yaml:"thresholds"`
	Abort        Abort      `yaml:"abort"`

	Headers map[string]string           `yaml:"headers"`
	Auth    *Auth                       `yaml:"auth"`
	Host    string                      `yaml:"host"`
	Trace   float64                     `yaml:"trace"`  // share of requests whose traceparent is marked sampled; default 0
	Params  map[string]map[string]Param `yaml:"params"` // "GET /orders/{id}": {id: ...}
}

// SourceConfig tells where the source's files are. Path is one path or glob or a list of them;
// "-" is standard input.
type SourceConfig struct {
	Path   []string `yaml:"path"`
	Format string   `yaml:"format"` // empty: recognised by content
}

// Traffic names the committed profile.
type Traffic struct {
	Profile string        `yaml:"profile"`
	MaxAge  time.Duration `yaml:"max_age"` // default 336h
	Routes  []string      `yaml:"routes"`  // templates that win over shape and cardinality (TR-22)
}

// Thresholds are the declared limits. P95Increase is nil when it is neither set nor defaulted.
type Thresholds struct {
	P95Increase         *float64 `yaml:"p95_increase"`
	ErrorRate           *float64 `yaml:"error_rate"`            // default 0.01
	ClientErrorIncrease *float64 `yaml:"client_error_increase"` // default 0.05
}

// Abort ends a run early (LD-9).
type Abort struct {
	ErrorRate float64       `yaml:"error_rate"` // default 0.5
	For       time.Duration `yaml:"for"`        // default 30s
}

// Auth is sent with each request and never stored. Exactly one of Bearer and Basic is set.
type Auth struct {
	Bearer *Secret `yaml:"bearer"` // the token
	Basic  *Secret `yaml:"basic"`  // "user:password"
}

// Secret is read from an environment variable or a file, never from the manifest itself.
type Secret struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
}

// Param gives values for one placeholder; exactly one of Values, File and Int is set (TR-51).
type Param struct {
	Values []string  `yaml:"values"`
	File   string    `yaml:"file"` // one value per line
	Int    *IntRange `yaml:"int"`
	Pick   string    `yaml:"pick"` // uniform (default), zipf
}

// IntRange is inclusive on both ends.
type IntRange struct {
	Min int64 `yaml:"min"`
	Max int64 `yaml:"max"`
}
