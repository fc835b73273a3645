package doctor

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seatrial/manifest"
	"seatrial/traffic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// find gives the results of a name, and checks that each says something.
func find(t *testing.T, all []Result, name string) []Result {
	t.Helper()
	var out []Result
	for _, r := range all {
		if r.Text == "" || (r.State == OK) != (r.Next == "") {
			t.Errorf("result without text, or with a next step that does not fit: %+v", r)
		}
		if r.Name == name {
			out = append(out, r)
		}
	}
	return out
}

func wantOne(t *testing.T, all []Result, name string, state State, text string) {
	t.Helper()
	got := find(t, all, name)
	if len(got) != 1 || got[0].State != state || !strings.Contains(got[0].Text, text) {
		t.Errorf("%s: %+v, want one %s with %q", name, got, state, text)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutManifest(t *testing.T) {
	dir := t.TempDir()
	all := Check(t.Context(), dir, nil)
	for _, name := range []string{"process driver", "git", "ports", "file descriptors", "processors", "disk", "clock source", "loopback", "run folder", "environments"} {
		if len(find(t, all, name)) == 0 {
			t.Errorf("no check of %s", name)
		}
	}
	wantOne(t, all, "run folder", OK, "can be written")
	wantOne(t, all, "environments", OK, "nothing left over")
	wantOne(t, all, "manifest", Warn, "no seatrial.yaml")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("doctor left %v, %v", left, err)
	}
}

func TestProject(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	write(t, filepath.Join(dir, "logs", "a.log"), "x\n", 0o644)
	write(t, filepath.Join(dir, "start.sh"), "#!/bin/sh\n", 0o755)
	write(t, filepath.Join(dir, "plain.txt"), "", 0o644)
	write(t, filepath.Join(dir, ".seatrial", "environments", "old", "env.json"), "{}", 0o600)
	profile := traffic.Profile{Version: traffic.ProfileVersion, Recorded: time.Now().Add(-time.Hour).UTC(), Requests: 2, Rate: 1,
		Source: traffic.ProfileSource{Kind: "otel"},
		Routes: []traffic.Route{{Method: "DELETE", Path: "/orders/{id}/lines", Requests: 2, Weight: 1}}}
	if err := profile.WriteFile(filepath.Join(dir, ".seatrial", "traffic.json")); err != nil {
		t.Fatal(err)
	}
	m := &manifest.Manifest{Dir: dir,
		Services: map[string]manifest.Service{
			"a": {Build: "CGO_ENABLED=0 go build ./...", Run: "./bin/a", Port: l.Addr().(*net.TCPAddr).Port},
			"b": {Run: "exec no-such-program-here --x"},
			"c": {Run: "./start.sh"},
			"d": {Run: "./missing.sh"},
			"e": {Run: "cd x && ./y"},
		},
		Targets: map[string]manifest.Target{"near": {URL: "http://127.0.0.1:1", MaxRate: 5}, "far": {URL: "http://192.0.2.1", MaxRate: 5}},
	}
	m.Load.MaxConnections = 1 << 30
	m.Load.Source = "access_log"
	m.Load.SourceConfig.Path = []string{"logs/*.log", "none/*.log", "plain.txt", "-", "logs"}
	m.Load.Traffic.Profile = ".seatrial/traffic.json"
	m.Load.UnsafeRoutes = []string{"DELETE /orders/*", "GET /orders/*", "* /*", "DELETE /users/*", "DELETE /**"}
	all := Check(t.Context(), dir, m)

	wantOne(t, all, "tool go", OK, "services.a.build")
	wantOne(t, all, "tool ./bin/a", OK, "the build is to make it")
	wantOne(t, all, "tool no-such-program-here", Bad, "services.b.run")
	wantOne(t, all, "tool ./start.sh", OK, "it is there")
	wantOne(t, all, "tool ./missing.sh", Bad, "no such program")
	wantOne(t, all, "file descriptors", Bad, "a run needs 1073741952")
	wantOne(t, all, "target near", OK, "at most 5")
	wantOne(t, all, "target far", Bad, "LOD-001")
	wantOne(t, all, "traffic profile", OK, "1 route")
	wantOne(t, all, "environments", Warn, "old is broken")
	var states []string
	for _, r := range find(t, all, "load source") {
		states = append(states, string(r.State))
	}
	if got := strings.Join(states, " "); got != "ok bad bad ok bad" {
		t.Errorf("load source: %s", got)
	}
	ports := find(t, all, "ports")
	if len(ports) != 2 || ports[0].State != Bad || ports[1].State != Warn {
		t.Errorf("ports: %+v", ports)
	}
	var warned []string
	for _, r := range find(t, all, "unsafe routes") {
		warned = append(warned, r.Text)
	}
	if got := strings.Join(warned, "|"); len(warned) != 2 || !strings.Contains(got, `"DELETE /orders/*"`) || !strings.Contains(got, `"* /*"`) ||
		!strings.Contains(got, "DELETE /orders/{id}/lines") {
		t.Errorf("unsafe routes: %s", got)
	}
	if Worst(all) != Bad {
		t.Errorf("worst %s", Worst(all))
	}
}

func TestOldProfileAndNoSource(t *testing.T) {
	dir := t.TempDir()
	m := &manifest.Manifest{Dir: dir}
	m.Load.Source = "none"
	m.Load.Traffic.Profile = "gone.json"
	all := Check(t.Context(), dir, m)
	wantOne(t, all, "load source", OK, "assumed smoke")
	wantOne(t, all, "traffic profile", Bad, "TRF-003")
	m.Load.Source = "otel"
	m.Load.UnsafeRoutes = []string{"odd"}
	wantOne(t, Check(t.Context(), dir, m), "unsafe routes", Bad, "odd")
	wantOne(t, Check(t.Context(), dir, m), "load source", Bad, "names no file")
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".seatrial"), "a file where the folder should be", 0o644)
	wantOne(t, Check(t.Context(), dir, nil), "run folder", Bad, ".seatrial cannot be written: not a directory")
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		in   []State
		want State
	}{{nil, OK}, {[]State{OK}, OK}, {[]State{Warn, OK}, Warn}, {[]State{OK, Bad, Warn}, Bad}} {
		var rs []Result
		for _, s := range c.in {
			rs = append(rs, Result{State: s})
		}
		if got := Worst(rs); got != c.want {
			t.Errorf("worst of %v is %s, want %s", c.in, got, c.want)
		}
	}
}

