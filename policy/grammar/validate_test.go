package grammar

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// validates says whether a decoded value is valid by a decoded schema: the words of the specification, and nothing of
// the code under test.
func validates(root map[string]any, schema, value any) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return schema == true
	}
	list := func(keyword string) []any { l, _ := s[keyword].([]any); return l }
	number := func(keyword string, otherwise float64) float64 {
		if n, ok := s[keyword].(int); ok {
			return float64(n)
		}
		return otherwise
	}
	if ref, ok := s["$ref"].(string); ok {
		target := any(root)
		if ref != "#" {
			target = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")]
		}
		return validates(root, target, value)
	}
	if parts := list("anyOf"); parts != nil && !slices.ContainsFunc(parts, func(s any) bool { return validates(root, s, value) }) {
		return false
	}
	if values := list("enum"); values != nil && !slices.ContainsFunc(values, func(v any) bool { return equal(v, value) }) {
		return false
	}
	if want, ok := s["const"]; ok && !equal(want, value) {
		return false
	}
	if t, ok := s["type"]; ok {
		names, ok := t.([]any)
		if !ok {
			names = []any{t}
		}
		if !slices.ContainsFunc(names, func(n any) bool { return isA(value, n.(string)) }) {
			return false
		}
	}
	switch v := value.(type) {
	case string:
		n := float64(utf8.RuneCountInString(v))
		return n >= number("minLength", 0) && n <= number("maxLength", math.Inf(1))
	case float64:
		return v >= number("minimum", math.Inf(-1)) && v <= number("maximum", math.Inf(1))
	case []any:
		if n := float64(len(v)); n < number("minItems", 0) || n > number("maxItems", math.Inf(1)) {
			return false
		}
		for _, item := range v {
			if items, ok := s["items"]; ok && !validates(root, items, item) {
				return false
			}
		}
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, member := range v {
			part, ok := properties[name]
			if !ok {
				if part, ok = s["additionalProperties"]; !ok {
					part = true
				}
			}
			if !validates(root, part, member) {
				return false
			}
		}
		for _, name := range list("required") {
			if _, ok := v[name.(string)]; !ok {
				return false
			}
		}
	}
	return true
}

func equal(a, b any) bool {
	if n, ok := a.(int); ok {
		return float64(n) == b
	}
	return reflect.DeepEqual(a, b)
}

func isA(value any, name string) bool {
	switch v := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// drawSchema draws a schema of the subset, with some definitions that may refer to one another.
func drawSchema(t *rapid.T) any {
	definitions := rapid.IntRange(0, 3).Draw(t, "definitions")
	s := drawPart(t, 3, definitions).(map[string]any)
	if definitions > 0 {
		all := map[string]any{}
		for i := range definitions {
			all[fmt.Sprint("d", i)] = drawPart(t, 2, definitions)
		}
		s["$defs"] = all
	}
	return s
}

// drawPart draws a part. What refers to a definition always has another way out, and takes something before.
func drawPart(t *rapid.T, depth, definitions int) any {
	kinds := []string{"string", "short", "integer", "range", "number", "boolean", "null", "enum", "const", "types"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "map", "array", "array", "anyOf")
		if definitions > 0 {
			kinds = append(kinds, "reference")
		}
	}
	name := rapid.SampledFrom([]string{"name", "a", "b", "answer", "list", "é\"\n", "a.b", "explanation"})
	part := func() any { return drawPart(t, depth-1, definitions) }
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "short":
		low := rapid.IntRange(0, 3).Draw(t, "low")
		return map[string]any{"type": "string", "minLength": low, "maxLength": low + rapid.IntRange(0, 4).Draw(t, "more")}
	case "range":
		low := rapid.IntRange(-30, 30).Draw(t, "low")
		return map[string]any{"type": "integer", "minimum": low, "maximum": low + rapid.IntRange(0, 200).Draw(t, "more")}
	case "enum":
		values := rapid.SliceOfN(rapid.SampledFrom([]any{"a", "ab", "abc", 1, 12, -3, nil, true, "\"\\\t\x01"}), 1, 5).Draw(t, "values")
		return map[string]any{"enum": values}
	case "const":
		return map[string]any{"const": rapid.SampledFrom([]any{"x", 7, nil, false, map[string]any{"k": []any{"v"}}}).Draw(t, "value")}
	case "types":
		return map[string]any{"type": []any{"null", rapid.SampledFrom([]string{"string", "integer", "boolean", "number"}).Draw(t, "type")}}
	case "object":
		properties, required := map[string]any{}, []any{}
		for _, name := range rapid.SliceOfNDistinct(name, 0, 4, rapid.ID).Draw(t, "names") {
			properties[name] = part()
			if rapid.Bool().Draw(t, "required") {
				required = append(required, name)
			}
		}
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": rapid.Bool().Draw(t, "open")}
	case "map":
		return map[string]any{"type": "object", "additionalProperties": part()}
	case "array":
		s := map[string]any{"type": "array", "items": part()}
		low := rapid.IntRange(0, 2).Draw(t, "low")
		if rapid.Bool().Draw(t, "bounded below") {
			s["minItems"] = low
		}
		if rapid.Bool().Draw(t, "bounded above") {
			s["maxItems"] = low + rapid.IntRange(0, 3).Draw(t, "more")
		}
		return s
	case "anyOf":
		return map[string]any{"anyOf": []any{part(), part()}}
	case "reference":
		reference := map[string]any{"$ref": fmt.Sprint("#/$defs/d", rapid.IntRange(0, definitions-1).Draw(t, "definition"))}
		return map[string]any{"type": "object", "properties": map[string]any{"r": map[string]any{"anyOf": []any{
			map[string]any{"type": "null"}, map[string]any{"type": "array", "items": reference},
		}}}, "required": []any{"r"}, "additionalProperties": false}
	default:
		return map[string]any{"type": kind}
	}
}
