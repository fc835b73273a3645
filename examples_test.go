package seatrial

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seatrial/manifest"
)

// TestExampleManifestsLoad reads every manifest of the examples, and checks that what it names exists.
func TestExampleManifestsLoad(t *testing.T) {
	found, err := filepath.Glob("examples/chandlery/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	below, err := filepath.Glob("examples/chandlery/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if found = append(found, below...); len(found) < 2 {
		t.Fatalf("only %d manifests found", len(found))
	}
	for _, file := range found {
		m, err := manifest.Read(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if len(m.Services) == 0 || !m.Load.Enabled || m.Load.Source == "none" {
			t.Errorf("%s: the example should have a service and a load from a source", file)
		}
		for _, path := range m.Load.SourceConfig.Path {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), path)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestPagesNameTargetsOfTheMakefile checks that every `make TARGET` that a page shows exists.
func TestPagesNameTargetsOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?m)(?:`|^    )make ([a-z-]+)")
	for _, page := range []string{"README.md", "CHANGELOG.md", "docs/guides/first-run.md", ".ci/run", "docs/method.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s shows make %s, which the Makefile lacks", page, m[1])
			}
		}
	}
}

// TestPagesLinkToFiles checks the relative links of the pages written by hand.
func TestPagesLinkToFiles(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	files(t, func(name string) {
		if filepath.Ext(name) != ".md" || strings.Contains(name, "testdata/") || strings.HasPrefix(name, "docs/cli") {
			return
		}
		text, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
