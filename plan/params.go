package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"seatrial/fault"
	"seatrial/manifest"
	"seatrial/report/figure"
	"seatrial/traffic"
)

// Bounds of the values that are kept in memory.
const (
	maxFile  = 64 << 20 // bytes of a file of values
	maxPaths = 65536    // concrete paths of one route that are checked one by one
	maxPath  = 16 << 10 // bytes of one request-target
)

// values is what a route can send. Exactly one of paths and template is set: paths are whole
// request-targets, weighted; a template is filled from its pools, one for each placeholder.
type values struct {
	paths    []string
	weights  []float64
	template *traffic.Template
	pools    []pool
	by       string
	count    int // distinct requests, saturating
	digest   string
}

// pool is the values of one placeholder.
type pool struct {
	key      string
	values   *traffic.Pool // escaped
	distinct int           // of values; one that stands twice is picked twice as often
	zipf     bool
	plain    bool // no value can be read as more or less than one segment
}

func literalValue(path string) values {
	return values{paths: []string{path}, weights: []float64{1}, count: 1}
}

// valuesOf finds what can stand in a template (TR-50): declared params, else what the source saw.
// Either why says in words that there is nothing, or d says that the policy refuses all of it.
func (c *compiler) valuesOf(r *traffic.Route, t *traffic.Template) (v values, d traffic.Decision, why string) {
	all := c.decideTemplate(r.Method, r.Path)
	params, declared := c.load.Params[r.Name()]
	if declared {
		if missing := slices.DeleteFunc(t.Keys(), func(k string) bool { _, ok := params[k]; return ok }); len(missing) > 0 {
			return v, d, "load.params gives no values for " + brief(missing)
		}
		return c.declared(r, t, params, all)
	}
	var tuples []traffic.Tuple
	if c.in.Observed != nil {
		tuples = c.in.Observed.Tuples(r.Name())
	}
	if len(tuples) == 0 {
		if !all.Safe {
			return v, all, ""
		}
		return v, d, "no values are known for its placeholders; give them under load.params"
	}
	return c.observed(r, t, tuples)
}

// observed makes whole paths of what the source saw. Each is checked by itself: a value can hold any
// bytes that a client of production once sent.
func (c *compiler) observed(r *traffic.Route, t *traffic.Template, tuples []traffic.Tuple) (v values, d traffic.Decision, why string) {
	kept := map[string]float64{}
	refused := 0
	for _, tuple := range tuples {
		if len(tuple.Values) != len(t.Keys()) {
			continue
		}
		path := sendablePath(t.Expand(tuple.Values))
		if one := c.decide(r.Method, path); !one.Safe || len(path) > maxPath {
			refused, d = refused+1, one
			continue
		}
		kept[path] += tuple.Weight
	}
	if len(kept) == 0 && refused == 0 {
		return v, d, "no values are known for its placeholders; give them under load.params"
	}
	c.warnOfFewValues(r, t, len(tuples))
	c.warnOfRareValues(r, tuples)
	if refused > 0 && len(kept) > 0 {
		c.warn("%s: %d of %d observed requests are not sent: %s", r.Name(), refused, len(tuples), d.Why())
	}
	v = enumerated(kept)
	v.by = bySource
	return v, d, ""
}

// enumerated makes values of whole paths in canonical order.
func enumerated(kept map[string]float64) values {
	v := values{count: len(kept)}
	h := sha256.New()
	for _, p := range sortedKeys(kept) {
		v.paths, v.weights = append(v.paths, p), append(v.weights, kept[p])
		hashPart(h, p)
		hashPart(h, strconv.FormatFloat(kept[p], 'g', -1, 64))
	}
	v.digest = hex.EncodeToString(h.Sum(nil))
	return v
}

// warnOfFewValues tells that caches will look better than production's. More than a tenth is told: less
// is within what the estimate of the number of values can be wrong by.
func (c *compiler) warnOfFewValues(r *traffic.Route, t *traffic.Template, kept int) {
	if keys := t.Keys(); len(keys) == 1 {
		if p := r.Popularity[keys[0]]; p != nil && float64(p.Distinct) > 1.1*float64(kept) {
			c.warn("%s: production asked for some %s, and %s are kept to be sent: caches will meet fewer different requests than production's do",
				r.Name(), figure.Counted(p.Distinct, "value"), figure.Count(uint64(kept)))
		}
	}
}

// maxRepeated is the share of all requests that may be for values asked for before although production's
// were not, without a word; fewer requests than minRepeated are too few for a word about caches.
const (
	maxRepeated = 0.03
	minRepeated = 100
)

