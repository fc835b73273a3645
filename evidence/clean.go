package evidence

import (
	"math"
	"reflect"
	"time"

	"seatrial/record"
)

// Run gives a deep copy of run that is fit to be written: no secret in any text, and no figure that
// JSON cannot hold. The tally is shared, as it holds numbers only. The caller's run is not changed.
func (r *Redactor) Run(run *Run) *Run {
	c := cleaner{redact: r, known: map[string]string{}}
	out := c.copyOf(reflect.ValueOf(run)).Interface().(*Run)
	if c.odd > 0 {
		out.Warnings = append(out.Warnings, "a figure was not a finite number and is written as 0")
	}
	return out
}

type cleaner struct {
	redact *Redactor
	known  map[string]string // texts that were seen: the series repeats a few of them thousands of times
	odd    int               // figures that were not finite
}

func (c *cleaner) text(s string) string {
	out, ok := c.known[s]
	if !ok {
		out = c.redact.String(s)
		c.known[s] = out
	}
	return out
}

// Types that are copied as they are: they hold no text.
func opaque(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[*time.Time]() || t == reflect.TypeFor[*record.Tally]()
}

func (c *cleaner) copyOf(v reflect.Value) reflect.Value {
	if opaque(v.Type()) {
		return v
	}
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(c.text(v.String()))
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			c.odd++
			return out
		}
		return v
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(c.copyOf(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(c.copyOf(v.Field(i)))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(c.copyOf(v.Index(i)))
			}
		}
	case reflect.Map:
		c.copyMap(out, v)
	default:
		return v
	}
	return out
}

func (c *cleaner) copyMap(out, v reflect.Value) {
	if v.IsNil() {
		return
	}
	out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(c.copyOf(it.Key()), c.copyOf(it.Value()))
	}
}
