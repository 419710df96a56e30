// Package warmstart holds the recipes by which a policy is made for an environment, from nothing: what package pretrain
// needs, for any environment that says how its tasks are solved. Package policy/base carries what the recipe of
// environment calc makes.
//
// # Demonstrations
//
// A demonstration is the conversation of the built-in agent's own loop with an episode, in which the environment's
// solution takes the place of the policy: one tool call in each message, and then the answer. So its prompts are, to the
// token, those of a rollout whose policy does the same.
//
// Where an environment names wrong habits (env.Habitual), most demonstrations show one of them, WrongPermille in a
// thousand. A policy that imitates them knows the form and both ways, prefers the wrong one, and so leaves reinforcement
// learning something to change: its greedy success is about 0, its sampled success about the share of right
// demonstrations. Without a habit all are right, and how much is left to learn is up to how soon training ends.
//
// Which task demonstration n shows, and whether it shows a habit, is a pure function of the environment's name and
// version, the seed and n.
package warmstart
