package program

// setup is what Work is told: how to start a program, and what that may have.
type setup struct {
	// Node is the number of the process that it ends with.
	Node int `json:"node"`
	// Command is the program and its interpreter.
	Command []string `json:"command"`
	// Folders are those that it may read besides the system's.
	Folders []string `json:"folders"`
	// Scratch is the one that it may write in.
	Scratch     string `json:"scratch"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Seconds bounds what all its threads may compute.
	Seconds uint64 `json:"seconds"`
	// Landlock says whether the system has it.
	Landlock bool `json:"landlock"`
}

// statusFile is the descriptor on which Work says why it failed. It closes when the program starts.
const statusFile = 3
