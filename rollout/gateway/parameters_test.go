package gateway

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParametersLeaveOutWhatSaysNothing(t *testing.T) {
	for schema, want := range map[string]string{
		``:                     ``,
		`null`:                 ``,
		`true`:                 `true`,
		`{ "type": "object" }`: `{ "type": "object" }`,
		// A schema as pydantic makes it, with a framework's own additions.
		`{"properties":{"expression":{"title":"Expression","type":"string"}},"required":["expression"],"title":"calculator_args","type":"object","additionalProperties":false}`: `{"properties":{"expression":{"type":"string"}},"required":["expression"],"type":"object","additionalProperties":false}`,
		`{"type":"object","properties":{"b":{"description":"b","title":"B","type":"string"},"a":{"type":"integer"}}}`:                                                           `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}}}`,
		// One as zod makes it.
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"$schema":{"type":"string"}}}`: `{"type":"object","properties":{"$schema":{"type":"string"}}}`,
		// What says something stays: a description, a property that is called title, names in other places.
		`{"type":"object","properties":{"a":{"type":"string","description":"a city"}}}`:                   `{"type":"object","properties":{"a":{"type":"string","description":"a city"}}}`,
		`{"type":"object","properties":{"title":{"type":"string","title":"Title"}}}`:                      `{"type":"object","properties":{"title":{"type":"string"}}}`,
		`{"description":"a","properties":{"a":{"items":{"title":"T","type":"string","enum":["title"]}}}}`: `{"description":"a","properties":{"a":{"items":{"type":"string","enum":["title"]}}}}`,
		`{"$defs":{"P":{"title":"P","type":"object","properties":{"x":{"title":"X"}}}},"title":["odd"]}`:  `{"$defs":{"P":{"type":"object","properties":{"x":{}}}},"title":["odd"]}`,
		`{"title":"all"}`: `{}`,
	} {
		if got := parameters(json.RawMessage(schema)); got != want {
			t.Errorf("%s\n  is %s\nwant %s", schema, got, want)
		}
	}
}

// Nobody writes schemas that deep but to keep others busy.
func TestParametersOfDeepSchemas(t *testing.T) {
	deep := strings.Repeat(`{"items":`, maxSchemaLevels) + `{"title":"x"}` + strings.Repeat(`}`, maxSchemaLevels)
	if got := parameters(json.RawMessage(deep)); got != deep {
		t.Errorf("%s became %s", deep, got)
	}
	if got := parameters(json.RawMessage(deep[len(`{"items":`) : len(deep)-1])); strings.Contains(got, "title") {
		t.Errorf("a title is left in %s", got)
	}
}

func FuzzParameters(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"title":"A","items":{"title":"x"}}},"title":1}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if depth, _ := extent(schema); !json.Valid(schema) || depth > maxDepth {
			return
		}
		got := parameters(schema)
		if got != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s became %s", schema, got)
		}
		if again := parameters(json.RawMessage(got)); again != got {
			t.Errorf("%s became %s and then %s", schema, got, again)
		}
	})
}
