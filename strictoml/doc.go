// Package strictoml reads TOML that people write: a field that nothing reads is a mistake, and a mistake has a line.
package strictoml
