package wasm

import "github.com/lightswarm/lightswarm/rollout/env"

// KillChild kills an environment's process and waits for its end.
func KillChild(e env.Environment) {
	c := running(e)
	c.process.Kill()
	<-c.done
}

// ChildID is the number of an environment's process.
func ChildID(e env.Environment) int { return running(e).process.Pid }

func running(e env.Environment) *child {
	own := e.(*Environment)
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.child
}
