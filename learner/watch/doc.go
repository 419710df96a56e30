// Package watch says in words when training goes wrong, and what to do about it.
//
// A Watch is a state machine over what a learner reports: it takes Steps and Evaluations in their order and raises and ends
// alerts. It does no I/O, knows no clock, and the same sequence gives the same alerts. An alert is raised only when what it
// is about held for several steps in a row, and ends only when something clearly better did, so that figures near a bound
// do not make it come and go. It knows of nothing before its first step: after a restart of the learner, what compares with
// earlier steps begins anew.
//
// Alerts change nothing: training goes on as it would without them.
package watch
