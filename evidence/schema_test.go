package evidence_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"seatrial/evidence"
)

// schemaPath is docs/run.schema.json from this package's folder.
var schemaPath = filepath.Join("..", "docs", "run.schema.json")

// Set SEATRIAL_UPDATE=1 to write the committed schema anew.
func TestCommittedSchemaIsUpToDate(t *testing.T) {
	got, err := evidence.JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("SEATRIAL_UPDATE") != "" {
		if err := os.WriteFile(schemaPath, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/run.schema.json is out of date; run SEATRIAL_UPDATE=1 go test ./evidence")
	}
}

// What is written has no key that the schema lacks, and each key that it requires.
func TestRunFitsItsSchema(t *testing.T) {
	text, err := evidence.JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := evidence.Write(&out, filled(t)); err != nil {
		t.Fatal(err)
	}
	var run any
	if err := json.Unmarshal(out.Bytes(), &run); err != nil {
		t.Fatal(err)
	}
	defs, _ := schema["$defs"].(map[string]any)
	fits(t, "run", schema, defs, run)
}

func fits(t *testing.T, path string, schema, defs map[string]any, v any) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		def, ok := defs[filepath.Base(ref)].(map[string]any)
		if !ok {
			t.Fatalf("%s: %s is not defined", path, ref)
		}
		schema = def
	}
	switch v := v.(type) {
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		if props == nil {
			return
		}
		for k, x := range v {
			p, ok := props[k].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is not in the schema", path, k)
				continue
			}
			fits(t, path+"."+k, p, defs, x)
		}
		required, _ := schema["required"].([]any)
		for _, k := range required {
			if _, ok := v[k.(string)]; !ok {
				t.Errorf("%s.%s is required and missing", path, k)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, x := range v {
			fits(t, path+"[]", items, defs, x)
		}
	case string:
		if schema["type"] != "string" {
			t.Errorf("%s is a string, the schema says %v", path, schema["type"])
		}
	case float64:
		if schema["type"] != "number" && schema["type"] != "integer" {
			t.Errorf("%s is a number, the schema says %v", path, schema["type"])
		}
	}
}
