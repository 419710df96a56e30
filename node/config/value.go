package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. Its text form is a number with an optional unit: B, KiB, MiB, GiB or TiB.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  Size
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1},
}

// String writes s in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.suffix
		}
	}
	return "0B"
}

// parseSize reads what String writes, and a bare number of bytes.
func parseSize(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), Size(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > int64(1<<62/unit) {
		return 0, fmt.Errorf("want a size such as 512MiB or 4GiB")
	}
	return Size(n) * unit, nil
}

// value is one setting as text. It has the methods of pflag.Value, so that a flag can be made of it.
type value interface {
	Set(text string) error
	String() string
	Type() string
}

// scalar adapts a pointer and its two conversions to value.
type scalar[T any] struct {
	target *T
	parse  func(string) (T, error)
	format func(T) string
	kind   string
}

func (s scalar[T]) Set(text string) error {
	v, err := s.parse(text)
	if err != nil {
		return err
	}
	*s.target = v
	return nil
}

func (s scalar[T]) String() string {
	if s.target == nil {
		return ""
	}
	return s.format(*s.target)
}

func (s scalar[T]) Type() string { return s.kind }

func textValue(p *string) value {
	same := func(s string) string { return s }
	return scalar[string]{p, func(s string) (string, error) { return s, nil }, same, "string"}
}

func boolValue(p *bool) value {
	return scalar[bool]{p, func(s string) (bool, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, fmt.Errorf("want true or false")
		}
		return v, nil
	}, strconv.FormatBool, "bool"}
}

func intValue(p *int) value {
	return scalar[int]{p, func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("want a whole number")
		}
		return v, nil
	}, strconv.Itoa, "int"}
}

func floatValue(p *float64) value {
	return scalar[float64]{p, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0, fmt.Errorf("want a number")
		}
		return v, nil
	}, func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }, "float"}
}

func durationValue(p *time.Duration) value {
	return scalar[time.Duration]{p, func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("want a duration such as 90s or 5m")
		}
		return v, nil
	}, time.Duration.String, "duration"}
}

func sizeValue(p *Size) value {
	return scalar[Size]{p, parseSize, Size.String, "size"}
}

// listValue is a list with commas in its text form; spaces around an element and empty elements do not count.
func listValue[T ~string](p *[]T) value {
	return list[T]{scalar[[]T]{p, func(s string) ([]T, error) {
		var list []T
		for element := range strings.SplitSeq(s, ",") {
			if element = strings.TrimSpace(element); element != "" {
				list = append(list, T(element))
			}
		}
		return list, nil
	}, func(list []T) string {
		texts := make([]string, len(list))
		for i, element := range list {
			texts[i] = string(element)
		}
		return strings.Join(texts, ",")
	}, "list"}}
}

type list[T ~string] struct{ scalar[[]T] }

// join makes a text of an array in a file.
func (list[T]) join(elements []string) (string, error) {
	for _, e := range elements {
		if strings.Contains(e, ",") {
			return "", fmt.Errorf("element %q contains a comma; make it two elements", e)
		}
	}
	return strings.Join(elements, ","), nil
}

// repeatable is a list's flag: given more than once, its lists are joined.
type repeatable struct {
	value
	given bool
}

func (r *repeatable) Set(text string) error {
	if r.given {
		text = r.String() + "," + text
	}
	r.given = true
	return r.value.Set(text)
}
