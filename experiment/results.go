package experiment

import (
	"maps"
	"slices"

	"github.com/lightswarm/lightswarm/testnet/report"
)

// Schema is the version of results.json. A field is only ever added; a change of meaning raises Schema.
const Schema = 1

// Results is the content of results.json. It follows from the declaration and the reports of the runs.
type Results struct {
	Schema    int       `json:"schema"`
	Name      string    `json:"name"`
	About     string    `json:"about"`
	Threshold float64   `json:"threshold"`
	Seeds     []uint64  `json:"seeds"`
	Shared    []Setting `json:"shared"`
	Axes      []Axis    `json:"axes"`
	// Versions are the versions of the program that made the runs, each once.
	Versions []string `json:"versions"`
	// Runs are in the grid's order, Combinations in that of the axes' values.
	Runs         []RunResult   `json:"runs"`
	Combinations []Combination `json:"combinations"`
}

// RunResult is one run of the grid.
type RunResult struct {
	ID     string    `json:"id"`
	Varied []Setting `json:"varied"`
	Seed   uint64    `json:"seed"`
	State  State     `json:"state"`
	// Failure says why a failed run failed.
	Failure string `json:"failure,omitempty"`
	// Folder has what the run wrote, its report.json above all; it is relative to results.json.
	Folder string `json:"folder"`
	// Command repeats the run, apart from its folder.
	Command string `json:"command"`
	// End says why a run that is done ended.
	End report.End `json:"end,omitempty"`
	// Figures are those that the run has, by name.
	Figures map[string]float64 `json:"figures"`
}

// Combination is what the runs of one combination of the axes' values show together.
type Combination struct {
	Label  string    `json:"label"`
	Varied []Setting `json:"varied"`
	// Done, Failed and Missing count its runs. What follows is of those that are done.
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Missing int `json:"missing"`
	// TimedOut counts the done ones that their timeout ended.
	TimedOut int `json:"timed_out"`
	// Figures and Curves are by name. A figure that no run has is absent, and so is a curve.
	Figures map[string]*Estimate `json:"figures"`
	Curves  map[string][]Point   `json:"curves"`
}

// Point is a curve's estimate for a version, over the runs that have it there.
type Point struct {
	Version uint64 `json:"version"`
	Estimate
}

// Count returns how many runs are in a state.
func (r *Results) Count(s State) (n int) {
	for _, run := range r.Runs {
		if run.State == s {
			n++
		}
	}
	return n
}

// NewResults says what the outcomes of d's cells, in the grid's order, show. folder only names the runs' folders.
func NewResults(d *Declaration, folder Folder, outcomes []Outcome) *Results {
	r := &Results{
		Schema: Schema, Name: d.Name, About: d.About, Threshold: d.Threshold, Seeds: d.Seeds,
		Shared: slices.Concat([]Setting{}, d.Shared), Axes: slices.Concat([]Axis{}, d.Axes), Versions: []string{},
	}
	versions := map[string]bool{}
	for i := range outcomes {
		o := &outcomes[i]
		run := RunResult{
			ID: o.Cell.ID, Varied: slices.Concat([]Setting{}, o.Cell.Varied), Seed: o.Cell.Seed, State: o.State, Failure: o.Failure,
			Folder: folder.Run(&o.Cell), Command: o.Cell.Command(), Figures: map[string]float64{},
		}
		if o.Report != nil {
			run.End = o.Report.End
			versions[o.Report.Version] = true
			for _, f := range figures {
				if v, ok := f.of(o.Report, d.Threshold); ok {
					run.Figures[f.name] = v
				}
			}
		}
		r.Runs = append(r.Runs, run)
	}
	r.Versions = slices.AppendSeq(r.Versions, maps.Keys(versions))
	slices.Sort(r.Versions)
	combinations := d.combinations()
	for i := range combinations {
		var same []*Outcome
		for j := i; j < len(outcomes); j += len(combinations) {
			same = append(same, &outcomes[j])
		}
		r.Combinations = append(r.Combinations, combine(combinations[i], same, d.Threshold))
	}
	return r
}

// combine says what the runs of one combination show together.
func combine(varied []Setting, outcomes []*Outcome, threshold float64) Combination {
	c := Combination{
		Label: label(varied), Varied: slices.Concat([]Setting{}, varied),
		Figures: map[string]*Estimate{}, Curves: map[string][]Point{},
	}
	var reports []*report.Report
	for _, o := range outcomes {
		switch o.State {
		case StateDone:
			c.Done++
			reports = append(reports, o.Report)
			if o.Report.End == report.EndTimeout {
				c.TimedOut++
			}
		case StateFailed:
			c.Failed++
		case StateMissing:
			c.Missing++
		}
	}
	for _, f := range figures {
		var values []float64
		for _, r := range reports {
			if v, ok := f.of(r, threshold); ok {
				values = append(values, v)
			}
		}
		if e := NewEstimate(values); e != nil {
			c.Figures[f.name] = e
		}
	}
	for _, f := range curves {
		if points := estimates(f, reports); len(points) > 0 {
			c.Curves[f.name] = points
		}
	}
	return c
}

// estimates is a curve over runs, versions in order.
func estimates(f curve, reports []*report.Report) (points []Point) {
	byVersion := map[uint64][]float64{}
	for _, r := range reports {
		for version, value := range f.of(r) {
			byVersion[version] = append(byVersion[version], value)
		}
	}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		points = append(points, Point{version, *NewEstimate(byVersion[version])})
	}
	return points
}
