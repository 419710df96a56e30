// Package virtualtime runs tests under virtual time. It is synctest.Test, made safe under the race detector.
//
// Go's race detector breaks there by chance ("ThreadSanitizer: CHECK failed", golang.org/issue/78156): the timers of a
// bubble share one context of the detector, and two threads that fire timers at once use it at once. With one processor
// that cannot be, so under the detector a test under virtual time has only one. What it finds follows from what
// synchronises with what, not from what happened to run at the same moment.
package virtualtime
