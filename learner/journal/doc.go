// Package journal keeps what training shows in a folder: metrics.jsonl for programs and event files for TensorBoard.
//
// metrics.jsonl has a line for each training step and each complete evaluation, a JSON object (Line); docs/metrics.md defines
// every field. A line is written whole, with one write, and synced. A line that a crash cut short is removed by the next
// start, which reads the file's end and goes on behind the last whole one; no step and no evaluation has two lines. One that
// became durable an instant before a crash may have none. An event file is begun with each start.
//
// A Writer is fed by the learner's observer and never holds it up: it has a queue and one goroutine, which Close waits
// for. What goes wrong is told once, until it is mended, and costs lines but nothing else.
package journal
