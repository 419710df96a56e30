package strictoml

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// fieldLines says on which line each field and table of a TOML text is. The text is one that was decoded already.
func fieldLines(text []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	p.Reset(text)
	table, counts := "", map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		var key []string
		line := 0
		for it := e.Key(); it.Next(); {
			if n := it.Node(); n != nil {
				key = append(key, string(n.Data))
				if line == 0 {
					line = p.Shape(n.Raw).Start.Line
				}
			}
		}
		name := strings.Join(key, ".")
		switch e.Kind {
		case unstable.ArrayTable:
			table = fmt.Sprintf("%s[%d]", name, counts[name])
			counts[name]++
			name = table
		case unstable.Table:
			table = name
		case unstable.KeyValue:
			if table != "" {
				name = table + "." + name
			}
		default:
			continue
		}
		lines[name] = line
	}
	return lines
}
