package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// Schema gives the JSON Schema that editors use, generated from the types of this package.
// docs/seatrial.schema.json holds it.
func Schema() ([]byte, error) {
	b, err := json.MarshalIndent(schema(), "", "  ")
	return append(b, '\n'), err
}

// schema reflects the types. Keys that are not known are refused by the schema as by the reader.
func schema() *jsonschema.Schema {
	r := &jsonschema.Reflector{
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		Anonymous:                  true,
		DoNotReference:             true,
		ExpandedStruct:             true,
		Mapper:                     mapper,
	}
	s := r.Reflect(&Manifest{})
	s.Title = "Seatrial manifest"
	s.Description = "seatrial.yaml, version 1."
	loosen(s, reflect.TypeFor[Manifest]())
	return s
}

// mapper gives the types that are not written as Go would.
func mapper(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case reflect.TypeFor[JSON]():
		return &jsonschema.Schema{}
	case reflect.TypeFor[Rate]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "number", Minimum: "0"},
			{Type: "string", Pattern: `^[0-9]+(\.[0-9]+)?(/[smh])?$`},
		}}
	}
	return nil
}

// loosen follows the types once more and says where a value may be written in another way: a path
// for a health mapping, a single value for a list, a number for text.
func loosen(s *jsonschema.Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := keyOf(f)
		if key == "" {
			continue
		}
		p, ok := s.Properties.Get(key)
		if !ok {
			continue
		}
		writable(p, f)
		inner, at := f.Type, p
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Map {
			if inner.Kind() == reflect.Map {
				at = at.AdditionalProperties
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && at != nil && at.Properties != nil {
			loosen(at, inner)
		}
		if f.Type == reflect.TypeFor[Health]() {
			p.OneOf = []*jsonschema.Schema{{Type: "string", Pattern: "^/"}, {Type: "object", Properties: p.Properties, AdditionalProperties: jsonschema.FalseSchema}}
			p.Type, p.Properties, p.AdditionalProperties = "", nil, nil
		}
	}
}

// writable applies the style of a field to its schema.
func writable(p *jsonschema.Schema, f reflect.StructField) {
	anything := &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
	switch s := styleOf(f); {
	case s.text && f.Type.Kind() == reflect.Map:
		p.AdditionalProperties = anything
	case s.text && f.Type.Kind() == reflect.String: // versions, which look like numbers
		for _, v := range p.Enum {
			if n, err := strconv.ParseFloat(v.(string), 64); err == nil {
				p.Enum = append(p.Enum, n)
			}
		}
		p.Type = ""
	case s.text:
		p.Items = anything
	case s.oneOrMany:
		p.OneOf = []*jsonschema.Schema{{Type: p.Items.Type}, {Type: "array", Items: p.Items}}
		p.Type, p.Items = "", nil
	}
}

// WriteReference writes docs/manifest.md: every key with its type, default and meaning.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString(referenceHead)
	rows(&b, "", reflect.TypeFor[Manifest]())
	b.WriteString(referenceTail)
	for _, r := range removed() {
		fmt.Fprintf(&b, "| `%s` | removed: %s |\n", r.path, r.why)
	}
	b.WriteString("| `load.source: datadog` | removed: use `otel`, `access_log`, `loki` or `none` |\n")
	for _, r := range later() {
		fmt.Fprintf(&b, "| `%s` | not in this build: %s |\n", r.path, r.why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const referenceHead = `# The manifest

` + "`seatrial.yaml`" + ` says what a project is made of, what is sent to it, and what must hold. This page is
generated from the types that read it, as is ` + "`seatrial.schema.json`" + ` beside it, which editors can use:

` + "```yaml" + `
# yaml-language-server: $schema=docs/seatrial.schema.json
` + "```" + `

Keys that are not known are refused by name, with the nearest known key; all problems of a file are
told at once, each with its line, its column and the line itself. ` + "`seatrial explain`" + ` prints the effective
configuration and where each value came from. Anchors, aliases and merge keys work. A file is one YAML
document of at most 1 MiB and 10,000 keys.

Durations carry a unit (` + "`30s`, `5m`, `336h`" + `). Rates are ` + "`500/s`, `30/m`" + ` or a bare number per second. Shares are
numbers from 0 to 1. In ` + "`build`, `run` and `env`" + ` of a service, ` + "`${PORT}`, `${service.NAME.url}` and `${env:NAME}`" + `
are substituted, and nothing else in ` + "`${...}`" + ` is accepted; in ` + "`load.headers`, `load.requests.*.headers` and `load.requests.*.body`" + ` only ` + "`${env:NAME}`" + ` is.

| key | written as | default | meaning |
|---|---|---|---|
`

const referenceTail = `
` + "`p95_increase`" + ` compares with a baseline, so it needs durations: under ` + "`access_log`, `loki`" + ` or ` + "`none`" + ` it is refused
(MAN-006) unless ` + "`load.traffic.profile`" + ` names a profile or
` + "`load.source_config.format`" + ` names a log format that carries durations (docs/log-formats.md), and no
default fills it in there.

In a smoke the manifest's duration, scale and warm-up give way to 10 s, 0.1 and none, unless a flag
sets them; under source ` + "`none`" + ` the manifest's own scale is kept.

## Keys that are refused by name

| key | why |
|---|---|
`

func rows(b *strings.Builder, path string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key := keyOf(f)
		if key == "" {
			continue
		}
		full := strings.TrimPrefix(path+"."+key, ".")
		inner, name := f.Type, written(f)
		for inner.Kind() == reflect.Map || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Map && inner.Elem().Kind() != reflect.String {
				full += ".NAME"
			}
			inner = inner.Elem()
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", full, name, tagged(f, "default"), strings.ReplaceAll(f.Tag.Get("jsonschema_description"), "|", "\\|"))
		if inner.Kind() == reflect.Struct {
			rows(b, full, inner)
		}
	}
}

// tagged reads one setting of a field's jsonschema tag.
func tagged(f reflect.StructField, name string) string {
	for part := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
		if v, ok := strings.CutPrefix(part, name+"="); ok {
			return "`" + v + "`"
		}
	}
	return ""
}

// written says in a word or two how a value is written.
func written(f reflect.StructField) string {
	if strings.Contains(f.Tag.Get("jsonschema"), "enum=") {
		var out []string
		for part := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
			if v, ok := strings.CutPrefix(part, "enum="); ok && v != "" {
				out = append(out, "`"+v+"`")
			}
		}
		return strings.Join(out, ", ")
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[Rate]():
		return "rate"
	case t == reflect.TypeFor[Health]():
		return "path or mapping"
	case t == reflect.TypeFor[JSON]():
		return "anything"
	case styleOf(f).oneOrMany && t.Elem().Kind() == reflect.Int:
		return "whole number or list"
	case styleOf(f).oneOrMany:
		return "text or list"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "`true`, `false`"
	case reflect.String:
		return "text"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "mapping"
	default:
		return "whole number"
	}
}
