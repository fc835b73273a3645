package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seatrial/engine"
)

// tool is one entry of a table. args gives its command line for one round; want is how many requests
// a tool that counts is asked for.
type tool struct {
	name string
	args func(want uint64, length time.Duration) []string
	self bool // this very program
	open bool // at a given rate
}

// table is one comparison; the first tool that is installed is what the others are divided by.
type table struct {
	name, title string
	tools       []tool
	open        bool // at a given rate: achieved rate and send delay instead of requests per second
}

func tables(s *nginx) []table {
	closed := func(url string) []tool {
		return []tool{
			{name: "wrk", args: func(_ uint64, d time.Duration) []string {
				return []string{"wrk", "-t1", "-c64", "-d" + seconds(d), url}
			}},
			self("seatrial (loop)", "-url", url, "-engine", "loop"),
			self("seatrial (portable)", "-url", url, "-engine", "portable"),
			{name: "ab -k", args: func(n uint64, _ time.Duration) []string {
				return []string{"ab", "-q", "-k", "-c64", "-n" + strconv.FormatUint(n, 10), url}
			}},
			{name: "h2load --h1", args: func(n uint64, _ time.Duration) []string {
				return []string{"h2load", "--h1", "-c64", "-t1", "-n" + strconv.FormatUint(n, 10), url}
			}},
			{name: "bombardier", args: func(_ uint64, d time.Duration) []string {
				return []string{"bombardier", "-k", "-c", "64", "-d", seconds(d), url}
			}},
			{name: "fortio", args: func(_ uint64, d time.Duration) []string {
				return []string{"fortio", "load", "-k", "-quiet", "-qps", "0", "-c", "64", "-t", seconds(d), url}
			}},
			{name: "hey", args: func(_ uint64, d time.Duration) []string {
				return []string{"hey", "-c", "64", "-z", seconds(d), url}
			}},
			{name: "vegeta", args: func(_ uint64, d time.Duration) []string {
				return []string{"sh", "-c", "echo GET " + url + " | exec vegeta attack -insecure -http2=false -rate=0 -max-workers=64 -connections=64 -duration=" + seconds(d) + " -output=/dev/null"}
			}},
		}
	}
	plain, tls := "http://"+s.plain+"/", "https://"+s.tls+"/"
	newConns := func(url string) []tool {
		return []tool{
			{name: "wrk", args: func(_ uint64, d time.Duration) []string {
				return []string{"wrk", "-t1", "-c64", "-H", "Connection: close", "-d" + seconds(d), url}
			}},
			self("seatrial (loop)", "-url", url, "-engine", "loop", "-fresh", "1"),
			self("seatrial (portable)", "-url", url, "-engine", "portable", "-fresh", "1"),
			{name: "ab", args: func(n uint64, _ time.Duration) []string {
				return []string{"ab", "-q", "-c64", "-n" + strconv.FormatUint(n, 10), url}
			}},
			{name: "hey -disable-keepalive", args: func(_ uint64, d time.Duration) []string {
				return []string{"hey", "-disable-keepalive", "-c", "64", "-z", seconds(d), url}
			}},
			{name: "vegeta", args: func(_ uint64, d time.Duration) []string {
				return []string{"sh", "-c", "echo GET " + url + " | exec vegeta attack -insecure -http2=false -keepalive=false -rate=0 -max-workers=64 -connections=64 -duration=" + seconds(d) + " -output=/dev/null"}
			}},
			{name: "bombardier", args: func(_ uint64, d time.Duration) []string {
				return []string{"bombardier", "-k", "-c", "64", "-H", "Connection: close", "-d", seconds(d), url}
			}},
		}
	}
	loop := func(name string, args ...string) tool {
		return self(name, append([]string{"-url", plain, "-engine", "loop"}, args...)...)
	}
	return []table{
		{name: "growth", title: "Cost as connections grow, closed loop", tools: []tool{loop("64 connections"), loop("128 connections", "-c", "128"),
			loop("256 connections", "-c", "256"), loop("512 connections", "-c", "512"), loop("1,024 connections, 100 routes", "-c", "1024", "-routes", "100")}},
		{name: "growth", title: "Cost as routes grow, 64 connections", tools: []tool{loop("1 route"), loop("100 routes", "-routes", "100"), loop("200 routes", "-routes", "200"),
			loop("400 routes", "-routes", "400"), loop("800 routes", "-routes", "800")}},
		{name: "growth", title: "Cost as the run grows longer, 20,000 requests a second, 64 connections, 100 routes", tools: []tool{
			loop("once", "-routes", "100", "-rate", "20000"), loop("twice", "-routes", "100", "-rate", "20000", "-times", "2"),
			loop("four times", "-routes", "100", "-rate", "20000", "-times", "4")}},
		{name: "h2", title: "HTTP/2 over TLS 1.3, 8 connections of 16 streams, closed loop", tools: []tool{
			{name: "h2load", args: func(n uint64, _ time.Duration) []string {
				return []string{"h2load", "-c8", "-m16", "-t1", "-n" + strconv.FormatUint(n, 10), tls}
			}},
			self("seatrial (loop)", "-url", tls, "-engine", "loop", "-http", "2", "-c", "8", "-streams", "16"),
			self("seatrial (portable)", "-url", tls, "-engine", "portable", "-http", "2", "-c", "8", "-streams", "16"),
			{name: "hey -h2", args: func(_ uint64, d time.Duration) []string {
				return []string{"hey", "-h2", "-c", "128", "-z", seconds(d), tls}
			}},
			{name: "vegeta", args: func(_ uint64, d time.Duration) []string {
				return []string{"sh", "-c", "echo GET " + tls + " | exec vegeta attack -insecure -http2=true -rate=0 -max-workers=128 -duration=" + seconds(d) + " -output=/dev/null"}
			}},
			{name: "bombardier --http2", args: func(_ uint64, d time.Duration) []string {
				return []string{"bombardier", "-k", "--http2", "-c", "128", "-d", seconds(d), tls}
			}},
		}},
		{name: "new", title: "A new TCP connection for each request, 64 at once, closed loop", tools: newConns(plain)},
		{name: "new-tls", title: "A new TLS 1.3 connection for each request, full handshakes, 64 at once, closed loop", tools: append(newConns(tls),
			self("seatrial (loop, resumed)", "-url", tls, "-engine", "loop", "-fresh", "1", "-resume", "1"))},
		{name: "h1", title: "HTTP/1.1 keep-alive, 64 connections, closed loop", tools: closed(plain)},
		{name: "h1-tls", title: "HTTP/1.1 keep-alive over TLS 1.3, 64 connections, closed loop", tools: closed(tls)},
		{name: "open", title: "Open loop, 20,000 requests a second, 64 connections", open: true, tools: []tool{
			paced("seatrial (loop)", "-url", plain, "-engine", "loop", "-rate", "20000"),
			paced("seatrial (loop, precise)", "-url", plain, "-engine", "loop", "-precise", "-rate", "20000"),
			paced("seatrial (portable)", "-url", plain, "-engine", "portable", "-rate", "20000"),
			{name: "vegeta", args: func(_ uint64, d time.Duration) []string {
				return []string{"sh", "-c", "echo GET " + plain + " | exec vegeta attack -rate=20000 -max-workers=64 -connections=64 -duration=" + seconds(d) + " -output=/dev/null"}
			}},
			{name: "bombardier -r", args: func(_ uint64, d time.Duration) []string {
				return []string{"bombardier", "-c", "64", "-r", "20000", "-d", seconds(d), plain}
			}},
			{name: "h2load --rps", args: func(n uint64, d time.Duration) []string {
				return []string{"h2load", "--h1", "-c64", "-t1", "--rps=313", "-n" + strconv.FormatUint(uint64(20000*d.Seconds()), 10), plain}
			}},
		}},
	}
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d.Seconds()))) + "s" }

