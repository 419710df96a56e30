//go:build !unix

package module

import "errors"

// Work is what the process of a module does.
func Work([]string, []string) (status int, err error) {
	return 1, errors.New("agents that are programs need a Unix system")
}
