package manifest

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	yaml "github.com/goccy/go-yaml"
)

// TestGeneratedDocuments keeps docs/ equal to what the types give; `go test ./manifest -args update`
// writes them anew.
func TestGeneratedDocuments(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"seatrial.schema.json": writeSchema,
		"manifest.md":          WriteReference,
	} {
		var want bytes.Buffer
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "docs", name)
		if slices.Contains(flag.Args(), "update") {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not up to date; run `go test ./manifest -args update`", path)
		}
	}
}

func writeSchema(w io.Writer) error {
	b, err := Schema()
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// validate checks the part of JSON Schema that our schema uses, independently of how it was made.
func validate(s map[string]any, v any) bool {
	if one, ok := s["oneOf"].([]any); ok {
		n := 0
		for _, alt := range one {
			if validate(alt.(map[string]any), v) {
				n++
			}
		}
		return n == 1
	}
	if enum, ok := s["enum"].([]any); ok && !slices.ContainsFunc(enum, func(e any) bool { return toText(e) == toText(v) }) {
		return false
	}
	switch s["type"] {
	case "object":
		m, ok := v.(map[string]any)
		return ok && validObject(s, m)
	case "array":
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(item any) bool {
			items, ok := s["items"].(map[string]any)
			return ok && !validate(items, item)
		})
	case "string":
		text, ok := v.(string)
		pattern, has := s["pattern"].(string)
		return ok && (!has || regexp.MustCompile(pattern).MatchString(text))
	case "number", "integer":
		_, ok := v.(float64)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	}
	return true
}

func validObject(s, m map[string]any) bool {
	properties, _ := s["properties"].(map[string]any)
	for _, need := range listOf(s["required"]) {
		if _, ok := m[need.(string)]; !ok {
			return false
		}
	}
	for key, value := range m {
		if p, ok := properties[key].(map[string]any); ok {
			if !validate(p, value) {
				return false
			}
			continue
		}
		rest, open := s["additionalProperties"].(map[string]any)
		if !open || !validate(rest, value) {
			return false
		}
	}
	return true
}

func listOf(v any) []any { l, _ := v.([]any); return l }

func toText(v any) string { b, _ := json.Marshal(v); return string(b) }

func TestSchemaAgreesWithTheReader(t *testing.T) {
	raw, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"load:\n  enabled: true\n  source: otel\n  source_config: {path: traffic/production.otlp.json}\n  scale: 0.05\n  duration: 5m\n  safe_routes: [\"GET /**\", \"POST /api/search\"]\n  unsafe_routes: [\"DELETE /**\"]\n  traffic: {profile: .antifailure/traffic.json, max_age: 336h}\n  thresholds: {p95_increase: 0.25, error_rate: 0.01}\n",
		"load: {traffic: {profile: .antifailure/traffic.json, max_age: 336h}}\n",
		"services: {a: {run: x, health: /ready, env: {N: 5, S: x}}, b: {run: y, health: {path: /z, timeout: 5s}, depends_on: [a], resources: {cpu: 0.5, memory: 1GiB}}}\nload: {target: a, source: otel, source_config: {path: [a, b]}}\n",
		"targets: {a: {url: 'http://127.0.0.1:80', max_rate: 500/s}}\nload: {rate: 5, auth: {bearer: {env: T}}, headers: {A: b}, params: {'GET /o/{id}': {id: {values: [1, x], pick: zipf}}}}\n",
		"load: {source: loki, source_config: {url: 'http://l:3100', query: '{a=\"b\"}', since: 1h, tenant: 5}}\n",
		"load: {scael: 1}\n",
		"load: {source: datadog}\n",
		"load: {source: tempo}\n",
		"load: {thresholds: {query_count_increase: 0.1}}\n",
		"load: {scenarios: []}\n",
		"database: {}\n",
		"services: {a: {port: 80}}\n",
		"targets: {a: {url: 'http://127.0.0.1:80'}}\n",
		"load: {duration: 30}\n",
		"load: {enabled: 'true'}\n",
		"load: {rate: 5/d}\n",
		"version: 2\n",
	} {
		var generic any
		if err := yaml.Unmarshal([]byte(text), &generic); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(generic)
		if err != nil {
			t.Fatal(err)
		}
		var value any
		if err := json.Unmarshal(b, &value); err != nil {
			t.Fatal(err)
		}
		_, err = Parse([]byte(text), dir)
		if got := validate(s, value); got != (err == nil) {
			t.Errorf("schema says %v, the reader says %v for:\n%s", got, err, text)
		}
	}
}
