package manifest

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"seatrial/fault"
)

// refusal is a key that is known, and refused by name.
type refusal struct {
	path string // pattern; * is one key
	why  string
}

// removed are keys that existed once.
func removed() []refusal {
	return []refusal{
		{"load.thresholds.query_count_increase", "query_count_increase was removed: nothing ever read it; to compare what two builds do, use load.comparison"},
	}
}

// later are keys of Seatrial's manifest that this build cannot act on yet. They are refused rather
// than ignored: a key that can be set and does nothing reads as a check that is running.
func later() []refusal {
	return []refusal{
		{"database", "goldens and database branches"},
		{"gate", "the serving gate"},
		{"fleet", "fleet drills"},
		{"replay", "replay"},
		{"network", "closing an environment's network"},
		{"load.scenarios", "scenarios"},
		{"load.comparison", "comparing two builds"},
		{"load.sql", "SQL workloads"},
		{"load.gate", "the serving gate"},
		{"load.params.*.*.query", "values from a query on the database"},
		{"services.*.image", "services from an image"},
		{"services.*.dockerfile", "services from a Dockerfile"},
		{"services.*.compose", "services from a Compose file"},
		{"services.*.network", "closing an environment's network"},
		{"targets.*.consent", "signed consent of a target"},
		{"targets.*.window", "time windows of a target"},
		{"targets.*.abort", "abort limits of a target"},
	}
}

// matches compares a path of keys with a pattern, key by key.
func matches(keys []string, pattern string) bool {
	parts := strings.Split(pattern, ".")
	if len(parts) != len(keys) {
		return false
	}
	for i, p := range parts {
		if p != "*" && p != keys[i] {
			return false
		}
	}
	return true
}

// unknown refuses a key that the type does not have.
func (d *decoder) unknown(parent string, f field, known map[string]reflect.StructField) {
	full, at := join(parent, f.key), d.keyOrValue(f)
	d.bad[full] = true
	keys := split(full)
	for _, r := range removed() {
		if matches(keys, r.path) {
			d.problem(fault.MAN005, at, "%s: %s", full, r.why)
			return
		}
	}
	for _, r := range later() {
		if matches(keys, r.path) {
			d.problem(fault.MAN007, at, "%s: this build cannot do %s yet", full, r.why)
			return
		}
	}
	e := d.problem(fault.MAN003, at, "%s is not a known key", full)
	names := slices.Sorted(maps.Keys(known))
	if near, ok := nearest(f.key, names); ok {
		e.Message += "; did you mean " + near + "?"
		e.Next = "Write " + near + " instead, or remove the line."
		return
	}
	where := parent
	if where == "" {
		where = "the top of the manifest"
	}
	e.Next = "Known keys of " + where + ": " + strings.Join(names, ", ") + "."
}

// split undoes join and index.
func split(full string) []string {
	var out []string
	for full != "" {
		var key string
		if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(full, "[")); err == nil && full[0] == '[' {
			key, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
			full = full[1+len(quoted):]
		} else {
			end := strings.IndexAny(full[1:], ".[]") + 1
			if end == 0 {
				end = len(full)
			}
			key, full = strings.TrimPrefix(full[:end], "["), full[end:]
		}
		out = append(out, key)
		full = strings.TrimPrefix(strings.TrimPrefix(full, "]"), ".")
	}
	return out
}

// nearest finds the known word that is closest by edit distance, when it is close enough for a
// slip of the hand or holds the word as one of its parts.
func nearest(word string, known []string) (string, bool) {
	best, distance := "", len(word)/2+1
	if len(word) > 64 {
		return "", false
	}
	for _, k := range known {
		if d := edits(strings.ToLower(word), k); d < distance {
			best, distance = k, d
		}
	}
	return best, best != ""
}

// edits counts insertions, deletions, substitutions and swaps of neighbours that turn a into b
// (optimal string alignment).
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
