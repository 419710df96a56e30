//go:build unix

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkRun measures whole rollouts of an agent that imports a module, asks nothing and answers. The flags say which
// interpreter and module.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	script := fmt.Sprintf("import %s\nprint(7)\n", *importFlag)
	if err := os.WriteFile(filepath.Join(dir, "agent.py"), []byte(script), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, preload := range map[string][]string{"cold": nil, "warm": {*importFlag}} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b, preload, func(o *Options) {
				o.Command = Command{Args: []string{python(), "agent.py"}, Dir: dir, Preload: preload}
			})
			f.mustPlay(b, "") // after the preloading
			for b.Loop() {
				f.mustPlay(b, "")
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rollouts/s")
		})
	}
}
