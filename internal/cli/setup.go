package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"seatrial/evidence"
	"seatrial/fault"
	"seatrial/internal/doctor"
	"seatrial/internal/repo"
	"seatrial/manifest"
)

const manifestName = "seatrial.yaml"

func (a *app) initCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "init", Short: "Read this repository and write a commented seatrial.yaml",
		Long: `init looks for Go, Node and Python programs, a Procfile, a Dockerfile and Compose files, and for
traces or access logs, and writes a seatrial.yaml that says what it found. It asks nothing,
starts nothing and overwrites nothing.`,
		Example: "  seatrial init\n  seatrial -C ./shop init",
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.init(force) },
	}
	c.Flags().BoolVar(&force, "force", false, "overwrite an existing seatrial.yaml")
	return c
}

func (a *app) init(force bool) error {
	path := filepath.Join(a.dir, manifestName)
	if _, err := os.Lstat(path); err == nil && !force {
		return usage("%s exists already", manifestName).WithNext("Edit it, or run `seatrial init --force` to replace it.")
	}
	found, err := repo.Scan(a.dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, repo.Render(found), 0o644); err != nil {
		return fault.New(fault.EVD001, "%s could not be written", manifestName).Because(err)
	}
	if a.json() {
		a.printJSON(map[string]any{"path": manifestName, "found": found})
		return nil
	}
	for _, line := range found.Summary() {
		_, _ = fmt.Fprintln(a.Out, line)
	}
	_, err = fmt.Fprintf(a.Out, "wrote %s\nNext: seatrial doctor, then seatrial smoke\n", manifestName)
	return err
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check what a run on this machine needs",
		Long:    "doctor checks the tools, limits and files that the manifest needs, and says how to get what is missing.",
		Example: "  seatrial doctor\n  seatrial doctor -o json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			m, err := a.readManifest()
			if e, ok := fault.As(err); err != nil && (!ok || e.Code != fault.MAN001) {
				return err
			}
			results := doctor.Check(c.Context(), a.dir, m)
			for _, r := range results {
				if r.State == doctor.Bad {
					a.done = exitDependency
				}
			}
			if a.json() {
				a.printJSON(results)
				return nil
			}
			return printDoctor(a.Out, results)
		},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	var ofRun bool
	c := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of seatrial.yaml",
		Long:    "schema prints what editors use to complete and check seatrial.yaml; --run prints that of run.json.",
		Example: "  seatrial schema > seatrial.schema.json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			schema := manifest.Schema
			if ofRun {
				schema = evidence.JSONSchema
			}
			b, err := schema()
			if err != nil {
				return err
			}
			_, err = a.Out.Write(b)
			return err
		},
	}
	c.Flags().BoolVar(&ofRun, "run", false, "the schema of run.json instead")
	return c
}

// docsCommand writes the generated pages; `make generate` calls it.
func (a *app) docsCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "docs", Short: "Write the generated reference pages", Hidden: true, Args: noArgs,
		Example: "  seatrial docs --out docs",
		RunE:    func(c *cobra.Command, _ []string) error { return a.writeDocs(c.Root(), a.at(out)) },
	}
	c.Flags().StringVar(&out, "out", "docs", "`DIR` that the pages go to")
	return c
}

func (a *app) writeDocs(root *cobra.Command, dir string) error {
	pages := []struct {
		name  string
		write func(*os.File) error
	}{
		{"errors.md", func(f *os.File) error { return writeErrors(f) }},
		{"cli.md", func(f *os.File) error { return writeCommands(f, root) }},
		{"manifest.md", func(f *os.File) error { return manifest.WriteReference(f) }},
		{"seatrial.schema.json", func(f *os.File) error { return writeBytes(f, manifest.Schema) }},
		{"run.schema.json", func(f *os.File) error { return writeBytes(f, evidence.JSONSchema) }},
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the pages: %w", err)
	}
	for _, p := range pages {
		f, err := os.Create(filepath.Join(dir, p.name))
		if err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
		err = p.write(f)
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
	}
	return nil
}

func writeBytes(f *os.File, make func() ([]byte, error)) error {
	b, err := make()
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return err
}

func writeErrors(f *os.File) error { return fault.WriteReference(f) }

// writeCommands writes one page over all visible commands, in order.
func writeCommands(f *os.File, c *cobra.Command) error {
	c.DisableAutoGenTag = true
	if c.Name() != "completion" && (c.IsAvailableCommand() || !c.HasParent()) {
		if err := doc.GenMarkdownCustom(c, f, func(link string) string { return "#" + anchor(link) }); err != nil {
			return err
		}
	}
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "completion" || sub.Name() == "help" {
			continue
		}
		if err := writeCommands(f, sub); err != nil {
			return err
		}
	}
	return nil
}

func anchor(link string) string {
	out := []rune{}
	for _, r := range filepath.Base(link[:len(link)-len(filepath.Ext(link))]) {
		if r == '_' {
			r = '-'
		}
		out = append(out, r)
	}
	return string(out)
}
