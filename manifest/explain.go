package manifest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "github.com/goccy/go-yaml"
)

// Explain writes the effective configuration as YAML, each value with a comment that says where it
// came from. What it writes reads back as the same configuration. Values of headers and environment
// variables that look like secrets are masked.
func (m *Manifest) Explain(w io.Writer) error {
	e := &explainer{m: m, w: bufio.NewWriter(w)}
	e.structure("", reflect.ValueOf(m).Elem(), 0)
	return e.w.Flush()
}

type explainer struct {
	m *Manifest
	w *bufio.Writer
}

// commentColumn is where comments begin when the value leaves room.
const commentColumn = 44

// ExplainJSON is what Explain writes, as JSON: the keys of the manifest, every default filled in, and
// values that may be secrets masked.
func (m *Manifest) ExplainJSON() ([]byte, error) {
	var text bytes.Buffer
	if err := m.Explain(&text); err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text.Bytes())
}

func (e *explainer) line(depth int, text, path string) {
	left := strings.Repeat("  ", depth) + text
	comment := e.comment(path)
	if comment == "" {
		_, _ = fmt.Fprintln(e.w, left) // bufio keeps the first error for Flush
		return
	}
	pad := max(commentColumn-len([]rune(left)), 2)
	_, _ = fmt.Fprintf(e.w, "%s%s# %s\n", left, strings.Repeat(" ", pad), comment)
}

// comment says where a value came from.
func (e *explainer) comment(path string) string {
	switch o := e.m.Origins[path]; o.From {
	case "manifest":
		return fmt.Sprintf("%s:%d:%d", e.m.src.name, o.Line, o.Column)
	case "flag":
		return "flag " + o.Why
	case "default":
		if o.Why == "" {
			return "default"
		}
		return "default: " + o.Why
	}
	return ""
}

func (e *explainer) structure(path string, v reflect.Value, depth int) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if key := keyOf(f); key != "" {
			e.field(key, join(path, key), v.Field(i), depth)
		}
	}
}

// field writes one key. A limit that is not in force and a block that is not there are comments.
func (e *explainer) field(key, path string, v reflect.Value, depth int) {
	key = plain(key)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			if why := e.m.Origins[path].Why; why != "" {
				_, _ = fmt.Fprintf(e.w, "%s# %s: %s\n", strings.Repeat("  ", depth), key, why)
			}
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.IsZero() && !e.m.Set(path) {
			return
		}
		e.line(depth, key+":", "")
		e.structure(path, v, depth+1)
	case reflect.Map:
		e.entries(key, path, v, depth)
	case reflect.Slice:
		e.list(key, path, v, depth)
	default:
		if v.IsZero() && !e.m.Set(path) && e.m.Origins[path].From == "" {
			return
		}
		if r, ok := v.Interface().(Rate); ok && r == 0 { // zero cannot be written: it stands for what the source tells
			_, _ = fmt.Fprintf(e.w, "%s# %s: %s\n", strings.Repeat("  ", depth), key, e.m.Origins[path].Why)
			return
		}
		e.line(depth, key+": "+e.value(path, v), path)
	}
}

func (e *explainer) entries(key, path string, v reflect.Value, depth int) {
	if v.Len() == 0 {
		if e.m.Set(path) {
			e.line(depth, key+": {}", path)
		}
		return
	}
	e.line(depth, key+":", "")
	names := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	for _, name := range names {
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(v.MapIndex(reflect.ValueOf(name)))
		e.field(name, join(path, name), item, depth+1)
	}
}

func (e *explainer) list(key, path string, v reflect.Value, depth int) {
	if v.Len() == 0 {
		if e.m.Set(path) {
			e.line(depth, key+": []", path)
		}
		return
	}
	e.line(depth, key+":", "")
	for i := range v.Len() {
		e.line(depth+1, "- "+e.value(index(path, i), v.Index(i)), index(path, i))
	}
}

// value writes a scalar so that it reads back as the same value.
func (e *explainer) value(path string, v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return Duration(x)
	case Rate:
		return x.String()
	case string:
		if e.secret(path) && x != "" {
			return `"(masked)"`
		}
		return plain(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// secret tells whether a value may be one: a header or an environment variable whose name says so.
func (e *explainer) secret(path string) bool {
	keys := split(path)
	if len(keys) < 3 || (keys[len(keys)-2] != "headers" && keys[len(keys)-2] != "env") {
		return false
	}
	return Sensitive(keys[len(keys)-1])
}

// Sensitive tells whether a header or an environment variable of this name is likely to hold a
// secret.
func Sensitive(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"authorization", "cookie", "token", "secret", "password", "passwd", "key", "credential", "_url", "dsn", "auth"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// Duration writes a duration as briefly as it reads back: 336h, 5m, 1h30m, 250ms.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// plain writes text as YAML, in quotes unless it is plainly a word.
func plain(s string) string {
	simple := s != "" && !looksTyped(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./", r)
	}) && !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, ".")
	if simple {
		return s
	}
	return quote(s)
}

// quote writes a double-quoted YAML scalar.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Paths lists the dotted paths of the effective values, sorted; for tests and completion.
func (m *Manifest) Paths() []string { return slices.Sorted(maps.Keys(m.Origins)) }

// Text writes s as a YAML scalar that reads back as the same text, in quotes where needed.
func Text(s string) string { return plain(s) }
