package transformer

import (
	"sync"
	"sync/atomic"
)

// team is how many goroutines a piece of work is divided among. Work is divided by rows, heads or output columns
// only, never inside a sum, so that a result does not depend on the size of the team or on who does what.
type team int

// do runs f for every task in [0, tasks), some at the same time, and returns when all are done. Each goroutine has a
// worker number in [0, t) of its own, for scratch memory.
func (t team) do(tasks int, f func(worker, task int)) {
	workers := min(int(t), tasks)
	if workers <= 1 {
		for task := range tasks {
			f(0, task)
		}
		return
	}
	var next atomic.Int64
	work := func(worker int) {
		for task := int(next.Add(1)) - 1; task < tasks; task = int(next.Add(1)) - 1 {
			f(worker, task)
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < workers; worker++ {
		others.Go(func() { work(worker) })
	}
	work(0)
	others.Wait()
}
