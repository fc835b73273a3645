package main

import (
	"flag"
	"fmt"
	"io"
)

// Config is everything that can be set. The zero value of each field but Addr switches it off.
type Config struct {
	Addr         string   // host:port to listen on
	Latency      []string // "ROUTE=DIST": added before each answer
	Errors       []string // "ROUTE=SHARE[:STATUS]"
	Stall        []string // "ROUTE=LENGTH@PERIOD"
	Lockup       []string // "ROUTE=after:N"
	Unauthorized bool     // 401 to everything but the health path
	Also         string   // file of further routes to serve, one "METHOD /template" a line
	AccessLog    string   // combined log file
	OTLP         string   // OTLP/JSON Lines file
	Seed         uint64   // of random latencies
}

// list is a flag that may be given several times.
type list []string

// String implements flag.Value.
func (l *list) String() string { return fmt.Sprint([]string(*l)) }

// Set implements flag.Value.
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

const usage = `chandlery serves a small shop for load tests.

  chandlery --addr 127.0.0.1:8080 --latency 'GET /api/search=30ms..50ms' --otlp spans.jsonl

A ROUTE is "METHOD /template" as the shop declares it, e.g. "GET /api/products/{id}", or * for all
routes but the health path. A rule for one route wins over *. The flags marked + may be repeated.
`

// parse reads the command line. PORT in the environment chooses the port when --addr is not given.
func parse(args []string, getenv func(string) string, errOut io.Writer) (Config, error) {
	cfg := Config{Addr: "127.0.0.1:8080"}
	if p := getenv("PORT"); p != "" {
		cfg.Addr = "127.0.0.1:" + p
	}
	fs := flag.NewFlagSet("chandlery", flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.Usage = func() {
		_, _ = io.WriteString(errOut, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&cfg.Addr, "addr", cfg.Addr, "`host:port` to listen on; PORT in the environment sets the port")
	fs.Var((*list)(&cfg.Latency), "latency", "+ `ROUTE=DIST`: wait before each answer; 40ms, 30ms..50ms (uniform) or exp:20ms (exponential)")
	fs.Var((*list)(&cfg.Errors), "errors", "+ `ROUTE=SHARE[:STATUS]`: answer that share with STATUS (default 500), evenly spread, e.g. 0.1:503")
	fs.Var((*list)(&cfg.Stall), "stall", "+ `ROUTE=LENGTH@PERIOD`: in the last LENGTH of each PERIOD since the start, hold every request until its end, e.g. 1s@10s")
	fs.Var((*list)(&cfg.Lockup), "lockup", "+ `ROUTE=after:N`: answer N requests, and never again")
	fs.BoolVar(&cfg.Unauthorized, "unauthorized", false, "answer 401 to everything but the health path")
	fs.StringVar(&cfg.Also, "also", "", "`file` of further routes to serve with small pages, one \"METHOD /template\" a line")
	fs.StringVar(&cfg.AccessLog, "access-log", "", "append a combined access log to `file`")
	fs.StringVar(&cfg.OTLP, "otlp", "", "append OTLP/JSON Lines, as the collector's file exporter writes them, to `file`")
	fs.Uint64Var(&cfg.Seed, "seed", 1, "seed of the random latencies")
	if err := fs.Parse(args); err != nil {
		return Config{}, err
	}
	if fs.NArg() > 0 {
		return Config{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return cfg, nil
}
