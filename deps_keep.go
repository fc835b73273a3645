//go:build keepdeps

package seatrial

import (
	_ "charm.land/bubbletea/v2"
	_ "charm.land/lipgloss/v2"
	_ "github.com/HdrHistogram/hdrhistogram-go"
	_ "github.com/goccy/go-yaml"
	_ "github.com/goccy/go-yaml/parser"
	_ "github.com/invopop/jsonschema"
	_ "github.com/klauspost/compress/gzip"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/cobra/doc"
	_ "go.uber.org/goleak"
	_ "golang.org/x/mod/modfile"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/stat/distuv"
	_ "pgregory.net/rapid"
)
