// Package live shows a running network in a terminal.
//
// The caller owns the figures: it hands a State to a View as often as it likes. On a terminal a View redraws one
// screen; elsewhere it prints a plain line whenever something happened that a reader of a log wants to know. Render
// and Line are pure, so what a person sees is tested without a terminal.
package live
