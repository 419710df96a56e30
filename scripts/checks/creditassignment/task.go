package main

import "github.com/lightswarm/lightswarm/scripts/checks/chains"

// A rollout is one call of each role, in this order. Its task has a topic and a deciding role: when that role answers with
// the topic's arm the rollout succeeds, and what the others answer changes nothing. Over the tasks each role decides as
// often as the others, so that nothing but the comparison of rollouts tells who did.
var roles = []string{"planner", "researcher", "writer", "editor"}

const (
	topics = 8
	// arms is how many answers there are: a token's arm is its remainder, so that a new policy is right about one time in
	// so many.
	arms  = 4
	tasks = topics * 4 // by topic and deciding role
)

// A prompt has three tokens: the role, the topic, and how the rollout stands, which is known once the deciding role has
// answered. Rollouts of a task thus come to the same few decision points.
const (
	firstRole  = 100
	firstTopic = 120
	firstState = 140
)

// The states of a rollout.
const (
	open = iota
	well
	badly
)

// giving says where the environment puts the reward of a success. Both are honest: what is given is the same.
type giving int

const (
	atEnd  giving = iota // to the rollout, at its end
	atCall               // to the call that decided, such as a test that it passed
)

func (g giving) String() string { return [...]string{"the rollout", "the call"}[g] }

// play plays a rollout.
func (g giving) play(e *chains.Episode) (won bool, err error) {
	topic, decides := int(e.Task%topics), int(e.Task/topics)%len(roles)
	state := open
	for i, role := range roles {
		answer, err := e.Ask(role, []int32{firstRole + int32(i), firstTopic + int32(topic), firstState + int32(state)})
		if err != nil {
			return false, err
		}
		if i != decides {
			continue
		}
		state, won = badly, int(answer)%arms == topic%arms
		if won {
			state = well
		}
	}
	reward := float32(0)
	if won {
		reward = 1
	}
	switch g {
	case atEnd:
		e.Reward = reward
	case atCall:
		e.Calls[decides].Reward = &reward
	}
	return won, nil
}
