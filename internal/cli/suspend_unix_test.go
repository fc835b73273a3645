//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seatrial/evidence"
	"seatrial/judge"
)

// TestSuspendedGenerator: a run whose process stands still for 2 s (SIGSTOP) sends what was due
// meanwhile, late; its response times hold the two seconds; and it does not pass, but names the
// generator.
func TestSuspendedGenerator(t *testing.T) {
	b := newBench(t)
	for _, engine := range []string{"auto", "portable"} {
		b.write("seatrial.yaml", `
services:
  shop: {run: 'exec "`+b.shop+`" --addr 127.0.0.1:${PORT}', health: /healthz}
load:
  engine: `+engine+`
  rate: 100/s
  arrivals: even
  duration: 6s
  warmup: 0s
  safe_routes: ["GET /api/products"]
`)
		known := journals(b.dir)
		cmd := b.command("run", "-o", "json")
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 400 { // until it sends
			if sends(b.dir, known) {
				break
			}
			time.Sleep(25 * time.Millisecond)
		}
		time.Sleep(1500 * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		exit := exitNumber(cmd.Wait())
		var r evidence.Run
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v\n%s\n%s", err, out.String(), said.String())
		}
		if exit != exitUnproved || r.Verdict != judge.Unverified {
			t.Errorf("%s: exit %d, verdict %s: %s", engine, exit, r.Verdict, r.Sentence)
		}
		if r.Account.Due != 600 || r.Account.Answered != 600 {
			t.Errorf("%s: %+v", engine, r.Account)
		}
		// 200 of 600 were due in the gap: a third waited, evenly, up to two seconds.
		if r.Total.Max < 1900 || r.Total.P95 < 1500 || r.Total.P50 > 500 || r.SendDelayP99 < 1800 {
			t.Errorf("%s: the gap is not in the times: %+v, send delay p99 %.0f ms", engine, *r.Total, r.SendDelayP99)
		}
		if r.Generator.Suspended < 1800*time.Millisecond || r.Generator.Suspended > 2600*time.Millisecond {
			t.Errorf("%s: suspended for %s", engine, r.Generator.Suspended)
		}
		found := false
		for _, f := range r.Findings {
			found = found || f.Check == judge.GeneratorHealth && f.Verdict == judge.Unverified && strings.Contains(f.Reason, "stood still for")
		}
		if !found {
			t.Errorf("%s: no finding names the gap: %+v", engine, r.Findings)
		}
	}
}

// TestPausedGenerator: pauses that are longer than the time-out of a request make no failure of a target that
// answers everything: what came too late is the generator's, by name.
func TestPausedGenerator(t *testing.T) {
	b := newBench(t)
	for _, engine := range []string{"auto", "portable"} {
		b.write("seatrial.yaml", `
services:
  shop: {run: 'exec "`+b.shop+`" --addr 127.0.0.1:${PORT}', health: /healthz}
load:
  engine: `+engine+`
  rate: 300/s
  duration: 4s
  warmup: 0s
  timeout: 100ms
  safe_routes: ["GET /api/products"]
`)
		known := journals(b.dir)
		cmd := b.command("run", "-o", "json")
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 400 { // until it sends
			if sends(b.dir, known) {
				break
			}
			time.Sleep(25 * time.Millisecond)
		}
		for range 3 {
			time.Sleep(700 * time.Millisecond)
			if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
		exit := exitNumber(cmd.Wait())
		var r evidence.Run
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v\n%s\n%s", err, out.String(), said.String())
		}
		if exit != exitUnproved || r.Verdict != judge.Unverified {
			t.Errorf("%s: exit %d, verdict %s: %s", engine, exit, r.Verdict, r.Sentence)
		}
		// about 200 of each 300 ms were due too long ago when it went on
		if a := r.Account; a.Unsent+a.Lost < 60 || a.Failed > 0 || a.TimedOut > a.Unsent/10 {
			t.Errorf("%s: %+v", engine, a)
		}
		found := false
		for _, f := range r.Findings {
			found = found || f.Check == judge.GeneratorHealth && f.Verdict == judge.Unverified && strings.Contains(f.Reason, "came to them after their time-out")
		}
		if !found {
			t.Errorf("%s: no finding names the pauses: %+v", engine, r.Findings)
		}
	}
}

// journals counts the journals of a project in which sending began.
func journals(dir string) int {
	files, _ := filepath.Glob(filepath.Join(dir, ".seatrial", "runs", "*", "journal.jsonl"))
	n := 0
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), `"sending"`) {
			n++
		}
	}
	return n
}

// sends tells whether a run more than those known has begun to send.
func sends(dir string, known int) bool { return journals(dir) > known }
