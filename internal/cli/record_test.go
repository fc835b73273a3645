package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// when is the only thing in a profile that is not a function of its input: when it was made.
var when = regexp.MustCompile(`"recorded": "[^"]+"`)

func (a *answer) bytes(t *testing.T) string {
	t.Helper()
	if a.exit != 0 || len(when.FindAll(a.profile, -1)) != 1 {
		t.Fatalf("exit %d: %s", a.exit, a.text)
	}
	return string(when.ReplaceAll(a.profile, []byte(`"recorded": ""`)))
}

func sharedFile(t *testing.T, folder, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sharedFolder, folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The same input gives the same bytes: again, with one processor and with two, plain, compressed, from
// standard input, and split into files.
func TestSameInputSameProfile(t *testing.T) {
	for _, c := range []struct{ folder, name string }{
		{"access", "apache_combined_10k.log"}, {"access", "nginx_shop_fa_1k.log"},
		{"otlp", "java_agent_filexporter.jsonl"}, {"otlp", "node_express_semconv_old.jsonl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := sharedFile(t, c.folder, c.name)
			dir := t.TempDir()
			file := func(name string, data []byte) string {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				return path
			}
			plain := file("plain", text)
			half := bytes.IndexByte(text[len(text)/2:], '\n') + len(text)/2 + 1
			gz, zst := packed(t, text)
			want := recordTraffic(t, nil, nil, "--from", plain).bytes(t)
			for what, a := range map[string]*answer{
				"again":               recordTraffic(t, nil, nil, "--from", plain),
				"one processor":       recordTraffic(t, nil, []string{"GOMAXPROCS=1"}, "--from", plain),
				"two processors":      recordTraffic(t, nil, []string{"GOMAXPROCS=2"}, "--from", plain),
				"another time zone":   recordTraffic(t, nil, []string{"TZ=Asia/Kathmandu"}, "--from", plain),
				"gzip":                recordTraffic(t, nil, nil, "--from", file("log.gz", gz)),
				"zstd":                recordTraffic(t, nil, nil, "--from", file("log.zst", zst)),
				"standard input":      recordTraffic(t, text, nil, "--from", "-"),
				"gzip from a pipe":    recordTraffic(t, gz, nil, "--from", "-"),
				"two files":           recordTraffic(t, nil, nil, "--from", file("a.log", text[:half]), "--from", file("b.log", text[half:])),
				"a glob of two files": recordTraffic(t, nil, nil, "--from", filepath.Join(dir, "[ab].log")),
			} {
				if got := a.bytes(t); got != want {
					t.Errorf("%s: another profile of %d bytes, want %d", what, len(got), len(want))
				}
			}
		})
	}
}

// disorder counts neighbours in the file, so that only it depends on the order of lines.
var disorder = regexp.MustCompile(`,\s+"out_of_order": \d+`)

// TR-10, TR-21: the order of lines bends nothing: not the window, not the rate, not what collapses.
func TestLineOrderBendsNothing(t *testing.T) {
	for _, name := range []string{"apache_combined_10k.log", "nginx_shop_fa_1k.log", "ingress_nginx.log"} {
		text := sharedFile(t, "access", name)
		lines := strings.SplitAfter(strings.TrimRight(string(text), "\n")+"\n", "\n")
		slices.Reverse(lines)
		want := disorder.ReplaceAllString(recordTraffic(t, text, nil, "--from", "-").bytes(t), "")
		got := disorder.ReplaceAllString(recordTraffic(t, []byte(strings.Join(lines, "")), nil, "--from", "-").bytes(t), "")
		if got != want {
			t.Errorf("%s from its end gives another profile", name)
		}
	}
}

