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
// # Agent programs
//
// With Options.Agent the agent is another one, with prompts, tools and roles of its own. It plays each demonstrated task as
// it plays rollouts, but its calls go to an oracle: the environment says what an ideal policy, or one with the wrong habit,
// answers to each (env.Replier). A demonstration is then all of the calls of a run. A call whose conversation continues an
// earlier one of the same role is learnt with that as one sequence; the order of calls that run at once changes nothing.
// Answers that the agent demands a form of are written as the engine would write them within it, or refused. What an agent
// demands besides, such as a limit on tokens, it does not see in a demonstration.
//
// The answers of all roles are learnt, also of those that no rollout trains, as the policy answers them too; Options.Roles
// can leave some out, and the tokenizer and the limits still count those. Right demonstrations have to get the largest
// reward, and the first failure of environment or agent ends the recipe, with the task, the call and the role. The policy is
// measured with rollouts of the same agent.
//
// Which task demonstration n shows, and whether it shows a habit, is a pure function of the environment's name and
// version, the seed and n. What an agent program makes of it is up to the program.
package warmstart
