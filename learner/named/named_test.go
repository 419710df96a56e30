package named_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/named"
)

type shape struct {
	name      string
	low, high float64
}

var shapes = named.Table[shape]{
	Part: "shape",
	Kinds: []named.Kind[shape]{
		{Name: "circle", About: "has nothing to set", Make: func(func(string) float64) shape { return shape{name: "circle"} }},
		{
			Name: "box",
			Parameters: []named.Parameter{
				{Name: "low", Default: 0.5, Min: 0, Max: 1},
				{Name: "high", Default: 3, Min: 1, Max: 1e6, Whole: true},
			},
			Make: func(v func(string) float64) shape { return shape{"box", v("low"), v("high")} },
		},
	},
}

func TestParse(t *testing.T) {
	tests := []struct {
		spec, canonical string
		want            shape
	}{
		{"circle", "circle", shape{"circle", 0, 0}},
		{"box", "box low=0.5 high=3", shape{"box", 0.5, 3}},
		{"  box\thigh=1e5 ", "box low=0.5 high=100000", shape{"box", 0.5, 1e5}},
		{"box high=4 low=0.00003", "box low=0.00003 high=4", shape{"box", 3e-5, 4}},
	}
	for _, tt := range tests {
		got, err := shapes.Parse(tt.spec)
		if err != nil {
			t.Errorf("%q: %v", tt.spec, err)
			continue
		}
		if got.Part != tt.want || got.Spec != tt.canonical {
			t.Errorf("%q is %+v, %q; want %+v, %q", tt.spec, got.Part, got.Spec, tt.want, tt.canonical)
		}
	}
}

func TestRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"":                   "no shape is named; use circle or box",
		"bok":                `unknown shape "bok"; did you mean box; use circle or box`,
		"square":             `unknown shape "square"; use circle or box`,
		"circle low=1":       `shape circle: there is no parameter "low"; it has none`,
		"box hihg=4":         `shape box: there is no parameter "hihg"; did you mean high; it has low and high`,
		"box =4":             `shape box: there is no parameter ""; it has low and high`,
		"box low":            `shape box: "low" is not a parameter and a number; write it like name=0.5`,
		"box low=much":       `shape box: "low=much" is not a parameter and a number; write it like name=0.5`,
		"box low=0.1 low=.2": "shape box: low is there twice",
		"box low=1.5":        "shape box: low = 1.5: use 0 to 1",
		"box low=nan":        "shape box: low = NaN: use 0 to 1",
		"box high=inf":       "shape box: high = +Inf: use a whole number, 1 to 1000000",
		"box high=2.5":       "shape box: high = 2.5: use a whole number, 1 to 1000000",
	} {
		_, err := shapes.Parse(spec)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

// What a map chooses, its canonical specification chooses too, however it is put.
func TestSpecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := map[string]float64{}
		if rapid.Bool().Draw(t, "has low") {
			values["low"] = rapid.Float64Range(0, 1).Draw(t, "low")
		}
		if rapid.Bool().Draw(t, "has high") {
			values["high"] = math.Trunc(rapid.Float64Range(1, 1e6).Draw(t, "high"))
		}
		made, err := shapes.New("box", values)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(made.Spec)
		order := rapid.Permutation(words[1:]).Draw(t, "order")
		read, err := shapes.Parse(words[0] + " " + strings.Join(order, "  "))
		if err != nil {
			t.Fatal(err)
		}
		if read != made {
			t.Fatalf("%+v, written and read %+v", made, read)
		}
		for name, v := range values {
			got := map[string]float64{"low": read.Part.low, "high": read.Part.high}[name]
			if got != v {
				t.Fatalf("%s is %v of %v", name, got, slices.Collect(maps.Keys(values)))
			}
		}
	})
}

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{"circle", "box"}, shapes.Names()); diff != "" {
		t.Error(diff)
	}
}

// A kind that asks for a parameter that it has not is a mistake of the programmer.
func TestMakeAsksForWhatThereIs(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	k := named.Kind[float64]{Name: "wrong", Make: func(v func(string) float64) float64 { return v("absent") }}
	_, _ = k.New(nil)
}
