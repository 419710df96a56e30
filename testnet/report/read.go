package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Read reads the report.json that Write stored in dir. It refuses one of another schema. If there is none, the error is
// fs.ErrNotExist.
func Read(dir string) (*Report, error) {
	name := filepath.Join(dir, "report.json")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read a run's report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read a run's report, %s: %w", name, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("read a run's report, %s: it has schema %d, and this program reads %d", name, r.Schema, Schema)
	}
	return &r, nil
}
