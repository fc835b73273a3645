// Package intake reads a traffic source, whatever its kind, into a profile.
package intake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"seatrial/traffic"
	"seatrial/traffic/accesslog"
	"seatrial/traffic/input"
	"seatrial/traffic/otlp"
)

// The kinds of source that hold traffic.
const (
	OTel      = "otel"
	AccessLog = "access_log"
)

// Config names what is read.
type Config struct {
	Kind     string   // OTel or AccessLog; empty: recognised by content
	Format   string   // of an access log; empty: recognised by content
	Paths    []string // files and globs, "-" for Stdin
	Dir      string   // relative paths are relative to it
	Stdin    io.Reader
	Declared []string // templates that win over shape and cardinality (TR-22)
	Now      time.Time
}

// Traffic is what a source gave.
type Traffic struct {
	Kind     string
	Profile  *traffic.Profile
	Observed *traffic.Observed // values for placeholders, in memory only
	Skips    *traffic.Skips
	Warning  string // over 5% unparsable (TR-3), or no request at all; empty otherwise
}

// checkEvery is how many events are read between two looks at the context.
const checkEvery = 4096

// Read reads everything, in constant memory. Records that do not parse are counted, not errors; that
// nothing parsed at all is one (TRF-002), and so is an input that cannot be read (TRF-001).
func Read(ctx context.Context, cfg Config) (*Traffic, error) {
	set, err := input.Open(cfg.Paths, cfg.Stdin, cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }()
	kind := cfg.Kind
	if kind == "" {
		if kind, err = recognise(set, cfg.Format); err != nil {
			return nil, err
		}
	}
	builder, err := traffic.NewBuilder(traffic.BuilderConfig{Kind: kind, Declared: cfg.Declared})
	if err != nil {
		return nil, err
	}
	src := source(kind, set, cfg.Format)
	for n := 0; src.Scan(); n++ {
		builder.Add(src.Event())
		if n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err := src.Err(); err != nil {
		return nil, err
	}
	out := &Traffic{Kind: kind, Skips: src.Skipped(), Warning: accesslog.Warning(src.Skipped())}
	out.Profile, out.Observed, err = builder.Finish(out.Skips, cfg.Now)
	if err == nil && out.Profile.Requests == 0 && out.Warning == "" {
		out.Warning = fmt.Sprintf("not one of %d records is a request that could be replayed: a run on this has nothing to send", out.Skips.Read)
	}
	return out, err
}

func source(kind string, set *input.Set, format string) traffic.Source {
	if kind == OTel {
		return otlp.New(set)
	}
	return accesslog.New(set, accesslog.Config{Format: format})
}

// recognise tells a trace export from an access log by its first bytes: JSON holds traces, unless it has
// names of access logs and none of OTLP. Four or more NUL bytes at the head are what log rotation
// leaves; fewer are the length before a message, which the reader of traces names and refuses.
func recognise(set *input.Set, format string) (string, error) {
	if format != "" {
		return AccessLog, nil
	}
	head, err := set.Peek(4096)
	if err != nil {
		return "", err
	}
	if zeros := len(head) - len(bytes.TrimLeft(head, "\x00")); zeros > 0 && zeros < 4 {
		return OTel, nil
	}
	head = bytes.TrimLeft(head, "\x00 \t\r\n\xef\xbb\xbf")
	if len(head) > 0 && (head[0] == '{' || head[0] == '[' && !bytes.HasPrefix(head, []byte("[["))) && !bracketedTime(head) && !jsonLog(head) {
		return OTel, nil
	}
	return AccessLog, nil
}

// bracketedTime tells "[24/Jan/2022" or "[Sat Jan" of a log line from the "[" of a JSON array.
func bracketedTime(head []byte) bool {
	rest := bytes.TrimLeft(head[1:], " \t\r\n")
	return head[0] == '[' && len(rest) > 0 && rest[0] != '{' && rest[0] != ']' && rest[0] != '['
}

// jsonLog tells a JSON access log from a trace export, by the names in its first line or so.
func jsonLog(head []byte) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return bytes.Contains(head, []byte(n)) })
	}
	if has("resourceSpans", "resource_spans", "scopeSpans", `"batches"`, "resourceLogs", "resourceMetrics", "instrumentationLibrarySpans") {
		return false
	}
	return head[0] == '{' && has(`"status`, `"request`, `Request`, `"method"`, `"log":`, `"msg"`, `"message"`, `"response_code"`)
}
