package telemetry

// findRewards finds out what every reward is for.
func (r *reader) findRewards(calls Calls) {
	var alone [][]Reward // those of spans that are nothing but rewards and link to nothing
	var starts []uint64
	for _, s := range r.all {
		whole, own := r.split(s, calls)
		switch {
		case len(whole) > 0:
			r.conclude(whole)
		case len(own) == 0:
		case s.Kind == KindReward:
			alone, starts = append(alone, own), append(starts, s.Start)
		case s.Kind == KindCall || s.Kind == KindTool:
			call, ok := r.called[s]
			r.give(own[0], call, ok)
		case r.trace.spans[ID{s.ID.Trace, s.Parent}] == nil:
			r.conclude(own)
		default:
			call, ok := r.lastBelow(s)
			r.give(own[0], call, ok)
		}
	}
	for i, rewards := range alone {
		if i == len(alone)-1 {
			r.conclude(rewards)
			break
		}
		call, ok := r.lastBefore(starts[i])
		r.give(rewards[0], call, ok)
	}
}

// split gives those of a span's rewards that name what they are for, the first for each, and returns the others: of the
// rollout as a whole, and of the span.
func (r *reader) split(s *Span, calls Calls) (whole, own []Reward) {
	type target struct {
		response string
		span     ID
	}
	given := map[target]bool{}
	for _, reward := range s.Rewards {
		to := target{reward.Response, reward.Linked}
		switch {
		case reward.Whole:
			whole = append(whole, reward)
		case to == target{}:
			own = append(own, reward)
		case !given[to]:
			given[to] = true
			call, ok := r.linked(reward, calls)
			r.give(reward, call, ok)
		}
	}
	return whole, own
}

// give gives a reward to a call, if there is one.
func (r *reader) give(reward Reward, call int, ok bool) {
	if !ok {
		r.out.Lost++
		return
	}
	r.out.Rewards[call] += reward.Value
}

// conclude takes a span's rewards for those of the whole rollout: the first is its value; if there are more, they and the
// first are its components.
func (r *reader) conclude(rewards []Reward) {
	r.out.Final = &Final{Value: rewards[0].Value}
	if len(rewards) == 1 {
		return
	}
	r.out.Final.Components = map[string]float64{}
	for _, part := range rewards {
		if part.Name != "" {
			r.out.Final.Components[part.Name] = part.Value
		}
	}
}

// linked is the call that a reward names.
func (r *reader) linked(reward Reward, calls Calls) (call int, ok bool) {
	if reward.Response != "" {
		return calls.Response(reward.Response)
	}
	s := r.trace.spans[reward.Linked]
	if s == nil {
		return 0, false
	}
	if call, ok = r.called[s]; ok {
		return call, true
	}
	return r.lastBelow(s)
}

// lastBelow is the last call that ended below a span.
func (r *reader) lastBelow(s *Span) (call int, ok bool) {
	var end uint64
	for _, a := range r.answers {
		for _, up := range a.above {
			if up == s && (!ok || a.span.End >= end) {
				call, ok, end = a.call, true, a.span.End
			}
		}
	}
	return call, ok
}

// lastBefore is the last call that ended before an instant.
func (r *reader) lastBefore(instant uint64) (call int, ok bool) {
	var end uint64
	for _, a := range r.answers {
		if a.span.End <= instant && (!ok || a.span.End >= end) {
			call, ok, end = a.call, true, a.span.End
		}
	}
	return call, ok
}
