package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/experiment"
)

// The page of results, and the folder of its plots beside it. What the check writes is between the marks; what people say
// of it stands behind.
const (
	page     = "docs/results/learning.md"
	figures  = "docs/results/learning"
	heading  = "## scripts/checks/three-tasks\n"
	markOpen = "<!-- Written by scripts/checks/three-tasks --write, as far as the mark at its end. -->\n"
	markEnd  = "<!-- The end of what scripts/checks/three-tasks wrote. -->\n"
)

// plots are the curves of an experiment that the page shows, by the names of their files, with what they show.
var plots = []struct{ name, shows string }{{"success", "held-out success, sampled"}, {"greedy", "held-out success, greedy"}}

// write puts the rows and plots of the tasks' experiments below dir into the page.
func write(chosen []task, dir string, all []*experiment.Results, rows []row) error {
	if err := os.MkdirAll(figures, 0o755); err != nil {
		return err
	}
	for _, t := range chosen {
		for _, p := range plots {
			image, err := os.ReadFile(filepath.Join(dir, t.name, p.name+".svg"))
			if err == nil {
				err = os.WriteFile(filepath.Join(figures, t.name+"-"+p.name+".svg"), image, 0o644) //nolint:gosec // a page for everybody
			}
			if err != nil {
				return fmt.Errorf("copy a plot of %s: %w", t.name, err)
			}
		}
	}
	text, err := os.ReadFile(page)
	if err == nil {
		text, err = splice(text, section(chosen, all, rows))
	}
	if err == nil {
		err = os.WriteFile(page, text, 0o644) //nolint:gosec // a page for everybody
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	return nil
}

// section is what the page says of the tasks.
func section(chosen []task, all []*experiment.Results, rows []row) string {
	var b strings.Builder
	first, last := span(rows)
	fmt.Fprintf(&b, "%sRuns from %s to %s, by lightswarm %s, as `scripts/checks/three-tasks`.\n\n```\n%s```\n\n",
		heading+"\n", first.Format(time.DateOnly), last.Format(time.DateOnly), strings.Join(versions(all), ", "), table(rows))
	b.WriteString("The plots show the mean over seeds, with its 95% interval by Student's t. Each task by itself, and its plots:\n")
	for _, t := range chosen {
		fmt.Fprintf(&b, "\n```\nlightswarm experiment %s\n```\n\n", t.declaration())
		for _, p := range plots {
			fmt.Fprintf(&b, "![%s: %s](%s/%s-%s.svg)\n", t.name, p.shows, filepath.Base(figures), t.name, p.name)
		}
	}
	return b.String()
}

// span is when the first run and the last one began, UTC.
func span(rows []row) (first, last time.Time) {
	for _, r := range rows {
		if r.report == nil {
			continue
		}
		began := r.report.Started.UTC()
		if first.IsZero() || began.Before(first) {
			first = began
		}
		if began.After(last) {
			last = began
		}
	}
	return first, last
}

// versions are those of the program that made the runs.
func versions(all []*experiment.Results) (list []string) {
	for _, r := range all {
		list = append(list, r.Versions...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// splice puts a section into the page's text: in place of what is between the marks, or at the end if there are none.
func splice(text []byte, section string) ([]byte, error) {
	written := []byte(markOpen + section + markEnd)
	before, rest, open := bytes.Cut(text, []byte(markOpen))
	if !open {
		return slices.Concat(bytes.TrimRight(text, "\n"), []byte("\n\n"), written), nil
	}
	_, after, ended := bytes.Cut(rest, []byte(markEnd))
	if !ended {
		return nil, errors.New("the mark at the end of what the check wrote is missing: put it back, or remove both")
	}
	return slices.Concat(before, written, after), nil
}
