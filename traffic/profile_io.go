package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seatrial/fault"
)

// DefaultMaxAge is how old a profile may be when nothing else is declared (TR-33).
const DefaultMaxAge = 336 * time.Hour

// maxProfile bounds the size of a profile file in bytes.
const maxProfile = 64 << 20

// Encode gives the profile as it is committed: indented JSON with a final newline, the same bytes
// for the same profile.
func (p *Profile) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// WriteFile writes the profile atomically: readers see the old file or the new one. Missing folders
// are made.
func (p *Profile) WriteFile(path string) error {
	data, err := p.Encode()
	if err != nil {
		return err
	}
	return writeFile(path, data, 0o644)
}

func writeFile(path string, data []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".traffic-*.json")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadProfileFile is ReadProfile of a file. A file that is not there is TRF-003 too.
func ReadProfileFile(path string, now time.Time, maxAge time.Duration) (p *Profile, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.TRF003, "there is no traffic profile at %s", path).Because(err)
	}
	if err != nil {
		return nil, fault.New(fault.TRF003, "the traffic profile %s cannot be opened", path).Because(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return ReadProfile(f, path, now, maxAge)
}

// ReadProfile reads a profile that WriteFile wrote; name is for messages. One of an unknown version,
// from the future or damaged is TRF-003; one recorded longer than maxAge before now is LOD-025. A
// maxAge of 0 means DefaultMaxAge.
func ReadProfile(r io.Reader, name string, now time.Time, maxAge time.Duration) (*Profile, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxProfile+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.TRF003, "the traffic profile %s cannot be read", name).Because(err)
	case len(data) > maxProfile:
		return nil, damaged(name, fmt.Errorf("it is larger than %d MiB", maxProfile>>20))
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, damaged(name, jsonProblem(err))
	}
	switch {
	case head.Version == nil:
		return nil, damaged(name, errors.New("it has no version"))
	case *head.Version < oldestVersion || *head.Version > ProfileVersion:
		return nil, fault.New(fault.TRF003, "the traffic profile %s has version %d; this build reads versions %d to %d",
			name, *head.Version, oldestVersion, ProfileVersion)
	}
	p := &Profile{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(p); err != nil {
		return nil, damaged(name, jsonProblem(err))
	}
	if err := p.check(); err != nil {
		return nil, damaged(name, err)
	}
	if err := p.age(name, now, maxAge); err != nil {
		return nil, err
	}
	return p, nil
}

func damaged(name string, why error) error {
	return fault.New(fault.TRF003, "the traffic profile %s is damaged: %s", name, why).Because(why)
}

// jsonProblem says where, without Go's own type names.
func jsonProblem(err error) error {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON at byte %d", syntax.Offset)
	case errors.As(err, &typed):
		return fmt.Errorf("%s holds a %s", typed.Field, typed.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

func (p *Profile) age(name string, now time.Time, maxAge time.Duration) error {
	if maxAge <= 0 {
		maxAge = DefaultMaxAge
	}
	recorded := p.Recorded.UTC().Format(time.RFC3339)
	switch age := now.Sub(p.Recorded); {
	case age < 0:
		return fault.New(fault.TRF003, "the traffic profile %s comes from the future: it was recorded %s, which is %s from now",
			name, recorded, (-age).Round(time.Second))
	case age > maxAge:
		return fault.New(fault.LOD025, "the traffic profile %s was recorded %s, %s ago; max_age is %s",
			name, recorded, age.Round(time.Second), maxAge)
	}
	return nil
}

// check finds what no profile of WriteFile holds, so that an edited or half-merged file is refused
// rather than quoted.
func (p *Profile) check() error {
	if p.Recorded.IsZero() {
		return errors.New("it does not say when it was recorded")
	}
	if !finite(p.Rate) || !finite(p.Dispersion) || !finite(p.PerMinuteBucket) || p.PeakConcurrency < 0 {
		return errors.New("a rate is negative")
	}
	if w := p.Window; w != nil && (w.End.Before(w.Start) || !finite(w.Seconds)) {
		return errors.New("its window ends before it starts")
	}
	if p.Requests > 0 && (p.Rate == 0 || len(p.Routes) == 0) {
		return errors.New("it has requests and no rate or no routes")
	}
	seen := map[string]bool{}
	var total uint64
	for i := range p.Routes {
		r := &p.Routes[i]
		if err := r.check(p.Requests); err != nil {
			return fmt.Errorf("route %q: %w", r.Name(), err)
		}
		if seen[r.Name()] {
			return fmt.Errorf("route %q stands twice", r.Name())
		}
		seen[r.Name()] = true
		total += r.Requests
	}
	if total != p.Requests {
		return fmt.Errorf("its routes sum to %d requests and it says %d", total, p.Requests)
	}
	return nil
}

func finite(f float64) bool { return f >= 0 && !math.IsInf(f, 0) }

func (r *Route) check(total uint64) error {
	if r.Requests == 0 || r.Requests > total {
		return errors.New("requests are out of range")
	}
	if want := float64(r.Requests) / float64(total); math.Abs(r.Weight-want) > 1e-9 {
		return errors.New("its weight is not its share of the requests")
	}
	if !isMethod(r.Method) {
		return errors.New("the method is none")
	}
	if r.Unmatched != (r.Path == Unmatched) {
		return errors.New("only the path " + Unmatched + " is unmatched")
	}
	if !r.Unmatched {
		if t, err := ParseTemplate(r.Path); err != nil {
			return err
		} else if t.String() != r.Path {
			return errors.New("the path is not in canonical spelling")
		}
	}
	var answered uint64
	for class, n := range r.Status {
		if !isStatusName(class) {
			return fmt.Errorf("status class %q", class)
		}
		if answered += n; n > r.Requests || answered > r.Requests {
			return errors.New("more statuses than requests")
		}
	}
	for _, q := range []*Quantiles{r.Latency, r.Request, r.Response} {
		if q != nil && (q.Samples == 0 || q.Samples > r.Requests || !(q.P50 >= 0 && q.P50 <= q.P95 && q.P95 <= q.P99 && q.P99 <= q.Max)) {
			return errors.New("quantiles do not rise, or have no samples")
		}
	}
	return r.checkPopularity()
}

func (r *Route) checkPopularity() error {
	if len(r.Popularity) == 0 {
		return nil
	}
	t, err := ParseTemplate(r.Path)
	if err != nil {
		return errors.New("what has no placeholder has no popularity")
	}
	for key, p := range r.Popularity {
		switch {
		case !slices.Contains(t.keys, key):
			return fmt.Errorf("its popularity names no placeholder of its own")
		case p == nil || p.Requests == 0 || p.Requests > r.Requests || p.Distinct == 0 || p.Distinct > p.Requests:
			return fmt.Errorf("the popularity of {%s} counts more values than requests, or none", key)
		case !finite(p.DistinctError) || !finite(p.ExponentError):
			return fmt.Errorf("the popularity of {%s} has an error that is negative", key)
		case p.Exponent == nil && p.Support == 0:
		case p.Exponent == nil || !(*p.Exponent >= 0 && *p.Exponent <= maxExponent) || p.Support < p.Distinct || p.Support > maxSupport:
			return fmt.Errorf("the popularity of {%s} has no law of Zipf's", key)
		}
	}
	return nil
}

func isStatusName(s string) bool {
	for _, n := range statusNames {
		if s == n {
			return true
		}
	}
	return false
}

func isMethod(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isUpper(s[i]) && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 32
}
