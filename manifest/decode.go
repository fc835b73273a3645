package manifest

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"seatrial/fault"
)

// decoder fills the typed manifest from nodes and remembers where each value came from.
type decoder struct {
	src      source
	origins  map[string]Origin
	problems fault.List
	bad      map[string]bool // paths whose value was refused already: one problem for one value is enough
}

// style is how a value may be written beyond what its type says.
type style struct {
	text      bool // a number or a word such as true is taken as the text it is written in
	oneOrMany bool // a single value stands for a list of one
}

func styleOf(f reflect.StructField) style {
	tag := f.Tag.Get("seatrial")
	return style{text: tag == "text", oneOrMany: tag == "one_or_many"}
}

// keyOf is the key of a field in the manifest; empty for one that is not written.
func keyOf(f reflect.StructField) string {
	if key := f.Tag.Get("yaml"); key != "-" && f.IsExported() {
		return key
	}
	return ""
}

// join makes the dotted path of a key.
func join(path, key string) string {
	odd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }
	if key == "" || strings.ContainsFunc(key, odd) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func (d *decoder) problem(code fault.Code, at position, format string, args ...any) *fault.Error {
	e := d.src.problem(code, at, format, args...)
	d.problems = append(d.problems, e)
	return e
}

// invalid says what a value must be.
func (d *decoder) invalid(path string, n *node, must string) {
	d.bad[path] = true
	if n.kind == null {
		d.problem(fault.MAN004, n.at, "%s has no value; it must be %s", path, must)
		return
	}
	got := ""
	if n.kind == scalar {
		got = ", not " + shorten(n.text)
	}
	d.problem(fault.MAN004, n.at, "%s must be %s%s", path, must, got)
}

// shorten quotes a value so that it fits in a sentence.
func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:37]) + "..."
	}
	return strconv.Quote(s)
}

func (d *decoder) note(path string, at position) {
	if at.flag != "" {
		d.origins[path] = Origin{From: "flag", Why: at.flag}
		return
	}
	d.origins[path] = Origin{From: "manifest", Line: at.line, Column: at.column}
}

// value decodes one node into v.
func (d *decoder) value(path string, n *node, v reflect.Value, s style) {
	d.note(path, n.at)
	switch p := v.Addr().Interface().(type) {
	case *time.Duration:
		d.duration(path, n, p)
		return
	case *Rate:
		d.rate(path, n, p)
		return
	case **JSON:
		var b bytes.Buffer
		d.json(path, n, &b)
		text := JSON(b.String())
		*p = &text
		return
	case *Health:
		if n.kind == scalar {
			d.note(path+".path", n.at)
			d.text(path, n, reflect.ValueOf(&p.Path).Elem(), style{})
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n.kind == null && v.Type().Elem().Kind() != reflect.Struct {
			d.invalid(path, n, "a number")
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem(), s)
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.entries(path, n, v, s)
	case reflect.Slice:
		d.list(path, n, v, s)
	case reflect.String:
		d.text(path, n, v, s)
	case reflect.Bool:
		d.boolean(path, n, v)
	case reflect.Float64:
		d.float(path, n, v)
	default:
		d.integer(path, n, v)
	}
}

// structure decodes a mapping whose keys are known. A key that is not known is refused by name.
func (d *decoder) structure(path string, n *node, v reflect.Value) {
	if n.kind == null { // "load:" with nothing below it
		return
	}
	if n.kind != mapping {
		d.invalid(path, n, "a mapping")
		return
	}
	known := fieldsOf(v.Type())
	for _, f := range n.fields {
		at, ok := known[f.key]
		if !ok {
			d.unknown(path, f, known)
			continue
		}
		d.value(join(path, f.key), f.value, v.Field(at.Index[0]), styleOf(at))
		d.note(join(path, f.key), d.keyOrValue(f))
	}
}

// keyOrValue is the place to show for a field: its key, unless a flag gave the value or the value
// came by a merge key from somewhere else.
func (d *decoder) keyOrValue(f field) position {
	if f.value.at.flag != "" {
		return f.value.at
	}
	return f.at
}

func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	out := make(map[string]reflect.StructField, t.NumField())
	for i := range t.NumField() {
		if key := keyOf(t.Field(i)); key != "" {
			out[key] = t.Field(i)
		}
	}
	return out
}

// entries decodes a mapping whose keys a person chooses.
func (d *decoder) entries(path string, n *node, v reflect.Value, s style) {
	if n.kind == null {
		return
	}
	if n.kind != mapping {
		d.invalid(path, n, "a mapping of names to values")
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.fields))
	for _, f := range n.fields {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(join(path, f.key), f.value, item, s)
		d.note(join(path, f.key), d.keyOrValue(f))
		out.SetMapIndex(reflect.ValueOf(f.key), item)
	}
	v.Set(out)
}

