package transformer

import (
	"math"

	"github.com/lightswarm/lightswarm/policy/kernel"
)

// LogProbGrid is the step of the log-probabilities of LogProb. It is package policy's constant of the same name.
const LogProbGrid = 1.0 / (1 << 16)

// LogProb is the canonical log-probability of a token: logit - peak - ln(sum), where peak and sum are what
// kernel.LogSoftmaxParts returned for all logits, rounded to the nearest multiple of LogProbGrid, ties to even.
// Sampling, scoring and training all use it, so that they agree to the bit. It is never positive, and NaN or infinite
// only if the logits are.
func LogProb(logit, peak, sum float32) float32 {
	l := float64(logit) - float64(peak) - kernel.Log(float64(sum))
	l = math.RoundToEven(l/LogProbGrid) * LogProbGrid
	if l == 0 {
		return 0 // not -0: equal values have equal bits
	}
	return float32(l)
}
