package credit

import "github.com/lightswarm/lightswarm/learner/named"

// Kinds are the ways to assign credit. What lets an Assigner's fields stand for their default at 0 is not in range here.
var Kinds = named.Table[Assigner]{
	Part: "credit",
	Kinds: []named.Kind[Assigner]{
		{
			Name: "to-go", About: "a call gets what came of it: its own reward, later calls' and the rollout's",
			Make: func(func(string) float64) Assigner { return ToGo{} },
		},
		{
			Name: "return", About: "each call gets the rollout's whole return, as in the paper",
			Make: func(func(string) float64) Assigner { return Return{} },
		},
		{
			Name: "discounted", About: "to-go, where what lies further ahead counts less",
			Parameters: []named.Parameter{discount(0.95)},
			Make:       func(v func(string) float64) Assigner { return ToGo{Discount: v("discount")} },
		},
		{
			Name: "intermediate", About: "a call gets the rollout's reward and its own, and no other call's",
			Parameters: []named.Parameter{weight("how much a call's own reward counts")},
			Make:       func(v func(string) float64) Assigner { return Intermediate{Weight: v("weight")} },
		},
		{
			Name: "turn-group", About: "adds a comparison of calls at the same decision point, one agent with one prompt (GiGPO)",
			Parameters: []named.Parameter{weight("how much that counts beside the rollouts'"), discount(1)},
			Make: func(v func(string) float64) Assigner {
				return TurnGroup{Weight: v("weight"), Discount: v("discount")}
			},
		},
		{
			Name: "counterfactual-agent", About: "compares an agent with itself in the group's other rollouts, and needs no advantage",
			Make: func(func(string) float64) Assigner { return CounterfactualAgent{} },
		},
		{
			Name: "gae", About: "generalised advantage estimates, where sibling rollouts say what a call is worth; needs no advantage",
			Parameters: []named.Parameter{
				discount(1),
				{Name: "lambda", Default: 0.95, Min: 0, Max: 1, About: "how much what happened counts, against what siblings say"},
			},
			Make: func(v func(string) float64) Assigner {
				return GAE{Critic: Siblings{Discount: v("discount")}, Discount: v("discount"), Lambda: v("lambda")}
			},
		},
		{
			Name: "critic", About: "generalised advantage estimates, where a value head on the policy's last hidden state learns what a call is worth",
			Parameters: []named.Parameter{
				discount(1),
				{Name: "lambda", Default: 0.95, Min: 0, Max: 1, About: "how much what happened counts, against what the head says"},
				{Name: "decay", Default: 0.9, Min: 0, Max: 0.9999, About: "what stays of older steps' weight at each step"},
				{Name: "ridge", Default: 0.1, Min: 0.001, Max: 1e6, About: "how strongly weights are held back"},
			},
			Make: func(v func(string) float64) Assigner {
				return LearnedGAE{Discount: v("discount"), Lambda: v("lambda"), Decay: v("decay"), Ridge: v("ridge")}
			},
		},
	},
}

func discount(standard float64) named.Parameter {
	return named.Parameter{Name: "discount", Default: standard, Min: 0.01, Max: 1, About: "what counts of a reward one call ahead"}
}

func weight(about string) named.Parameter {
	return named.Parameter{Name: "weight", Default: 1, Min: 0.001, Max: 1000, About: about}
}
