package cli

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"seatrial/fault"
	"seatrial/internal/intake"
	"seatrial/internal/run"
	"seatrial/traffic"
)

// maxSalt bounds the file of a salt in bytes.
const maxSalt = 1 << 16

// salt reads the secret that partials share; nil when there is none to share.
func (a *app) salt(f *recordFlags) ([]byte, error) {
	switch {
	case !f.partial && f.salt == "":
		return nil, nil
	case !f.partial:
		return nil, usage("--salt-file is for --partial: a profile is made under a salt of its own, which is never written")
	case f.salt == "":
		return nil, usage("traffic record --partial needs --salt-file: the secret that all parts share").
			WithNext("Make one with `head -c 32 /dev/urandom > salt`, give it to each part, and delete it with the parts.")
	}
	return a.readSalt(f.salt)
}

func (a *app) readSalt(path string) ([]byte, error) {
	salt, err := os.ReadFile(a.at(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usage("there is no salt at %s", path).Because(err).WithNext("Make one with `head -c 32 /dev/urandom > %s`.", path)
	case err != nil:
		return nil, usage("the salt %s cannot be read", path).Because(err)
	}
	salt = bytes.TrimRight(salt, "\r\n")
	if len(salt) < traffic.MinSalt || len(salt) > maxSalt {
		return nil, usage("the salt %s has %d bytes; it needs %d to %d that nobody can guess", path, len(salt), traffic.MinSalt, maxSalt).
			WithNext("Make one with `head -c 32 /dev/urandom > %s`.", path)
	}
	return salt, nil
}

// recordedPartial is the JSON answer of traffic record --partial.
type recordedPartial struct {
	Path     string         `json:"path"`
	Partial  bool           `json:"partial"`
	Warning  string         `json:"warning,omitempty"`
	Requests uint64         `json:"requests"`
	Skips    *traffic.Skips `json:"read"`
}

// recordPartial writes a part even when it is empty: that nothing was served there is a part of the whole.
func (a *app) recordPartial(ctx context.Context, cfg intake.Config, out string) error {
	c, err := intake.Count(ctx, cfg)
	if err != nil {
		return err
	}
	if out == partialPath {
		run.Ignore(a.dir)
	}
	if err := c.Builder.WritePartialFile(a.at(out), c.Skips); err != nil {
		return fault.New(fault.EVD001, "the partial recording %s could not be written", out).Because(err)
	}
	r := recordedPartial{Path: out, Partial: true, Warning: c.Warning, Requests: c.Builder.Requests(), Skips: c.Skips}
	if a.json() {
		a.printJSON(r)
		return nil
	}
	return printPartial(a.Out, r)
}

func (a *app) trafficMerge() *cobra.Command {
	var out, salt string
	c := &cobra.Command{
		Use:   "merge PARTIAL...",
		Short: "Make one profile of partial recordings",
		Long: `merge makes the profile that recording the whole would have made, of the parts that
record --partial wrote, in whatever order. Finished profiles cannot be merged: they no longer hold
what percentiles, peak concurrency and the number of different values are counted from.

With --salt-file it deletes the salt once the profile is written, as nothing needs it then.`,
		Example: "  seatrial traffic merge monday.json tuesday.json\n  seatrial traffic merge --salt-file salt parts/*.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("traffic merge needs the parts that `traffic record --partial` wrote").
					WithNext("Run `seatrial traffic merge parts/*.json`.")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.merge(c.Context(), args, out, salt) },
	}
	c.Flags().StringVar(&out, "out", profilePath, "`PATH` that the profile goes to")
	c.Flags().StringVar(&salt, "salt-file", "", "`PATH` of the salt that the parts share; deleted once the profile is written")
	return c
}

func (a *app) merge(ctx context.Context, parts []string, out, salt string) error {
	var secret []byte
	if salt != "" {
		var err error
		if secret, err = a.readSalt(salt); err != nil {
			return err
		}
	}
	t, err := intake.Merge(ctx, a.dir, parts, secret, time.Now())
	if err != nil {
		return err
	}
	if err := a.keepProfile(t, out, true); err != nil || salt == "" || t.Profile.Requests == 0 {
		return err
	}
	if err := os.Remove(a.at(salt)); err != nil {
		return fault.New(fault.EVD001, "the profile is written, but the salt %s could not be deleted", salt).Because(err).WithNext("Delete it.")
	}
	return nil
}
