package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// Folder is where an experiment keeps its runs. It has one user at a time.
//
//	runs/NAME/run.json  the run's flags, its command, and why it failed
//	runs/NAME/run       what the run wrote: its report, figures and log
//	runs/NAME/run.1     attempts that did not finish, the oldest first
type Folder string

// State is what became of a run.
type State string

// The states of a run.
const (
	// StateDone says that the run came to an end of its own, be it a timeout.
	StateDone State = "done"
	// StateFailed says that it ended with an error, StateMissing that it did not end or never began. They are run again.
	StateFailed  State = "failed"
	StateMissing State = "missing"
)

// Outcome is what is known of a run.
type Outcome struct {
	Cell  Cell
	State State
	// Report is the run's if it is done, else nil.
	Report *report.Report
	// Failure says why it failed.
	Failure string
}

// record is the content of run.json.
type record struct {
	ID       string    `json:"id"`
	Command  string    `json:"command"`
	Settings []Setting `json:"settings"`
	Failure  string    `json:"failure,omitempty"`
}

// path is a file of a cell's folder.
func (f Folder) path(c *Cell, name string) string {
	return filepath.Join(string(f), "runs", c.FolderName(), name)
}

// Run is the folder that the run itself writes, relative to f.
func (f Folder) Run(c *Cell) string { return "runs/" + c.FolderName() + "/run" }

// Outcome reads what is known of a run. A report that cannot be read is an error: whoever has it decides.
func (f Folder) Outcome(c Cell) (Outcome, error) {
	o := Outcome{Cell: c, State: StateMissing}
	raw, err := os.ReadFile(f.path(&c, "run.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o, nil
	case err != nil:
		return o, fmt.Errorf("read what is known of a run: %w", err)
	}
	var known record
	if err := json.Unmarshal(raw, &known); err != nil {
		return o, fmt.Errorf("read what is known of a run, %s: %w", f.path(&c, "run.json"), err)
	}
	if known.Failure != "" {
		o.State, o.Failure = StateFailed, known.Failure
		return o, nil
	}
	r, err := report.Read(f.path(&c, "run"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o, nil
	case err != nil:
		return o, err
	}
	switch r.End {
	case report.EndTarget, report.EndSteps, report.EndTimeout:
		o.State, o.Report = StateDone, r
	case report.EndFailure:
		o.State, o.Failure = StateFailed, "a node ended before its network was done"
	}
	return o, nil
}

// begin makes place for another attempt at a run and returns the folder for it, which does not exist yet. What an earlier
// attempt left is kept under another name.
func (f Folder) begin(c *Cell) (string, error) {
	dir := f.path(c, "run")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make a run's folder: %w", err)
	}
	for n := 1; exists(dir); n++ {
		if kept := fmt.Sprintf("%s.%d", dir, n); !exists(kept) {
			if err := os.Rename(dir, kept); err != nil {
				return "", fmt.Errorf("keep an earlier attempt at a run: %w", err)
			}
		}
	}
	return dir, f.note(c, "")
}

// note stores what is known of a run: that it was begun, or why it failed.
func (f Folder) note(c *Cell, failure string) error {
	return f.write("runs/"+c.FolderName()+"/run.json", record{c.ID, c.Command(), c.Settings, failure})
}

// write stores v as JSON in a file, given relative to f.
func (f Folder) write(name string, v any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if err := durable.WriteFile(filepath.Join(string(f), filepath.FromSlash(name)), out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the experiment's %s: %w", name, err)
	}
	return nil
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
