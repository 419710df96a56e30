package experiment

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/durable"
)

// WriteResults stores results.json, results.md and the plots in f, each whole or not at all.
func (f Folder) WriteResults(r *Results) error {
	if err := f.write("results.json", r); err != nil {
		return err
	}
	files := map[string][]byte{"results.md": Page(r)}
	for _, c := range curves {
		if !drawn(c, r.Combinations) {
			continue
		}
		image, err := svg(c, r.Combinations)
		if err != nil {
			return err
		}
		files[c.name+".svg"] = image
	}
	for name, content := range files {
		if err := durable.WriteFile(filepath.Join(string(f), name), content, 0o644); err != nil {
			return fmt.Errorf("write the experiment's %s: %w", name, err)
		}
	}
	return nil
}

// Page renders results as Markdown, for the folder that has the plots.
func Page(r *Results) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.Name)
	if r.About != "" {
		fmt.Fprintf(&b, "%s\n\n", r.About)
	}
	b.WriteString(r.progress())
	b.WriteString(r.comparison())
	for _, c := range curves {
		if drawn(c, r.Combinations) {
			fmt.Fprintf(&b, "![%s](%s.svg)\n\n", c.title, c.name)
		}
	}
	b.WriteString(r.listing())
	b.WriteString(r.settings())
	return []byte(b.String())
}

// progress says how far the experiment is, and what a reader has to know before the figures.
func (r *Results) progress() string {
	var b strings.Builder
	done, failed, missing := r.Count(StateDone), r.Count(StateFailed), r.Count(StateMissing)
	fmt.Fprintf(&b, "%d of %d runs are done", done, len(r.Runs))
	if failed > 0 {
		fmt.Fprintf(&b, ", %d failed", failed)
	}
	if missing > 0 {
		fmt.Fprintf(&b, ", %d are missing", missing)
	}
	b.WriteString(".")
	if n := r.timedOut(); n > 0 {
		fmt.Fprintf(&b, " %d ended by the timeout and may have trained for fewer steps than others.", n)
	}
	switch len(r.Versions) {
	case 0:
	case 1:
		fmt.Fprintf(&b, " Made by lightswarm %s.", r.Versions[0])
	default:
		fmt.Fprintf(&b, " Versions of lightswarm differ between the runs: %s.", strings.Join(r.Versions, ", "))
	}
	return b.String() + "\n\n"
}

func (r *Results) timedOut() (n int) {
	for _, c := range r.Combinations {
		n += c.TimedOut
	}
	return n
}

// comparison is the table of all combinations.
func (r *Results) comparison() string {
	var b strings.Builder
	b.WriteString("## Comparison\n\nMean over seeds ± half the 95% interval (Student's t). Success is the share of held-out tasks that are solved, sampled\nunless it says greedy.")
	if r.Threshold > 0 {
		fmt.Fprintf(&b, " \"To it\" is until the first evaluation of at least %g, of the runs that reached it.", r.Threshold)
	}
	b.WriteString("\n\n")
	head := r.axisNames()
	head = append(head, "runs")
	for _, f := range r.shown() {
		head = append(head, f.title)
	}
	row(&b, head)
	rule(&b, len(head))
	for _, c := range r.Combinations {
		cells := c.values()
		runs := fmt.Sprintf("%d", c.Done)
		if total := c.Done + c.Failed + c.Missing; total > c.Done {
			runs = fmt.Sprintf("%d of %d", c.Done, total)
		}
		cells = append(cells, runs)
		for _, f := range r.shown() {
			cells = append(cells, c.Figures[f.name].text(f.format, c.Done))
		}
		row(&b, cells)
	}
	return b.String() + "\n"
}

// listing is the table of all runs.
func (r *Results) listing() string {
	var b strings.Builder
	b.WriteString("## Runs\n\n")
	head := append(r.axisNames(), "seed", "ended by")
	for _, f := range r.shown() {
		head = append(head, f.title)
	}
	row(&b, append(head, "folder"))
	rule(&b, len(head)+1)
	for _, run := range r.Runs {
		cells := values(run.Varied)
		cells = append(cells, fmt.Sprint(run.Seed), run.ended())
		for _, f := range r.shown() {
			text := "-"
			if v, ok := run.Figures[f.name]; ok {
				text = fmt.Sprintf(f.format, v)
			}
			cells = append(cells, text)
		}
		row(&b, append(cells, fmt.Sprintf("[%s](%s)", run.ID, run.Folder)))
	}
	return b.String() + "\n"
}

// ended says how a run ended, or why it did not.
func (r *RunResult) ended() string {
	switch r.State {
	case StateDone:
		return r.End.String()
	case StateFailed:
		return "an error: " + r.Failure
	}
	return "not run yet"
}

// settings say what all runs had in common, and how to repeat them.
func (r *Results) settings() string {
	var b strings.Builder
	b.WriteString("## Repeat it\n\n")
	if len(r.Shared) > 0 {
		b.WriteString("All runs have these flags of `lightswarm testnet`, and else its defaults:\n\n")
		row(&b, []string{"flag", "value"})
		rule(&b, 2)
		for _, s := range r.Shared {
			row(&b, []string{s.Flag, s.Value})
		}
		b.WriteString("\n")
	}
	b.WriteString("The whole experiment, from the declaration beside this page, and each run:\n\n```\nlightswarm experiment experiment.toml\n")
	for _, run := range r.Runs {
		b.WriteString(run.Command + "\n")
	}
	b.WriteString("```\n")
	return b.String()
}

// shown are the figures that the page has.
func (r *Results) shown() []figure {
	var list []figure
	for _, f := range figures {
		if !f.timed || r.Threshold > 0 {
			list = append(list, f)
		}
	}
	return list
}

func (r *Results) axisNames() []string {
	names := make([]string, len(r.Axes))
	for i, a := range r.Axes {
		names[i] = a.Flag
	}
	return names
}

func (c *Combination) values() []string { return values(c.Varied) }

func values(varied []Setting) []string {
	list := make([]string, len(varied))
	for i, s := range varied {
		list[i] = s.Value
	}
	return list
}

// text writes an estimate: the mean, half its interval if there is one, and of how many runs it is if not of all.
func (e *Estimate) text(format string, all int) string {
	if e == nil {
		return "-"
	}
	text := fmt.Sprintf(format, e.Mean)
	if e.High != nil {
		text += " ± " + fmt.Sprintf(format, *e.High-e.Mean)
	}
	if e.Runs < all {
		text += fmt.Sprintf(" (%d of %d)", e.Runs, all)
	}
	return text
}

// row writes a line of a table.
func row(b *strings.Builder, cells []string) {
	clean := strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ")
	for _, c := range cells {
		b.WriteString("| " + clean.Replace(c) + " ")
	}
	b.WriteString("|\n")
}

// rule writes the line below a table's head.
func rule(b *strings.Builder, columns int) { b.WriteString(strings.Repeat("|---", columns) + "|\n") }
