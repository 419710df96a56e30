package advantage

import "github.com/lightswarm/lightswarm/learner/named"

// Kinds are the estimators.
var Kinds = named.Table[Estimator]{
	Part: "advantage",
	Kinds: []named.Kind[Estimator]{
		plain("rloo", RLOO{}, "compares a rollout with the mean of the group's others"),
		plain("dr-grpo", DrGRPO{}, "compares with the group's mean"),
		plain("grpo", GRPO{}, "compares with the group's mean, and divides by its deviation"),
		plain("reinforce-pp", ReinforcePPBatch{}, "compares with the batch's mean, and divides by its deviation"),
		plain("reinforce-pp-baseline", ReinforcePP{}, "compares with the group's mean, and divides by the deviation over the batch"),
		{
			Name: "rae", About: "compares with a running average of what the same agent of the same environment returned",
			Parameters: []named.Parameter{{Name: "decay", Default: 0.95, Min: 0, Max: 0.9999, About: "what stays of the average at each rollout"}},
			Make:       func(v func(string) float64) Estimator { return RAE{Decay: v("decay")} },
		},
	},
}

func plain(name string, e Estimator, about string) named.Kind[Estimator] {
	return named.Kind[Estimator]{Name: name, About: about, Make: func(func(string) float64) Estimator { return e }}
}
