package gateway

import "net/http"

// maxComponents bounds the parts of a posted reward.
const maxComponents = 32

// decodeReward reads {"reward": number, "components": {name: number}}. JSON has no numbers that are not finite.
func decodeReward(body []byte) (*Reward, *apiError) {
	var q struct {
		Reward     *float64           `json:"reward"`
		Components map[string]float64 `json:"components"`
	}
	if err := decodeJSON(body, &q); err != nil {
		return nil, err
	}
	switch {
	case q.Reward == nil:
		return nil, invalid("reward", "reward is missing, want a number")
	case len(q.Components) > maxComponents:
		return nil, invalid("components", "%d components, at most %d are allowed", len(q.Components), maxComponents)
	}
	return &Reward{Value: *q.Reward, Components: q.Components}, nil
}

// serveReward takes the agent's judgement. The last one counts, so that posting again does no harm.
func (s *Session) serveReward(w http.ResponseWriter, body []byte) *apiError {
	reward, fault := decodeReward(body)
	if fault != nil {
		return fault
	}
	if fault := s.takeReward(reward); fault != nil {
		return fault
	}
	send(w, http.StatusOK, mustJSON(struct {
		Reward     float64            `json:"reward"`
		Components map[string]float64 `json:"components"`
	}{reward.Value, reward.Components}))
	return nil
}

// takeReward keeps the agent's judgement in place of an earlier one.
func (s *Session) takeReward(r *Reward) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return endedError()
	}
	s.summary.Reward = r
	return nil
}
