package repo

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"seatrial/fault"
	"seatrial/manifest"
)

// unpack writes an archive's files into a folder named after the archive.
func unpack(t *testing.T, name string, files []txtar.File) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestProposals renders each archive of testdata, loads what was rendered, and compares it with the
// wanted manifest beside the archive; `go test ./internal/repo -args update` writes those anew.
func TestProposals(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 9 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, a := range archives {
		name := strings.TrimSuffix(filepath.Base(a), ".txtar")
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(a)
			if err != nil {
				t.Fatal(err)
			}
			dir := unpack(t, name, archive.Files)
			found, err := Scan(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := Render(found)
			m, err := manifest.Parse(got, dir)
			if err != nil {
				t.Fatalf("what init would write does not load: %v\n%s", err, got)
			}
			if len(m.Services) != len(found.Services) || !m.Load.Enabled {
				t.Errorf("the manifest holds %d services of %d", len(m.Services), len(found.Services))
			}
			want := filepath.Join("testdata", name+".yaml")
			if slices.Contains(flag.Args(), "update") {
				if err := os.WriteFile(want, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			wanted, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, wanted) {
				t.Errorf("got:\n%s\nwant:\n%s", got, wanted)
			}
			if len(found.Summary()) == 0 {
				t.Error("the summary is empty")
			}
		})
	}
}

// TestHostileNames keeps folder and file names from becoming YAML or shell.
func TestHostileNames(t *testing.T) {
	evil := "a\n- b: ${HOME} 'x' #\u2028"
	dir := unpack(t, "x", []txtar.File{
		{Name: evil + "/package.json", Data: []byte(`{"scripts": {"start": "${IFS}node ${x:-y}"}}`)},
		{Name: evil + "/traces.json", Data: []byte(`{"resourceSpans":[]}`)},
		{Name: evil + "/Procfile", Data: []byte("web: run ${A} ${B:-c} ${D[0]} $PORT\nother: x\n")},
		{Name: evil + "/b/Dockerfile", Data: []byte("CMD x\x01\u2028y: ${z}\n")},
	})
	found, err := Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := Render(found)
	m, err := manifest.Parse(text, dir)
	if err != nil {
		// A folder whose name holds ${ cannot be written into a command; it must be refused by the
		// manifest's own rules and by nothing else.
		if e, ok := fault.As(err); !ok || e.Code != fault.MAN004 || !strings.Contains(err.Error(), "${HOME}") {
			t.Fatalf("%v\n%s", err, text)
		}
		return
	}
	if len(m.Services) != 1 || m.Load.SourceConfig.Path[0] != found.Traffic[0].Path {
		t.Errorf("effective: %+v", m)
	}
}

func TestCompressedTraffic(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte(strings.Repeat(`{"resourceSpans":[]}`+"\n", 50_000)))
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := unpack(t, "x", []txtar.File{{Name: "a.jsonl.gz", Data: z.Bytes()}, {Name: "b.json.gz", Data: z.Bytes()[:12]}, {Name: "c.json.zst", Data: []byte{0x28, 0xb5, 0x2f, 0xfd}}})
	found, err := Scan(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Traffic) != 1 || found.Traffic[0] != (Traffic{"a.jsonl.gz", "otel"}) {
		t.Errorf("traffic: %+v", found.Traffic)
	}
}

// TestFolderOfAModule scans a folder whose go.mod lies above it.
func TestFolderOfAModule(t *testing.T) {
	dir := unpack(t, "x", []txtar.File{
		{Name: "go.mod", Data: []byte("module x\n")},
		{Name: "cmd/web/main.go", Data: []byte("package main\n\nimport \"net/http\"\n\nfunc main() { _ = http.ListenAndServe(\":8123\", nil) }\n")},
	})
	found, err := Scan(filepath.Join(dir, "cmd", "web"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Services) != 1 || found.Services[0].Build != "go build -o .seatrial/bin/web ." || found.Services[0].Port != 8123 {
		t.Errorf("services: %+v", found.Services)
	}
}

func TestNoSuchFolder(t *testing.T) {
	_, err := Scan(filepath.Join(t.TempDir(), "nowhere"))
	if e, ok := fault.As(err); !ok || e.Code != fault.MAN001 {
		t.Errorf("got %v", err)
	}
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{"My Shop": "my-shop", "..": "x", "é": "x", "a__b": "a-b", strings.Repeat("ab", 50): strings.Repeat("ab", 20)} {
		if got := word(in, "x"); got != want {
			t.Errorf("word(%q) is %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"a ${PORT:-80} $PORT": "a ${PORT} ${PORT}", "${A}": "$A", "${A:-b c}": "b c", "${A[0]}": "$ {A[0]}"} {
		if got := substitutable(in); got != want {
			t.Errorf("substitutable(%q) is %q, want %q", in, got, want)
		}
	}
}
