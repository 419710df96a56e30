package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSchemaSteps bounds the work of one check, which references between schemas could make without end.
const maxSchemaSteps = 1 << 14

// errUnchecked says that a schema asks for something that this package cannot check.
var errUnchecked = errors.New("the schema cannot be checked")

// conforms returns nil if text is JSON as a JSON schema wants it, else what is wrong with it, or errUnchecked. It knows
// what OpenAI's structured outputs allow: types, properties, items, enum, const, anyOf, allOf, bounds, and references
// to definitions in the same schema. Annotations, among them format, assert nothing.
func conforms(text string, schema []byte) error {
	var value, root any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return fmt.Errorf("%w: %w", errUnchecked, err)
	}
	c := &checker{root: root, left: maxSchemaSteps}
	return c.check(root, value, "$")
}

// checker checks values against the parts of one schema.
type checker struct {
	root any
	left int // steps
}

// check checks the value at a path.
func (c *checker) check(schema, value any, path string) error {
	if c.left--; c.left < 0 {
		return fmt.Errorf("%w: it has no end", errUnchecked)
	}
	if all, ok := schema.(bool); ok {
		if !all {
			return fmt.Errorf("%s is not allowed", path)
		}
		return nil
	}
	s, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("%w at %s: it is neither an object nor a boolean", errUnchecked, path)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) { // in order, so that of several faults it is always the same
		want := s[keyword]
		check, known := keywords[keyword]
		if !known {
			return fmt.Errorf("%w at %s: %q is unknown", errUnchecked, path, clip(keyword))
		}
		if check == nil {
			continue
		}
		if err := check(c, s, want, value, path); err != nil {
			return err
		}
	}
	return nil
}

// keywords are what a schema may say: how the keyword with a value in a schema is checked, nil if it asserts nothing
// alone. It is filled in by init because checks of parts come back to it.
var keywords map[string]func(c *checker, s map[string]any, want, value any, path string) error

func init() {
	keywords = map[string]func(c *checker, s map[string]any, want, value any, path string) error{
		"$schema": nil, "$id": nil, "$comment": nil, "$defs": nil, "definitions": nil, "title": nil, "description": nil,
		"default": nil, "examples": nil, "format": nil, "deprecated": nil, "readOnly": nil, "writeOnly": nil,

		"$ref": checkReference, "type": checkType, "enum": checkEnum, "const": checkConst, "anyOf": checkAnyOf, "allOf": checkAllOf,
		"properties": checkProperties, "required": checkRequired, "additionalProperties": checkAdditional, "items": checkItems,
		"minItems": bound(length[[]any], 1), "maxItems": bound(length[[]any], -1),
		"minLength": bound(runes, 1), "maxLength": bound(runes, -1),
		"minProperties": bound(length[map[string]any], 1), "maxProperties": bound(length[map[string]any], -1),
		"minimum": bound(number, 1), "maximum": bound(number, -1),
		"exclusiveMinimum": bound(number, 2), "exclusiveMaximum": bound(number, -2),
	}
}

// checkReference checks against the definition that a JSON pointer into the schema names.
func checkReference(c *checker, _ map[string]any, want, value any, path string) error {
	pointer, _ := want.(string)
	if plain, err := url.PathUnescape(pointer); err == nil { // it is a part of a URI
		pointer = plain
	}
	rest, inside := strings.CutPrefix(pointer, "#")
	target := c.root
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if part == "" && rest == "" {
			break
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		object, _ := target.(map[string]any)
		if target = object[part]; target == nil {
			inside = false
		}
	}
	if !inside {
		return fmt.Errorf("%w at %s: there is no %q in it", errUnchecked, path, clip(pointer))
	}
	return c.check(target, value, path)
}

func checkType(_ *checker, _ map[string]any, want, value any, path string) error {
	names, isList := want.([]any)
	if !isList {
		names = []any{want}
	}
	is := typeOf(value)
	for _, name := range names {
		if name == is || name == "number" && is == "integer" {
			return nil
		}
	}
	return fmt.Errorf("%s is of type %s, want %v", path, is, want)
}

// typeOf is a decoded value's type in JSON schema's words.
func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func checkEnum(_ *checker, _ map[string]any, want, value any, path string) error {
	list, _ := want.([]any)
	if !slices.ContainsFunc(list, func(w any) bool { return reflect.DeepEqual(w, value) }) {
		return fmt.Errorf("%s is none of the values that are allowed", path)
	}
	return nil
}

func checkConst(_ *checker, _ map[string]any, want, value any, path string) error {
	if !reflect.DeepEqual(want, value) {
		return fmt.Errorf("%s is not the value that is allowed", path)
	}
	return nil
}

// checkAnyOf wants one of the schemas to hold. If none does and one cannot be checked, the whole cannot.
func checkAnyOf(c *checker, _ map[string]any, want, value any, path string) error {
	list, _ := want.([]any)
	var unchecked error
	for _, schema := range list {
		err := c.check(schema, value, path)
		switch {
		case err == nil:
			return nil
		case c.left < 0:
			return err
		case errors.Is(err, errUnchecked):
			unchecked = err
		}
	}
	if unchecked != nil {
		return unchecked
	}
	return fmt.Errorf("%s is none of what is allowed", path)
}

func checkAllOf(c *checker, _ map[string]any, want, value any, path string) error {
	list, _ := want.([]any)
	for _, schema := range list {
		if err := c.check(schema, value, path); err != nil {
			return err
		}
	}
	return nil
}

func checkProperties(c *checker, _ map[string]any, want, value any, path string) error {
	schemas, _ := want.(map[string]any)
	object, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if schema, ok := schemas[name]; ok {
			if err := c.check(schema, object[name], path+"."+clip(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkRequired(_ *checker, _ map[string]any, want, value any, path string) error {
	names, _ := want.([]any)
	object, isObject := value.(map[string]any)
	for _, name := range names {
		if name, ok := name.(string); ok && isObject {
			if _, has := object[name]; !has {
				return fmt.Errorf("%s lacks %q", path, clip(name))
			}
		}
	}
	return nil
}

func checkAdditional(c *checker, s map[string]any, want, value any, path string) error {
	known, _ := s["properties"].(map[string]any)
	object, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, ok := known[name]; !ok {
			if err := c.check(want, object[name], path+"."+clip(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkItems(c *checker, _ map[string]any, want, value any, path string) error {
	list, _ := value.([]any)
	for i, v := range list {
		if err := c.check(want, v, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// bound checks a limit on what measure finds in a value, if it is of the right type: a lower limit if side is
// positive, else an upper one, and one that is not reached itself if it is 2 or -2.
func bound(measure func(value any) (float64, bool), side int) func(*checker, map[string]any, any, any, string) error {
	return func(_ *checker, _ map[string]any, want, value any, path string) error {
		limit, ok := want.(float64)
		if !ok {
			return fmt.Errorf("%w at %s: a bound is no number", errUnchecked, path)
		}
		got, ok := measure(value)
		beyond := got < limit
		if side < 0 {
			beyond = got > limit
		}
		if ok && (beyond || got == limit && (side == 2 || side == -2)) {
			return fmt.Errorf("%s is beyond a bound of %v", path, limit)
		}
		return nil
	}
}

func number(value any) (float64, bool) {
	v, ok := value.(float64)
	return v, ok
}

func runes(value any) (float64, bool) {
	v, ok := value.(string)
	return float64(utf8.RuneCountInString(v)), ok
}

func length[T any](value any) (float64, bool) {
	v, ok := value.(T)
	if !ok {
		return 0, false
	}
	return float64(reflect.ValueOf(v).Len()), true
}