func (d *decoder) list(path string, n *node, v reflect.Value, s style) {
	items := n.items
	switch {
	case n.kind == null:
		return
	case n.kind == scalar && s.oneOrMany:
		items = []*node{n}
	case n.kind != sequence:
		d.invalid(path, n, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		d.value(index(path, i), item, out.Index(i), s)
	}
	v.Set(out)
}

// looksTyped tells whether a plain scalar would be read as something other than text.
func looksTyped(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "null", "~":
		return true
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

func (d *decoder) text(path string, n *node, v reflect.Value, s style) {
	if n.kind != scalar || (!s.text && !n.quoted && n.at.flag == "" && looksTyped(n.text)) {
		d.invalid(path, n, "text; put it in quotes")
		return
	}
	v.SetString(n.text)
}

func (d *decoder) boolean(path string, n *node, v reflect.Value) {
	if n.kind == scalar && !n.quoted && (n.text == "true" || n.text == "false") {
		v.SetBool(n.text == "true")
		return
	}
	d.invalid(path, n, "true or false")
}

// number reads a plain decimal number; "010" and 0x10 mean different things to different readers
// and are refused.
func number(n *node) (float64, bool) {
	digits := strings.TrimLeft(n.text, "+-")
	if n.kind != scalar || n.quoted || digits == "" || strings.ContainsAny(digits, "xXoOpP_") {
		return 0, false
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && digits[1] != 'e' {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func (d *decoder) float(path string, n *node, v reflect.Value) {
	f, ok := number(n)
	if !ok {
		d.invalid(path, n, "a number")
		return
	}
	v.SetFloat(f)
}

func (d *decoder) integer(path string, n *node, v reflect.Value) {
	_, ok := number(n)
	if v.CanUint() {
		u, err := strconv.ParseUint(n.text, 10, 64)
		if ok && err == nil {
			v.SetUint(u)
			return
		}
		d.invalid(path, n, "a whole number from 0")
		return
	}
	i, err := strconv.ParseInt(n.text, 10, v.Type().Bits())
	if !ok || err != nil {
		d.invalid(path, n, "a whole number")
		return
	}
	v.SetInt(i)
}

// maxDuration bounds durations so that sums of a few of them cannot overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

func (d *decoder) duration(path string, n *node, out *time.Duration) {
	if n.kind == scalar && n.text != "" {
		v, err := time.ParseDuration(n.text)
		switch {
		case err == nil && v >= 0 && v <= maxDuration:
			*out = v
			return
		case err == nil && v < 0:
			d.invalid(path, n, "a duration that is not negative")
			return
		case err == nil:
			d.invalid(path, n, "a duration of ten years at most")
			return
		}
	}
	d.invalid(path, n, "a duration with a unit, such as 30s, 5m or 336h")
}

// json writes a value of any shape as JSON. Keys keep their order.
func (d *decoder) json(path string, n *node, b *bytes.Buffer) {
	switch n.kind {
	case null:
		b.WriteString("null")
	case scalar:
		if !n.quoted && (n.text == "true" || n.text == "false" || json.Valid([]byte(n.text))) {
			b.WriteString(n.text)
			return
		}
		d.jsonText(n.text, b)
	case sequence:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			d.json(index(path, i), item, b)
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				b.WriteByte(',')
			}
			d.jsonText(f.key, b)
			b.WriteByte(':')
			d.json(join(path, f.key), f.value, b)
		}
		b.WriteByte('}')
	}
}

func (d *decoder) jsonText(s string, b *bytes.Buffer) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // text can always be written
	b.Truncate(b.Len() - 1)
}

func (d *decoder) rate(path string, n *node, out *Rate) {
	if n.kind == scalar {
		if r, ok := ParseRate(n.text); ok {
			*out = r
			return
		}
	}
	d.invalid(path, n, "a rate, such as 500/s, 30/m or a number per second")
}

// ParseRate reads "500/s", "30/m", "100/h" or a bare number per second. The rate is finite and not
// negative.
func ParseRate(s string) (Rate, bool) {
	amount, unit, found := strings.Cut(strings.TrimSpace(s), "/")
	per, ok := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if found && !ok {
		return 0, false
	}
	if !found {
		per = 1
	}
	f, ok := number(&node{kind: scalar, text: strings.TrimSpace(amount)})
	if !ok || f < 0 {
		return 0, false
	}
	return Rate(f / per), true
}
