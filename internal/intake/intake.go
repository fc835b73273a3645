// Package intake reads a traffic source, whatever its kind, into a profile.
package intake

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"seatrial/fault"
	"seatrial/traffic"
	"seatrial/traffic/accesslog"
	"seatrial/traffic/input"
	"seatrial/traffic/otlp"
)

// Config names what is read.
type Config struct {
	Kind     string   // otel or access_log; empty: recognised by content
	Format   string   // of an access log; empty: recognised by content
	Paths    []string // files and globs, "-" for Stdin
	Dir      string   // relative paths are relative to it
	Stdin    io.Reader
	Declared []string // templates that win over shape and cardinality (TR-22)
	Now      time.Time
}

// Traffic is what a source gave.
type Traffic struct {
	Profile  *traffic.Profile
	Observed *traffic.Observed // values for placeholders, in memory only
	Skips    *traffic.Skips
	Warning  string // over 5% unparsable (TR-3); empty otherwise
}
