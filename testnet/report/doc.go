// Package report describes one run of a network for people and for machines.
//
// A run folder holds report.json, whose schema is the Report type (docs/report.md lists every field with its
// definition), and report.html, the same figures as a single page that needs no network and no script. Write creates
// both. Nothing here measures anything: the caller fills a Report from what nodes reported.
package report
