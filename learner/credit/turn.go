package credit

import "encoding/binary"

// TurnGroup is the two-level comparison of GiGPO (Feng et al. 2025, arXiv 2505.10978, section 4: the advantage relative
// to the anchor state's group, and its sum with the episode's). Rollouts of a group that come to the same decision point,
// the same agent with the same prompt to the token, took different actions there: beside the advantage of the whole
// rollout, each of those calls gets that of its action,
//
//	A = A_rollout + Weight A_turn,    A_turn = to go - mean of the to-go returns at the decision point.
//
// What is not scaled by a standard deviation is the paper's F_norm = 1. A call at a decision point of its own gets
// nothing added; neither does one whose point only knows one return. The added advantages of a point sum to zero.
type TurnGroup struct {
	// Return assigns what whole rollouts are compared by.
	Return
	// Weight is the paper's omega; 0 stands for 1.
	Weight float64
	// Discount is that of the to-go return, as in ToGo; 0 stands for 1.
	Discount float64
}

// Compare implements Comparer.
func (t TurnGroup) Compare(group []Rollout) [][]float64 {
	weight := t.Weight
	if weight == 0 {
		weight = 1
	}
	type point struct {
		sum   float64
		calls int
	}
	points := make(map[string]*point)
	values := make([][]float64, len(group))
	for i, r := range group {
		values[i] = ToGo{Discount: t.Discount}.Assign(r)
		for j, c := range r.Calls {
			key := decision(c)
			if points[key] == nil {
				points[key] = new(point)
			}
			points[key].sum += values[i][j]
			points[key].calls++
		}
	}
	for i, r := range group {
		for j, c := range r.Calls {
			at := points[decision(c)]
			values[i][j] = float64(weight * (values[i][j] - at.sum/float64(at.calls)))
		}
	}
	return values
}

// decision is equal for calls of one agent with one prompt.
func decision(c Call) string {
	key := binary.AppendUvarint(nil, uint64(len(c.Agent)))
	key = append(key, c.Agent...)
	for _, token := range c.Prompt {
		key = binary.LittleEndian.AppendUint32(key, uint32(token))
	}
	return string(key)
}
