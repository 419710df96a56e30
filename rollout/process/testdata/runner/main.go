// Command runner is the process in which a test's module is compiled, or runs.
package main

import (
	"fmt"
	"os"

	"github.com/lightswarm/lightswarm/rollout/process/module"
)

func main() {
	status, err := module.Work(os.Args[1:], os.Environ())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}
