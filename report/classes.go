package report

import (
	"cmp"
	"maps"
	"slices"

	"seatrial/evidence"
	"seatrial/record"
)

type counted struct {
	name string
	n    uint64
}

// sortedCounts gives a map's counts, the largest first.
func sortedCounts(m map[string]uint64) []counted {
	var out []counted
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, counted{name, m[name]})
	}
	slices.SortStableFunc(out, func(a, b counted) int { return cmp.Compare(b.n, a.n) })
	return out
}

// className gives an error class of run.json in words.
func className(class string) string {
	switch class {
	case evidence.Class5xx:
		return "answered 5xx"
	case evidence.Class4xx:
		return "answered 4xx"
	}
	for o := range record.NumOutcomes {
		if o.String() == class {
			return o.Words()
		}
	}
	return class
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