// self is the engine, in a process of its own.
func self(name string, args ...string) tool {
	return tool{name: name, self: true, args: func(n uint64, d time.Duration) []string {
		return append([]string{"", sendCommand, "-n", strconv.FormatUint(n, 10), "-length", d.String()}, args...)
	}}
}

// paced is the engine at a given rate.
func paced(name string, args ...string) tool {
	t := self(name, args...)
	t.open = true
	return t
}

// shot is what one tool did in one round.
type shot struct {
	requests uint64
	asked    float64 // a second, of an open loop
	took     time.Duration
	cpu      time.Duration
	rss      int64 // bytes
	delay    [3]float64
}

func (s shot) perRequest() float64 { return micros(s.cpu) / float64(max(1, s.requests)) }
func (s shot) rate() float64       { return float64(s.requests) / s.took.Seconds() }

// measure runs the rounds and prints the table.
func (t *table) measure(ctx context.Context, s *nginx, rounds int, length time.Duration, profiles string, out io.Writer) error {
	var tools []tool
	var missing []string
	for _, tl := range t.tools {
		if tl.self || installed(tl) {
			tools = append(tools, tl)
		} else {
			missing = append(missing, tl.name)
		}
	}
	shots := make([][]shot, len(tools))
	want := uint64(40_000 * length.Seconds())
	for round := -1; round < rounds; round++ { // the first one warms up and says how many are sent in this time
		for i, tl := range tools {
			profile := ""
			if profiles != "" && round == rounds-1 {
				profile = filepath.Join(profiles, t.name+" "+tl.name+".pprof")
			}
			got, err := fire(ctx, s, tl, want, length, profile)
			if err != nil {
				return fmt.Errorf("%s: %w", tl.name, err)
			}
			if round < 0 && i == 0 && !t.open {
				want = got.requests
			}
			if round >= 0 {
				shots[i] = append(shots[i], got)
			}
		}
	}
	t.print(out, tools, shots, missing)
	return nil
}

