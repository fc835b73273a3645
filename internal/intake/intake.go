// Package intake reads a traffic source, whatever its kind, into a profile.
package intake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/accesslog"
	"seatrial/traffic/input"
	"seatrial/traffic/loki"
	"seatrial/traffic/otlp"
)

// The kinds of source that hold traffic.
const (
	OTel      = "otel"
	AccessLog = "access_log"
	Loki      = "loki" // access logs that a log server holds
)

// Config names what is read.
type Config struct {
	Kind     string   // OTel, AccessLog or Loki; empty: recognised by content
	Format   string   // of an access log; empty: recognised by content
	Paths    []string // files and globs, "-" for Stdin; none under Loki
	Loki     loki.Config
	Dir      string // relative paths are relative to it
	Stdin    io.Reader
	Declared []string                  // templates that win over shape and cardinality (TR-22)
	NoValues bool                      // keep no value of a placeholder: nothing is to be sent
	Salt     []byte                    // secret that values are hashed under; nil: random, and gone afterwards
	Replay   bool                      // requests that were recorded one by one are a source too
	Wanted   func(unixNano int64) bool // which requests are taken, by their time; nil: all
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

// Counted is what a source gave, before a profile is made of it.
type Counted struct {
	Kind    string
	Builder *traffic.Builder
	Skips   *traffic.Skips
	Warning string // as Traffic.Warning
}

// checkEvery is how many events are read between two looks at the context.
const checkEvery = 4096

// Read is Count, with a profile made of it.
func Read(ctx context.Context, cfg Config) (*Traffic, error) {
	c, err := Count(ctx, cfg)
	if err != nil {
		return nil, err
	}
	out := &Traffic{Kind: c.Kind, Skips: c.Skips, Warning: c.Warning}
	out.Profile, out.Observed, err = c.Builder.Finish(c.Skips, cfg.Now)
	if err == nil && out.Warning == "" {
		out.Warning = Empty(out.Profile.Requests, out.Skips)
	}
	return out, err
}

// Empty is the warning about a source without a request; empty when it has one.
func Empty(requests uint64, skips *traffic.Skips) string {
	if requests > 0 {
		return ""
	}
	return fmt.Sprintf("not one of %d records is a request that could be replayed: a run on this has nothing to send", skips.Read)
}

// Merge makes the profile of partial recordings. The paths are relative to dir, and named in messages
// as they stand. With a salt, each must have been recorded under it.
func Merge(ctx context.Context, dir string, paths []string, salt []byte, now time.Time) (*Traffic, error) {
	m := traffic.NewMerger()
	for _, path := range paths {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at := path
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		p, err := traffic.ReadPartialFile(at, path)
		if err != nil {
			return nil, err
		}
		if salt != nil && !p.Under(salt) {
			return nil, fault.New(fault.TRF003, "the partial recording %s was recorded under another salt than the one that is given", path).
				WithNext("Give the salt that the parts share, or leave --salt-file out.")
		}
		if err := m.Add(p); err != nil {
			return nil, err
		}
	}
	profile, skips, err := m.Finish(now)
	if err != nil {
		return nil, err
	}
	out := &Traffic{Kind: profile.Source.Kind, Profile: profile, Skips: skips, Warning: accesslog.Warning(skips)}
	if out.Warning == "" {
		out.Warning = Empty(profile.Requests, skips)
	}
	return out, nil
}

// Count reads everything, in constant memory. Records that do not parse are counted, not errors; that
// nothing parsed at all is one (TRF-002), and so is an input that cannot be read (TRF-001).
func Count(ctx context.Context, cfg Config) (*Counted, error) {
	src, err := open(ctx, cfg, false)
	if err != nil {
		return nil, err
	}
	defer src.close()
	shape := traffic.BuilderConfig{Kind: src.kind, Declared: cfg.Declared, Salt: cfg.Salt}
	if cfg.NoValues {
		shape.Keep = -1
	}
	builder, err := traffic.NewBuilder(shape)
	if err != nil {
		return nil, err
	}
	for n := 0; src.Scan(); n++ {
		if e := src.Event(); cfg.Wanted == nil || cfg.Wanted(e.UnixNano) {
			builder.Add(e)
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err := src.Err(); err != nil {
		return nil, err
	}
	return &Counted{Kind: src.kind, Builder: builder, Skips: src.Skipped(), Warning: accesslog.Warning(src.Skipped())}, nil
}

// recognise tells a trace export from an access log by its first bytes: JSON holds traces, unless it has
// names of access logs and none of OTLP, and so does what is binary as protobuf is. Four or more NUL bytes at
// the head are what log rotation leaves; fewer are the length before a message, which the reader of traces
// names and refuses. saved says that the lines of a log stand in what a log server's tool wrote.
func recognise(set *input.Set, format string) (kind string, saved loki.Format, err error) {
	head, err := set.Peek(4096)
	if err != nil {
		return "", loki.Unknown, err
	}
	if otlp.Binary(head) && format == "" {
		return OTel, loki.Unknown, nil
	}
	if saved = loki.Recognise(head); saved != loki.Unknown || format != "" {
		return AccessLog, saved, nil
	}
	head = bytes.TrimLeft(head, "\x00 \t\r\n\xef\xbb\xbf")
	if len(head) > 0 && (head[0] == '{' || head[0] == '[' && !bytes.HasPrefix(head, []byte("[["))) && !bracketedTime(head) && !jsonLog(head) {
		return OTel, loki.Unknown, nil
	}
	return AccessLog, loki.Unknown, nil
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