// TR-22: declared templates win, from the flag and from the manifest; one that is none is refused.
func TestDeclaredRoutesOverTheCommand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"seatrial.yaml": "load:\n  traffic:\n    routes: ['/shop/{category}/{slug}']\n",
		"access.log":    logOf(3, time.Second, "GET /shop/hats/red-hat", "GET /shop/shoes/boot", "GET /help/7", "POST /help/8"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, exit := seatrialIn(t, dir, "traffic", "record", "--from", "access.log", "--route", "GET /help/{page}", "--out", "here.json"); exit != 0 {
		t.Fatalf("exit %d:\n%s", exit, out)
	}
	profile, err := os.ReadFile(filepath.Join(dir, "here.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/shop/{category}/{slug}", "/help/{page}", "/help/{id}"} {
		if strings.Count(string(profile), `"path": "`+path+`"`) != 1 {
			t.Errorf("%s is not there once:\n%s", path, profile)
		}
	}
	if out, exit := seatrialIn(t, dir, "traffic", "record", "--from", "access.log", "--route", "shop/{x"); exit != 2 || !strings.Contains(out, "CLI-001") || !strings.Contains(out, "--route") {
		t.Errorf("exit %d:\n%s", exit, out)
	}
}

func packed(t *testing.T, text []byte) (gz, zst []byte) {
	t.Helper()
	var a, b bytes.Buffer
	g := gzip.NewWriter(&a)
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := g.Write(text)
	_, err2 := z.Write(text)
	if err := errors.Join(err1, err2, g.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return a.Bytes(), b.Bytes()
}

// A profile keeps no query, address, user, referrer, agent or identifier of a published log.
func TestProfileKeepsNoIdentifier(t *testing.T) {
	text := sharedFile(t, "access", "apache_combined_10k.log")
	a := recordTraffic(t, nil, nil, "--from", absolute(t, filepath.Join(sharedFolder, "access", "apache_combined_10k.log")))
	for _, gone := range []string{"198.18.", "Mozilla", "http://", "?", "flav=rss"} {
		if !bytes.Contains(text, []byte(gone)) {
			t.Errorf("%q is not in the log: the test shows nothing", gone)
		}
		if strings.Contains(string(a.profile), gone) {
			t.Errorf("%q of the log stands in the profile", gone)
		}
	}
}

// The bounds of TestMemoryIsBounded: what is read is far larger than what may be held.
const (
	longLog    = 200 << 20
	memoryPeak = 64 << 20
)

// A log of 200 MB whose addresses, users, query strings and identifiers never repeat is read through a
// pipe in less than 64 MiB.
func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "seatrial")
	if out, err := exec.Command("go", "build", "-o", program, "seatrial/cmd/seatrial").CombinedOutput(); err != nil {
		t.Fatalf("build seatrial: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-C", dir, "traffic", "record", "--from", "-", "--quiet")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchMemory(t, cmd.Process.Pid)
	lines, err := writeLongLog(in)
	if err := errors.Join(err, in.Close(), cmd.Wait()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	most := peak()
	t.Logf("%d lines, %d MB; at most %d MiB resident", lines, longLog>>20, most>>20)
	if most == 0 || most > memoryPeak {
		t.Errorf("%d MiB resident at the peak, want at most %d", most>>20, memoryPeak>>20)
	}
	profile, err := os.ReadFile(filepath.Join(dir, profilePath))
	if err != nil || !bytes.Contains(profile, []byte(fmt.Sprintf(`"requests": %d,`, lines))) || bytes.Count(profile, []byte(`"method":`)) != 2 {
		t.Errorf("the profile is not that of %d requests on two routes: %v\n%.2000s", lines, err, profile)
	}
}

// writeLongLog writes longLog bytes of lines that are all different.
func writeLongLog(w io.Writer) (lines int, err error) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	block := make([]byte, 0, 1<<20)
	for written := 0; written < longLog; written += len(block) {
		block = block[:0]
		stamp := at.Add(time.Duration(lines) * time.Millisecond).Format("02/Jan/2006:15:04:05 -0700")
		for len(block) < 1<<20-300 {
			block = append(block, "10."...)
			block = strconv.AppendInt(block, int64(lines), 10)
			block = append(block, ".1.1 - user"...)
			block = strconv.AppendInt(block, int64(lines), 10)
			block = append(append(append(block, " ["...), stamp...), `] "GET /shop/`...)
			if lines%2 == 0 {
				block = append(block, "orders/"...)
			} else {
				block = append(block, "baskets/"...)
			}
			block = strconv.AppendInt(block, int64(lines)*7919, 10)
			block = append(block, "?session="...)
			block = strconv.AppendInt(block, int64(lines)*104729, 36)
			block = append(block, ` HTTP/1.1" 200 1234 "-" "an agent/1.0 of some length, as they are"`+"\n"...)
			lines++
		}
		if _, err := w.Write(block); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// watchMemory looks at a process's high-water mark of resident memory, in bytes, until the function that
// it returns is called. The mark that wait(2) gives would be no less than this process's own.
func watchMemory(t *testing.T, pid int) func() int64 {
	t.Helper()
	var most atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			most.Store(max(most.Load(), highWater(pid)))
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return most.Load()
	}
}

var hwm = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// highWater is VmHWM of proc(5); 0 once the process is gone.
func highWater(pid int) int64 {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	m := hwm.FindSubmatch(status)
	if m == nil {
		return 0
	}
	kib, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// TR-10 over the command: logs of several hosts with different offsets are one window, and a silence is
// named with its start.
func TestMergedHostsAndGaps(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC) // the hour in which clocks of one host go forward
	zones := []*time.Location{time.UTC, time.FixedZone("", 3600), time.FixedZone("", -9*3600-1800)}
	hosts := make([]strings.Builder, len(zones))
	for i := range 240 {
		if i == 120 {
			at = at.Add(time.Hour)
		}
		h := i % len(zones)
		fmt.Fprintf(&hosts[h], "192.0.2.%d - - [%s] \"GET /a HTTP/1.1\" 200 5\n", h, at.In(zones[h]).Format("02/Jan/2006:15:04:05 -0700"))
		at = at.Add(time.Second)
	}
	for h := range hosts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("host%d.log", h)), []byte(hosts[h].String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := recordTraffic(t, nil, nil, "--from", filepath.Join(dir, "host*.log"))
	p := a.out.Profile
	if a.exit != 0 || p.Requests != 240 || p.Window.Seconds != 239+3600 || p.Rate != 240/p.Window.Seconds ||
		p.Window.Start.Format(time.RFC3339) != "2026-03-29T00:59:00Z" {
		t.Fatalf("%s", a.text)
	}
	if len(p.Gaps) != 1 || p.Gaps[0].Seconds != 3601 || p.Gaps[0].Start.Format(time.RFC3339) != "2026-03-29T01:00:59Z" {
		t.Errorf("gaps %+v", p.Gaps)
	}
	out, exit := seatrialIn(t, dir, "traffic", "record", "--from", "host*.log")
	if exit != 0 || !regexp.MustCompile(`gap +1 h.* from 2026-03-29T01:00:59Z`).MatchString(out) {
		t.Errorf("exit %d, no gap is named:\n%s", exit, out)
	}
}

// TR-31 over the command: the parts of a published log, merged in any order, are the profile of the whole
// log, but for when it was made and how many lines were out of order.
func TestMergedPartsAreTheWholeLog(t *testing.T) {
	dir := t.TempDir()
	text := sharedFile(t, "access", "apache_combined_10k.log")
	lines := strings.SplitAfter(strings.TrimRight(string(text), "\n")+"\n", "\n")
	files := map[string]string{"salt": "a secret of the test's own", "whole.log": string(text)}
	const parts = 12
	for k := range parts {
		var part strings.Builder
		for i := k; i < len(lines); i += parts {
			part.WriteString(lines[i])
		}
		files[fmt.Sprintf("%d.log", k)] = part.String()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		t.Helper()
		if out, exit := seatrialIn(t, dir, append([]string{"traffic"}, args...)...); exit != 0 {
			t.Fatalf("exit %d:\n%s", exit, out)
		}
	}
	merge := []string{"merge", "--out", "merged.json"}
	for k := range parts {
		name := fmt.Sprintf("%d.json", k*5%parts)
		run("record", "--from", strings.Replace(name, "json", "log", 1), "--partial", "--salt-file", "salt", "--out", name)
		merge = append(merge, name)
	}
	run(merge...)
	run("record", "--from", "whole.log", "--out", "whole.json")
	profile := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return disorder.ReplaceAllString(when.ReplaceAllString(string(text), ""), "")
	}
	if profile("merged.json") != profile("whole.json") {
		t.Error("the merged profile is another than the whole's")
	}
}
