package wire

// Sampling says how tokens are drawn from a policy's distribution.
type Sampling struct {
	// Temperature divides the logits; 0 is greedy. At most MaxTemperature.
	Temperature float32
	// TopK keeps the K most probable tokens; 0 keeps all.
	TopK uint32
	// TopP keeps the smallest set of most probable tokens whose probability reaches P; 0 and 1 keep all.
	TopP float32
}

// MaxTemperature bounds a temperature; far below it, samples are already uniform noise.
const MaxTemperature = 100

// Validate returns a *ValidationError that names the field at fault.
func (s Sampling) Validate() error {
	r := check("sampling")
	r.require(finite(s.Temperature) && s.Temperature >= 0 && s.Temperature <= MaxTemperature,
		"temperature", "must be between 0 and 100")
	r.require(finite(s.TopP) && s.TopP >= 0 && s.TopP <= 1, "top_p", "must be between 0 and 1")
	r.between("top_k", uint64(s.TopK), 0, 1<<31-1)
	return r.err
}

// Purpose says what a bundle is for.
type Purpose uint8

// The purposes of a bundle.
const (
	PurposeTrain           Purpose = 1 // one group, sampled by the charter's rules, to learn from
	PurposeEvaluateSampled Purpose = 2 // held-out tasks, sampled by the charter's rules
	PurposeEvaluateGreedy  Purpose = 3 // held-out tasks, always the most probable token
)

// Valid says whether p is one of the purposes that this build knows.
func (p Purpose) Valid() bool { return p >= PurposeTrain && p <= PurposeEvaluateGreedy }

// String returns "train", "evaluate-sampled" or "evaluate-greedy".
func (p Purpose) String() string {
	switch p {
	case PurposeTrain:
		return "train"
	case PurposeEvaluateSampled:
		return "evaluate-sampled"
	case PurposeEvaluateGreedy:
		return "evaluate-greedy"
	}
	return "unknown"
}

// The splits that a network uses of every environment.
const (
	SplitTrain      = "train"
	SplitValidation = "validation"
)