func TestProgram(t *testing.T) {
	for line, want := range map[string]string{
		"go run .":                "go",
		"  A=1 B=x python3 app":   "python3",
		"exec ./bin/a":            "./bin/a",
		"env X=1 node a.js":       "node",
		"env -i node":             "env",
		"A='x y' node":            "",
		"cd web && npm start":     "",
		`"my program" x`:          "",
		"$CMD":                    "",
		"":                        "",
		"[ -f x ] && y":           "",
		"./a; ./b":                "",
		"~/bin/x":                 "",
		"npm run build && echo x": "npm",
	} {
		if got := program(line); got != want {
			t.Errorf("program(%q) = %q, want %q", line, got, want)
		}
	}
}

// TestNothingToSendOrNowhere: a manifest that cannot run is not approved.
func TestNothingToSendOrNowhere(t *testing.T) {
	for text, want := range map[string]struct {
		name  string
		state State
		says  string
	}{
		"load: {safe_routes: [GET /]}":                                           {"place to send at", Bad, "neither a service nor a target"},
		"services: {a: {run: x}}":                                                {"safe routes", Bad, "none is named"},
		"services: {a: {run: x}}\nload: {safe_routes: ['GET /**']}":              {"safe routes", Warn, "only GET / is sent"},
		"services: {a: {run: x}}\nload: {safe_routes: ['GET /**', GET /health]}": {"safe routes", OK, "2 patterns"},
	} {
		dir := t.TempDir()
		m, err := manifest.Parse([]byte(text), dir)
		if err != nil {
			t.Fatal(err)
		}
		wantOne(t, Check(t.Context(), dir, m), want.name, want.state, want.says)
	}
}
