package evidence

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/invopop/jsonschema"

	"seatrial/judge"
)

// JSONSchema gives the JSON Schema (2020-12) of run.json, made from the Go types. It is committed as
// docs/run.schema.json.
func JSONSchema() ([]byte, error) {
	r := &jsonschema.Reflector{
		ExpandedStruct:            true,
		AllowAdditionalProperties: true, // a later version may add keys; a reader ignores what it does not know
		Mapper:                    schemaOf,
	}
	s := r.Reflect(&Run{})
	s.ID = ""
	s.Title = "Seatrial run.json"
	s.Description = "What one run measured, what was judged, and the verdict. Durations whose name ends in _ns are nanoseconds."
	if p, ok := s.Properties.Get("schema"); ok {
		p.Const = SchemaVersion
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// schemaOf gives the types whose JSON form is not that of their Go kind.
func schemaOf(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[judge.Verdict]():
		words := make([]any, 0, 4)
		for _, v := range []judge.Verdict{judge.Unverified, judge.Pass, judge.Fail, judge.Blocked} {
			words = append(words, v.String())
		}
		return &jsonschema.Schema{Type: "string", Enum: words}
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "integer", Description: "nanoseconds"}
	}
	return nil
}
