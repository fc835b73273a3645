package cli

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"seatrial/fault"
	"seatrial/internal/intake"
	"seatrial/report/figure"
	"seatrial/traffic/recorded"
)

type convertFlags struct {
	from, keep  []string
	format, out string
	force       bool
}

func (a *app) trafficConvert() *cobra.Command {
	f := &convertFlags{}
	c := &cobra.Command{
		Use:   "convert --from PATH",
		Short: "Turn requests that another tool recorded into JSON Lines to replay",
		Long: `convert reads requests that were recorded one by one (` + strings.Join(recorded.Formats(), ", ") + `;
plain, gzip or zstd) and writes them as JSON Lines, sorted by time. What it cannot convert is counted
and named by line and reason. Headers that may hold credentials are left out unless --keep-header
names them. The file holds URLs and bodies of production: do not commit it.`,
		Example: "  seatrial traffic convert --from capture.gor --out requests.jsonl\n  seatrial traffic convert --from session.har --keep-header X-Api-Key",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.convert(c, f) },
	}
	c.Flags().StringArrayVar(&f.from, "from", nil, "file or glob `PATH`, - for standard input; may be given several times")
	c.Flags().StringVar(&f.format, "format", "", "format `F`: "+strings.Join(recorded.Formats(), ", ")+"; recognised by content unless given")
	c.Flags().StringVar(&f.out, "out", "-", "`FILE` that the requests go to, - for standard output")
	c.Flags().StringArrayVar(&f.keep, "keep-header", nil, "keep the header `NAME` although it may hold credentials; may be given several times")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite an existing file")
	return c
}

// converted is the JSON answer of traffic convert.
type converted struct {
	Path string `json:"path"`
	*intake.Conversion
}

func (a *app) convert(c *cobra.Command, f *convertFlags) error {
	switch {
	case len(f.from) == 0:
		return usage("traffic convert needs --from: the file that was recorded").
			WithNext("Run `seatrial traffic convert --from capture.gor --out requests.jsonl`.")
	case f.out == "-" && a.json():
		return usage("-o json prints the account, so the requests need a file").WithNext("Give --out a file.")
	}
	cfg := intake.ConvertConfig{Format: f.format, Paths: f.from, Dir: a.dir, Stdin: a.In, Keep: f.keep}
	if f.out == "-" {
		got, err := intake.Convert(c.Context(), cfg, a.Out)
		if err != nil || a.quiet {
			return err
		}
		return printConverted(a.Err, converted{"standard output", got})
	}
	got, err := a.convertFile(c, cfg, f)
	if err != nil {
		return err
	}
	if a.json() {
		a.printJSON(converted{f.out, got})
		return nil
	}
	return printConverted(a.Out, converted{f.out, got})
}

// convertFile writes beside the file and renames at the end, so that a reader sees all of it or nothing.
func (a *app) convertFile(c *cobra.Command, cfg intake.ConvertConfig, f *convertFlags) (got *intake.Conversion, err error) {
	path := a.at(f.out)
	if info, err := os.Stat(path); err == nil {
		switch cfg.Target = info; {
		case !info.Mode().IsRegular():
			return nil, usage("--out: %q is no regular file", f.out).WithNext("Give --out a file, or - for standard output.")
		case !f.force:
			return nil, usage("--out: %q exists already", f.out).WithNext("Give another path, or --force to replace it.")
		}
	}
	if !slices.Contains(f.from, "-") { // a read of standard input cannot be told to stop
		a.engage()
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".requests-*.jsonl")
	if err != nil {
		return nil, fault.New(fault.EVD001, "the requests %s could not be written", f.out).Because(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // what failed is told; nothing else would be
		}
	}()
	got, err = intake.Convert(c.Context(), cfg, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err = errors.Join(file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return nil, fault.New(fault.EVD001, "the requests %s could not be written", f.out).Because(err)
	}
	return got, nil
}

// printConverted tells what was read, refused, left out and written.
func printConverted(w io.Writer, r converted) error {
	p := &printer{w: w}
	s := r.Skips
	p.line("read      %s of format %s", figure.Counted(uint64(s.Read), "record"), s.Format)
	if s.Unparsable > 0 {
		p.line("refused   %s", figure.Count(uint64(s.Unparsable)))
		for _, f := range s.First {
			p.line("          %s:%d %s", plain(f.Input), f.Line, plain(f.Reason))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		p.line("not sent  %s: %s", figure.Count(uint64(s.Reasons[reason])), plain(reason))
	}
	for _, note := range slices.Sorted(maps.Keys(s.Notes)) {
		p.line("noted     %s: %s", figure.Count(uint64(s.Notes[note])), plain(note))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Dropped)) {
		p.line("left out  %s: header %s", figure.Count(uint64(r.Dropped[name])), plain(name))
	}
	if r.Clients > 0 {
		p.line("left out  %s: what tells clients apart", figure.Count(uint64(r.Clients)))
	}
	if r.OutOfOrder > 0 {
		p.line("noted     %s out of order, sorted", figure.Counted(uint64(r.OutOfOrder), "record"))
	}
	if r.Late > 0 {
		p.line("WARNING   %s too late to be sorted: out of order in the output too", figure.Counted(uint64(r.Late), "record"))
	}
	if r.Untimed > 0 {
		p.line("noted     %s without a time", figure.Counted(uint64(r.Untimed), "request"))
	}
	p.line("wrote     %s to %s", figure.Counted(uint64(r.Written), "request"), plain(r.Path))
	return p.err
}
