package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lightswarm/lightswarm/durable"
)

// FileName is that of the lines in their folder.
const FileName = "metrics.jsonl"

// tailBytes is how much of a file's end says what it has already; a line is far shorter.
const tailBytes = 1 << 20

// ErrOther says that a file of the name is something else, or has another network's metrics.
var ErrOther = errors.New("name another folder for the metrics, or move this file away")

// lines are metrics.jsonl of one network.
type lines struct {
	file *os.File
	// end is the offset behind the last whole line.
	end int64
	// stepped is the version of the last step, 0 for none; evaluated has the last evaluations.
	stepped   uint64
	evaluated map[evaluationID]bool
}

type evaluationID struct {
	version uint64
	purpose string
}

// openLines continues the file of a folder that exists, or starts it.
func openLines(folder, network string) (*lines, error) {
	name := filepath.Join(folder, FileName)
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	j := &lines{file: file, evaluated: make(map[evaluationID]bool)}
	if err := j.recover(network); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	if err := durable.SyncFolder(folder); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// recover reads the file's end, and cuts off a last line that is not whole.
func (j *lines) recover(network string) error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	start := max(0, info.Size()-tailBytes)
	tail := make([]byte, info.Size()-start)
	if _, err := j.file.ReadAt(tail, start); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if start > 0 { // The first line began before.
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	whole := bytes.LastIndexByte(tail, '\n') + 1
	if whole == 0 && start > 0 {
		return fmt.Errorf("it is no file of metrics: %w", ErrOther)
	}
	for line := range bytes.Lines(tail[:whole]) {
		var l Line
		if err := json.Unmarshal(line, &l); err != nil || l.Type == "" {
			return fmt.Errorf("it is no file of metrics: %w", ErrOther)
		}
		if l.Network != network {
			return fmt.Errorf("it has metrics of network %s: %w", l.Network, ErrOther)
		}
		j.note(&l)
	}
	j.end = info.Size() - int64(len(tail)-whole)
	return j.file.Truncate(j.end)
}

func (j *lines) note(l *Line) {
	if l.Type == TypeStep {
		j.stepped = max(j.stepped, l.Version)
	} else if l.Evaluation != nil {
		j.evaluated[evaluationID{l.Version, l.Purpose}] = true
	}
}

// has says whether the file has a line of the same step or evaluation.
func (j *lines) has(l *Line) bool {
	if l.Type == TypeStep {
		return l.Version <= j.stepped
	}
	return j.evaluated[evaluationID{l.Version, l.Purpose}]
}

// add appends a line, whole or not at all.
func (j *lines) add(l *Line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	_, err = j.file.WriteAt(data, j.end)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		_ = j.file.Truncate(j.end) // What cannot be cut off is overwritten by the next line.
		return err
	}
	j.end += int64(len(data))
	j.note(l)
	return nil
}

func (j *lines) close() error { return j.file.Close() }
