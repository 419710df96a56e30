package draw

import "github.com/lightswarm/lightswarm/wire"

// Block is a run of held-out tasks of one environment: what one evaluation bundle holds.
type Block struct {
	Environment wire.CID
	// EnvironmentIndex is the environment's position in the charter.
	EnvironmentIndex int
	// First is the block's first task of the validation split; Tasks is how many follow one another from there.
	First uint64
	Tasks uint32
}

// EvaluationBlocks returns how many blocks measure one release; 0 when the charter has no evaluation.
func EvaluationBlocks(c *wire.Charter) int {
	return len(c.Environments) * blocksPerEnvironment(c.Evaluation)
}

// EvaluationBlock returns block number n, which must be below EvaluationBlocks.
func EvaluationBlock(c *wire.Charter, n int) Block {
	per := blocksPerEnvironment(c.Evaluation)
	if n < 0 || n >= EvaluationBlocks(c) {
		panic("draw: evaluation block out of range")
	}
	e, size := n/per, c.Evaluation.BlockTasks
	first := uint32(n%per) * size
	return Block{
		Environment:      c.Environments[e].Manifest,
		EnvironmentIndex: e,
		First:            uint64(first),
		Tasks:            min(size, c.Evaluation.Tasks-first),
	}
}

func blocksPerEnvironment(r wire.EvaluationRules) int {
	if r.Tasks == 0 {
		return 0
	}
	return int((r.Tasks + r.BlockTasks - 1) / r.BlockTasks)
}

// EvaluationOrder returns a peer's own order of the evaluation blocks 0 to blocks-1. Orders of different peers are
// unrelated, so that together they cover all blocks early without talking to one another.
func EvaluationOrder(network wire.CID, version uint64, peer wire.PeerID, blocks int) []int {
	s := newStream(newKey("lightswarm/draw/evaluation-order/1").cid(network).uint64(version).peer(peer).sum())
	order := make([]int, blocks)
	for i := range order {
		order[i] = i
	}
	for i := blocks - 1; i > 0; i-- {
		j := s.below(uint64(i) + 1)
		order[i], order[j] = order[j], order[i]
	}
	return order
}