// warnOfRareValues tells that a cache as large as all values will look better than production's: values
// that were asked for once are drawn again as any other, and as many are not drawn at all.
func (c *compiler) warnOfRareValues(r *traffic.Route, tuples []traffic.Tuple) {
	var missed, requests float64
	for _, t := range tuples {
		missed += math.Exp(-float64(t.Count))
		requests += float64(t.Count)
	}
	if share := missed / requests; share*r.Weight > maxRepeated && requests >= minRepeated {
		c.warn("%s: most of its values were asked for once or twice, so that a large cache will hit in up to %s more of its requests than production's; pick: observed over a pool of load.params does not have this flaw",
			r.Name(), figure.Share(share))
	}
}

// hashPart adds a length-prefixed text, so that no two lists hash alike.
func hashPart(w io.Writer, s string) {
	_, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(s)))) // a hash never fails
	_, _ = io.WriteString(w, s)
}

// Sendable gives a request-target whose bytes all may stand in one: the others are percent-encoded.
func Sendable(target string) []byte {
	path, query, found := strings.Cut(target, "?")
	out := sendablePath(path)
	if found {
		out += "?" + escaped(query, pathChars+"?")
	}
	return []byte(out)
}

const pathChars = "-._~!$&'()*+,;=:@/%"

// sendablePath escapes what may not stand in a request line. It decodes nothing.
func sendablePath(p string) string { return escaped(p, pathChars) }

