package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path/filepath"
	"slices"

	"github.com/lightswarm/lightswarm/durable"
)

//go:embed report.html.tmpl
var pageSource string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"percent":  func(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) },
	"seconds":  func(v float64) string { return fmt.Sprintf("%.1f s", v) },
	"success":  success,
	"versions": versions,
}).Parse(pageSource))

// success is a rate's success, which is nothing where nothing was measured.
func success(r Rate) string {
	if r.Tasks == 0 {
		return "not measured"
	}
	return fmt.Sprintf("%.1f%%", 100*r.Success)
}

// versions are those of the sampled measure, which has both or none.
func versions(c Change) string {
	if c.StartVersion == nil {
		return "no version"
	}
	return fmt.Sprintf("version %d → version %d", *c.StartVersion, *c.EndVersion)
}

// Write stores r as report.json and report.html in dir, each whole or not at all.
func Write(dir string, r *Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding report.json: %w", err)
	}
	html, err := HTML(r)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"report.json": append(data, '\n'), "report.html": html} {
		if err := durable.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the run's %s: %w", name, err)
		}
	}
	return nil
}

// HTML renders r as one self-contained page.
func HTML(r *Report) ([]byte, error) {
	var out bytes.Buffer
	if err := page.Execute(&out, newView(r)); err != nil {
		return nil, fmt.Errorf("rendering report.html: %w", err)
	}
	return out.Bytes(), nil
}

// view is what the page shows: the report, its charts, and its examples by task.
type view struct {
	*Report
	RewardChart, ThroughputChart, LagChart template.HTML
	Refusals                               []unused
	Drops, Failures                        []unused
	Pairs                                  []pair
}

// unused are rollouts that nothing was learned from, by reason.
type unused struct {
	Reason   string
	Meaning  string // empty if this program does not know the reason
	Rollouts uint64
}

// pair is one task before and after training.
type pair struct {
	Task          uint64
	Before, After *Example
}

func newView(r *Report) view {
	v := view{Report: r}
	v.RewardChart = rewardChart(r)
	v.ThroughputChart = throughputChart(r)
	lag := r.lagHistogram()
	v.LagChart = barChart(axes{title: "Groups trained, by lag", x: "lag (versions)", y: "groups", maxY: ceiling(float64(slices.Max(append(lag, 1))))}, lag)
	v.Refusals, v.Drops = byCount(r.RolloutsRefused, meanings), byCount(r.RolloutsDropped, meanings)
	v.Failures = byCount(r.RolloutsFailed, outcomes)
	v.Pairs = pairs(r.Examples)
	return v
}

// byCount lists reasons, the most frequent first.
func byCount(counts map[string]uint64, meanings map[string]string) []unused {
	var list []unused
	for reason, n := range counts {
		list = append(list, unused{reason, meanings[reason], n})
	}
	slices.SortFunc(list, func(a, b unused) int {
		return cmp.Or(cmp.Compare(b.Rollouts, a.Rollouts), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

func rewardChart(r *Report) template.HTML {
	sampled := series{name: "sampled", class: "a"}
	greedy := series{name: "greedy", class: "b"}
	for _, e := range r.Evaluations {
		sampled.points = append(sampled.points, point{e.Seconds, e.Sampled.Success, e.Sampled.Low, e.Sampled.High})
		if e.Greedy.Tasks > 0 {
			greedy.points = append(greedy.points, point{x: e.Seconds, y: e.Greedy.Success})
		}
	}
	return lineChart(axes{title: "Held-out success over time", x: "seconds from the start", y: "held-out success", maxX: ceiling(r.Seconds), maxY: 1}, sampled, greedy)
}

// throughputChart shows admitted rollouts a second between training steps, averaged over windows of a twentieth of
// the run.
func throughputChart(r *Report) template.HTML {
	line := series{name: "rollouts a second", class: "a"}
	window := r.Seconds / 20
	lastTime, lastCount, top := 0.0, uint64(0), 0.0
	for _, s := range r.TrainingSteps {
		if s.Seconds-lastTime < window || s.Seconds <= lastTime {
			continue
		}
		rate := float64(s.AcceptedRollouts-lastCount) / (s.Seconds - lastTime)
		line.points = append(line.points, point{x: s.Seconds, y: rate})
		lastTime, lastCount, top = s.Seconds, s.AcceptedRollouts, max(top, rate)
	}
	return lineChart(axes{title: "Rollouts admitted a second", x: "seconds from the start", y: "rollouts/s", maxX: ceiling(r.Seconds), maxY: ceiling(top)}, line)
}

// pairs puts the examples of the lowest and the highest version of each task side by side, tasks in order.
func pairs(examples []Example) []pair {
	byTask := map[uint64]*pair{}
	var order []uint64
	for i := range examples {
		e := &examples[i]
		p := byTask[e.Task]
		if p == nil {
			p = &pair{Task: e.Task, Before: e, After: e}
			byTask[e.Task] = p
			order = append(order, e.Task)
		}
		if e.Version < p.Before.Version {
			p.Before = e
		}
		if e.Version > p.After.Version {
			p.After = e
		}
	}
	slices.Sort(order)
	out := make([]pair, 0, len(order))
	for _, t := range order {
		out = append(out, *byTask[t])
	}
	return out
}
