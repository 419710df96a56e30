// Package lags measures what learning from old rollouts costs, and what waiting for new ones costs: scripts/checks/lag.
//
// The learner and the rollout workers are the program's own, with its admission, its bound on lag and its pace; between
// them is a fleet in place of a network, and a session in place of environments that are slow. They run in virtual time,
// so that hours of waiting take seconds and a busy machine changes nothing.
package lags