func escaped(p, keep string) string {
	var out []byte
	for i := range len(p) {
		if b := p[i]; (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && strings.IndexByte(keep, b) < 0 {
			out = fmt.Appendf(out, "%%%02X", b)
		} else {
			out = append(out, b)
		}
	}
	return string(out)
}

// declared makes values of load.params. When the policy allows the template whatever stands in it,
// and no value can be read as more or less than one segment, all are allowed; else each combination
// is checked by itself, as long as there are not too many.
func (c *compiler) declared(r *traffic.Route, t *traffic.Template, params map[string]manifest.Param, all traffic.Decision) (v values, d traffic.Decision, why string) {
	v = values{template: t, by: byParams, count: 1}
	plain, written := true, 1
	h := sha256.New()
	for _, key := range t.Keys() {
		p, ok := c.pool(r.Name(), key, params[key])
		if !ok {
			return v, d, "its values under load.params cannot be used"
		}
		plain = plain && p.plain
		v.pools = append(v.pools, p)
		v.count = times(v.count, p.distinct)
		written = times(written, p.size())
		hashPart(h, key)
		hashPart(h, p.values.Digest())
	}
	v.digest = hex.EncodeToString(h.Sum(nil))
	if all.Safe && plain && !t.Rest() {
		return v, d, ""
	}
	if written > maxPaths {
		if !all.Safe && plain {
			return values{}, all, ""
		}
		return v, d, fmt.Sprintf("its values cannot all be checked against the route lists: %d combinations are more than %d", written, maxPaths)
	}
	kept, refused, last := c.combinations(r.Method, t, v.pools)
	if refused > 0 && len(kept) > 0 {
		c.warn("%s: %d of %d declared requests are not sent: %s", r.Name(), refused, written, last.Why())
	}
	v = enumerated(kept)
	v.by = byParams
	return v, last, ""
}

// combinations writes out every path of a template and keeps those that the policy allows.
func (c *compiler) combinations(method string, t *traffic.Template, pools []pool) (kept map[string]float64, refused int, last traffic.Decision) {
	kept = map[string]float64{}
	chosen := make([]string, len(pools))
	var walk func(i int, weight float64)
	walk = func(i int, weight float64) {
		if weight == 0 {
			return // a value beyond the ranks of its law
		}
		if i < len(pools) {
			for k := range pools[i].size() {
				chosen[i] = pools[i].values.Value(uint64(k))
				walk(i+1, weight*pools[i].weight(k))
			}
			return
		}
		path := sendablePath(t.Expand(chosen))
		if d := c.decide(method, path); !d.Safe || len(path) > maxPath {
			refused, last = refused+1, d
			return
		}
		kept[path] += weight
	}
	walk(0, 1)
	return kept, refused, last
}

// times multiplies without overflow.
func times(a, b int) int {
	if b != 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

func (p *pool) size() int { return int(min(p.values.Len(), math.MaxInt)) }

// weight is how often the k-th value in canonical order is picked, in proportion.
func (p *pool) weight(k int) float64 {
	if p.zipf {
		return 1 / float64(k+1)
	}
	return p.values.Weight(uint64(k))
}

// pool reads the values of one placeholder.
func (c *compiler) pool(route, key string, p manifest.Param) (pool, bool) {
	at := fmt.Sprintf("load.params[%q].%s", route, key)
	out := pool{key: key, plain: true, zipf: p.Pick == traffic.PickZipf}
	by := picking{pick: p.Pick, seed: derive(c.plan.Seed, route, key+" ranks")}
	if p.Pick == traffic.PickObserved {
		var ok bool
		if by.law, ok = c.law(at, route, key); !ok {
			return out, false
		}
	}
	raw := p.Values
	var err error
	switch {
	case p.Int != nil:
		if out.values, err = by.ints(p.Int.Min, p.Int.Max); err == nil {
			out.distinct = out.size()
		}
	default:
		if p.File != "" {
			raw, err = c.lines(p.File)
		}
		if err == nil {
			err = out.texts(raw, by)
		}
	}
	if err != nil {
		c.problem(fault.MAN004, at, "%s: %v", at, err)
		return out, false
	}
	if p.Pick == traffic.PickObserved {
		out.distinct = int(min(uint64(out.distinct), by.law.Values)) // ranks beyond the law are never drawn
		c.warnOfSmallPool(route, key, &out, by.law)
	}
	return out, true
}

// picking is how the values of a pool are drawn.
type picking struct {
	pick string
	law  traffic.Law // of pick: observed
	seed uint64
}

func (by picking) ints(low, high int64) (*traffic.Pool, error) {
	if by.pick == traffic.PickObserved {
		return traffic.NewPopularIntPool(low, high, by.law, by.seed)
	}
	return traffic.NewIntPool(low, high, by.pick)
}

func (by picking) texts(values []string) (*traffic.Pool, error) {
	if by.pick == traffic.PickObserved {
		return traffic.NewPopularPool(values, by.law, by.seed)
	}
	return traffic.NewPool(values, nil, by.pick)
}

// law is how popular production's values of a placeholder were: by the committed profile where it tells,
// else by the source. Where neither tells, a guess would pass for a measurement, so it is a problem.
func (c *compiler) law(at, route, key string) (traffic.Law, bool) {
	var seen *traffic.Popularity
	for _, p := range []*traffic.Profile{c.in.Profile, c.in.Source} {
		if p == nil {
			continue
		}
		for i := range p.Routes {
			if r := &p.Routes[i]; r.Name() == route && r.Popularity[key] != nil {
				if law, ok := r.Popularity[key].Law(); ok {
					return law, true
				}
				seen = r.Popularity[key]
			}
		}
	}
	if seen != nil {
		c.problem(fault.MAN004, at+".pick", "%s.pick is observed, but too few of production's values of {%s} came again to tell how popular they are: %s on %s",
			at, key, figure.Counted(seen.Requests, "request"), figure.Counted(seen.Distinct, "value")).
			Next = "Record a longer log with `seatrial traffic record`, or set pick to uniform or zipf."
		return traffic.Law{}, false
	}
	c.problem(fault.MAN004, at+".pick", "%s.pick is observed, but neither the profile nor the source tells how popular the values of {%s} are on %s", at, key, route).
		Next = "Record a profile with `seatrial traffic record` and name it under load.traffic.profile, or set pick to uniform or zipf."
	return traffic.Law{}, false
}

func (c *compiler) warnOfSmallPool(route, key string, p *pool, law traffic.Law) {
	if float64(p.size())*1.1 < float64(law.Values) {
		c.warn("%s: {%s} is drawn from %s, and production's law runs over some %s: caches will meet fewer different requests than production's do",
			route, key, figure.Counted(uint64(p.size()), "value"), figure.Count(law.Values))
	}
}

// texts escapes values so that each is one segment.
func (p *pool) texts(raw []string, by picking) error {
	escaped := make([]string, len(raw))
	for i, v := range raw {
		if v == "" || !utf8.ValidString(v) || len(v) > maxPath {
			return fmt.Errorf("value %d is empty, not text, or too long", i+1)
		}
		p.plain = p.plain && oneSegment(v)
		escaped[i] = traffic.EscapeSegment(v)
	}
	var err error
	p.values, err = by.texts(escaped)
	slices.Sort(escaped)
	p.distinct = len(slices.Compact(escaped))
	return err
}

// oneSegment tells whether a value, however often a server decodes it, stays one path segment.
func oneSegment(v string) bool {
	if v == "" || v == "." || v == ".." {
		return false
	}
	return !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune(`/\%;?#`, r) })
}

// lines reads a file with one value on each line.
func (c *compiler) lines(name string) ([]string, error) {
	b, err := readFile(c.m.Resolve(name), maxFile)
	if err != nil {
		return nil, fmt.Errorf("the file %s cannot be read: %w", name, plainly(err))
	}
	var out []string
	for line := range bytes.Lines(bytes.TrimPrefix(b, []byte("\ufeff"))) {
		if v := strings.TrimSpace(string(line)); v != "" {
			out = append(out, v)
		}
	}
	return out, nil
}

// plainly takes the path out of a file error: the message names it as the manifest does.
func plainly(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return b, err
}