func installed(t tool) bool {
	args := t.args(1, time.Second)
	name := args[0]
	if name == "sh" {
		name = t.name
	}
	_, err := exec.LookPath(name)
	return err == nil
}

// fire runs one tool once.
func fire(ctx context.Context, s *nginx, t tool, want uint64, length time.Duration, profile string) (shot, error) {
	args := t.args(want, length)
	if t.self {
		own, err := os.Executable()
		if err != nil {
			return shot{}, err
		}
		if args[0] = own; profile != "" {
			args = append(args, "-profile", profile)
		}
	}
	before, err := s.requests()
	if err != nil {
		return shot{}, err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	begun := time.Now()
	err = cmd.Run()
	took := time.Since(begun)
	if err != nil {
		return shot{}, fmt.Errorf("%w\n%s", err, text.String())
	}
	after, err := s.requests()
	if err != nil {
		return shot{}, err
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	got := shot{requests: after - before - 1, asked: openRate, took: took, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), rss: usage.Maxrss * 1024}
	if t.self {
		var n uint64
		var sent float64
		if _, err := fmt.Sscanf(text.String(), "answered %d in %f s send-delay-us %f %f %f", &n, &sent, &got.delay[0], &got.delay[1], &got.delay[2]); err != nil {
			return shot{}, fmt.Errorf("%q: %w", text.String(), err)
		}
		if t.open {
			got.asked, got.took = float64(n)/length.Seconds(), time.Duration(sent*float64(time.Second))
		}
		if n != got.requests {
			return shot{}, fmt.Errorf("it counts %d requests and nginx %d", n, got.requests)
		}
	}
	if got.requests == 0 {
		return shot{}, fmt.Errorf("nginx saw no request\n%s", text.String())
	}
	return got, nil
}

func (t *table) print(out io.Writer, tools []tool, shots [][]shot, missing []string) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	p("\n### %s\n\n", t.title)
	if t.open {
		p("| tool | asked/s | achieved/s | CPU us/request | CPU ratio (range) | send delay us p50 | p99 | p99.9 | RSS MB |\n|---|---|---|---|---|---|---|---|---|\n")
	} else {
		p("| tool | requests/s | CPU us/request | CPU ratio (range) | RSS MB |\n|---|---|---|---|---|\n")
	}
	for i, tl := range tools {
		ratios := make([]float64, len(shots[i]))
		for r := range shots[i] {
			ratios[r] = shots[i][r].perRequest() / shots[0][r].perRequest()
		}
		cpu := figures(shots[i], shot.perRequest)
		p("| %s |", tl.name)
		if t.open {
			p(" %.0f |", median(figures(shots[i], func(s shot) float64 { return s.asked })))
		}
		p(" %.0f | %.2f | %.2f (%.2f to %.2f) |", median(figures(shots[i], shot.rate)), median(cpu), median(ratios), slices.Min(ratios), slices.Max(ratios))
		if t.open {
			for k := range 3 {
				if !tl.self {
					p(" - |")
					continue
				}
				p(" %.0f |", median(figures(shots[i], func(s shot) float64 { return s.delay[k] })))
			}
		}
		p(" %.1f |\n", median(figures(shots[i], func(s shot) float64 { return float64(s.rss) / 1e6 })))
	}
	if len(missing) > 0 {
		p("\nNot installed here: %s.\n", strings.Join(missing, ", "))
	}
}

func figures(shots []shot, of func(shot) float64) []float64 {
	out := make([]float64, len(shots))
	for i, s := range shots {
		out[i] = of(s)
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// machine says where this was measured.
func machine() string {
	m := engine.ReadMachine()
	return fmt.Sprintf("%s, %d cores, %s %s, %s, load %.2f", m.CPU, runtime.NumCPU(), runtime.GOOS, filepath.Base(m.Kernel), runtime.Version(), m.Load1)
}
