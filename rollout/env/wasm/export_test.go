package wasm

import "github.com/lightswarm/lightswarm/rollout/env"

// KillChild kills an environment's process and waits for its end.
func KillChild(e env.Environment) {
	own := e.(*Environment)
	own.mu.Lock()
	c := own.child
	own.mu.Unlock()
	c.process.Kill()
	<-c.done
}
