package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/durable"
)

// FileName is that of the lines in their folder.
const FileName = "metrics.jsonl"

// tailBytes is how much of a file's end says what it has already; a line is far shorter.
const tailBytes = 1 << 20

// errOther says that a file of the name is something else, or has another network's metrics.
var errOther = errors.New("name another folder for the metrics, or move this file away")

// mostEvaluated is how many evaluations are remembered: more than get results at one time.
const mostEvaluated = 256

// beginning is how each line begins.
const beginning = `{"type":"`

// lines are metrics.jsonl of one network.
type lines struct {
	file *os.File
	// end is the offset behind the last whole line; dirty says that something may be behind it.
	end   int64
	dirty bool
	// stepped is the version of the last step, 0 for none; evaluated are the newest evaluations.
	stepped   uint64
	evaluated []evaluationID
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
	j := &lines{file: file}
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
		if _, tail, _ = bytes.Cut(tail, []byte("\n")); len(tail) == 0 {
			return errNoMetrics
		}
	}
	for len(tail) > 0 {
		line, rest, whole := bytes.Cut(tail, []byte("\n"))
		var l Line
		err := json.Unmarshal(line, &l)
		switch {
		case (!whole || err != nil && len(rest) == 0) && torn(line):
			j.end = info.Size() - int64(len(tail))
			return j.file.Truncate(j.end)
		case !whole || err != nil || l.Type == "":
			return errNoMetrics
		case l.Network != network:
			return fmt.Errorf("it has metrics of network %s: %w", l.Network, errOther)
		}
		j.note(&l)
		tail = rest
	}
	j.end = info.Size()
	return nil
}

var errNoMetrics = fmt.Errorf("it is no file of metrics: %w", errOther)

// torn says whether the last line is one that was being written. A power cut may have left zeros in the place of what was.
func torn(line []byte) bool {
	line = bytes.TrimRight(line, "\x00")
	return len(line) == 0 || line[0] == 0 || strings.HasPrefix(beginning, string(line)) || bytes.HasPrefix(line, []byte(beginning))
}

func (j *lines) note(l *Line) {
	if l.Type == TypeStep {
		j.stepped = max(j.stepped, l.Version)
	} else if l.Evaluation != nil {
		j.evaluated = append(j.evaluated, evaluationID{l.Version, l.Purpose})
		j.evaluated = slices.Delete(j.evaluated, 0, max(0, len(j.evaluated)-mostEvaluated))
	}
}

// has says whether the file has a line of the same step or evaluation.
func (j *lines) has(l *Line) bool {
	if l.Type == TypeStep {
		return l.Version <= j.stepped
	}
	return slices.Contains(j.evaluated, evaluationID{l.Version, l.Purpose})
}

// add appends a line, whole or not at all.
func (j *lines) add(l *Line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if j.dirty {
		if err := j.file.Truncate(j.end); err != nil {
			return err
		}
	}
	j.dirty = true
	if _, err = j.file.WriteAt(data, j.end); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.dirty = false
	j.end += int64(len(data))
	j.note(l)
	return nil
}

func (j *lines) close() error { return j.file.Close() }
