// Command lightswarm is the one program of Lightswarm: it founds networks, trains, runs rollouts, and shows what nodes
// do. Results go to standard output, everything else to standard error.
package main

import (
	"os"
)

func main() { os.Exit(Main(os.Args[1:])) }

// Main runs the program with these arguments and returns its exit code.
func Main(arguments []string) int {
	p := &program{out: os.Stdout, err: os.Stderr}
	return p.run(arguments)
}
