package loss

import (
	"fmt"
	"strings"

	"github.com/lightswarm/lightswarm/learner/named"
)

// Parameters that several kinds have.
var (
	clipLow  = named.Parameter{Name: "low", Default: 0.2, Min: 0, Max: 1, About: "how far below 1 a ratio may fall"}
	clipHigh = named.Parameter{Name: "high", Default: 0.28, Min: 0, Max: 1, About: "how far above 1 a ratio may rise"}
)

// Kinds are the losses.
var Kinds = named.Table[Function]{
	Part: "loss",
	Kinds: []named.Kind[Function]{
		{
			Name: "dppo", About: "masks tokens whose probability has moved too far, with a capped ratio and a pull back",
			Parameters: []named.Parameter{
				{Name: "threshold", Default: 0.2, Min: 0, Max: 1, About: "how far a probability may move"},
				weightCap(4),
				{Name: "kl", Default: 1e-3, Min: 0, Max: 10, About: "how strong the pull is"},
			},
			Make: func(v func(string) float64) Function { return DPPO{v("threshold"), v("cap"), v("kl")} },
		},
		{
			Name: "ppo", About: "clips the ratio, further away upward", Parameters: []named.Parameter{clipLow, clipHigh},
			Make: func(v func(string) float64) Function { return PPO{v("low"), v("high")} },
		},
		{
			Name: "ppo-two-sided", About: "ppo that also gives up unwanted tokens which grew too much (INTELLECT-2)",
			Parameters: []named.Parameter{clipLow, clipHigh, growthCap(4)}, Make: makeTwoSided,
		},
		{
			Name: "ppo-dual", About: "the same as ppo-two-sided, with the value that dual-clip PPO has",
			Parameters: []named.Parameter{clipLow, clipHigh, growthCap(3)}, Make: makeTwoSided,
		},
		{
			Name: "decoupled", About: "clips the ratio to the newest release, and corrects for the data's age",
			Parameters: []named.Parameter{clipLow, clipHigh, weightCap(5)},
			Make:       func(v func(string) float64) Function { return Decoupled{v("low"), v("high"), v("cap")} },
		},
		{
			Name: "reinforce", About: "takes all data for the policy's own: corrects and bounds nothing",
			Make: func(func(string) float64) Function { return Reinforce{} },
		},
		{
			Name: "tis", About: "weighs tokens with the truncated ratio", Parameters: []named.Parameter{weightCap(2)},
			Make: func(v func(string) float64) Function { return TIS{v("cap")} },
		},
		{
			Name: "cispo", About: "weighs tokens with the clipped ratio",
			Parameters: []named.Parameter{
				{Name: "low", Default: 1, Min: 0, Max: 1, About: "how far below 1 a weight may fall; 1 sets no limit"},
				{Name: "high", Default: 0.28, Min: 0, Max: 100, About: "how far above 1 a weight may rise"},
			},
			Make: func(v func(string) float64) Function { return CISPO{v("low"), v("high")} },
		},
		{
			Name: "masked-is", About: "weighs tokens with the ratio, without those whose ratio is an outlier (IcePop)",
			Parameters: window(0.5, 5), Make: func(v func(string) float64) Function { return MaskedIS{v("low"), v("high")} },
		},
		{
			Name: "gspo", About: "clips the geometric mean of a row's ratios",
			Parameters: []named.Parameter{
				{Name: "low", Default: 3e-4, Min: 0, Max: 1, About: "how far below 1 the mean may fall"},
				{Name: "high", Default: 4e-4, Min: 0, Max: 1, About: "how far above 1 the mean may rise"},
			},
			Make: func(v func(string) float64) Function { return GSPO{v("low"), v("high")} },
		},
		{
			Name: "sequence-tis", About: "weighs a row with its truncated ratio", Parameters: []named.Parameter{weightCap(5)},
			Make: func(v func(string) float64) Function { return SequenceTIS{v("cap")} },
		},
		{
			Name: "m2po", About: "masks the outliers of a row until the second moment of what is left is small",
			Parameters: []named.Parameter{{Name: "tau", Default: 0.04, Min: 0, Max: 100, About: "the largest mean of (ln w)^2"}},
			Make:       func(v func(string) float64) Function { return M2PO{v("tau")} },
		},
	},
}

// Additions are what can be put around a loss.
var Additions = named.Table[func(Function) Function]{
	Part: "addition to a loss",
	Kinds: []named.Kind[func(Function) Function]{
		{
			Name: "geometric", About: "gives up rows whose geometric mean of ratios is not near 1", Parameters: window(0.99, 1.01),
			Make: func(v func(string) float64) func(Function) Function {
				return masked(GeometricMean{v("low"), v("high")})
			},
		},
		{
			Name: "veto", About: "gives up rows in which any ratio is an outlier", Parameters: window(1e-4, 100),
			Make: func(v func(string) float64) func(Function) Function { return masked(Veto{v("low"), v("high")}) },
		},
		penalty("k1", K1, "adds ln w, which does not pull back; to compare with"),
		penalty("k2", K2, "adds (ln w)^2/2, which pulls back to the behaviour policy"),
		penalty("k3", K3, "adds 1/w - 1 + ln w, which pulls back to the behaviour policy"),
	},
}

// Parse reads the specification of a loss, and of what is put around it, from the inside out, each after a plus sign
// between spaces: "tis cap=3 + veto + k2 weight=0.01". The order matters: what a mask gives up, an addition after it
// still pulls back. Its error is as that of named.Table.
func Parse(spec string) (named.Choice[Function], error) {
	parts := strings.Split(" "+strings.Join(strings.Fields(spec), " ")+" ", " + ")
	made, err := Kinds.Parse(parts[0])
	if err != nil {
		return made, err
	}
	for _, part := range parts[1:] {
		around, err := Additions.Parse(part)
		if err != nil {
			return named.Choice[Function]{}, fmt.Errorf("after +: %w", err)
		}
		made.Part, made.Spec = around.Part(made.Part), made.Spec+" + "+around.Spec
	}
	return made, nil
}

func makeTwoSided(v func(string) float64) Function { return TwoSided{v("low"), v("high"), v("cap")} }

func weightCap(standard float64) named.Parameter {
	return named.Parameter{Name: "cap", Default: standard, Min: 1, Max: 1e6, About: "the largest weight"}
}

// growthCap is above every 1+high.
func growthCap(standard float64) named.Parameter {
	return named.Parameter{Name: "cap", Default: standard, Min: 2, Max: 1e6, About: "the ratio above which an unwanted token is given up"}
}

// window holds 1.
func window(low, high float64) []named.Parameter {
	return []named.Parameter{
		{Name: "low", Default: low, Min: 0, Max: 1, About: "the least that is kept"},
		{Name: "high", Default: high, Min: 1, Max: 1e6, About: "the largest that is kept"},
	}
}

func masked(m Mask) func(Function) Function {
	return func(f Function) Function { return Masked{f, m} }
}

func penalty(name string, e Estimator, about string) named.Kind[func(Function) Function] {
	return named.Kind[func(Function) Function]{
		Name: name, About: about,
		Parameters: []named.Parameter{{Name: "weight", Default: 1e-3, Min: 0, Max: 10, About: "how much it counts"}},
		Make: func(v func(string) float64) func(Function) Function {
			return func(f Function) Function { return Penalty{f, e, v("weight")} }
		},
	}
}
