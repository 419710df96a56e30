// Package experiment runs a declared grid of training runs and compares them over seeds.
//
// A Declaration is what the user wrote: flags that all runs share, flags that vary, and seeds. Its Cells are the grid: one
// run for each combination of values and seed, whose id follows from its flags alone. A Folder keeps each run where its
// id says, so that what is finished is known without any other record, and an experiment that was cut short goes on where
// it was. Results are what the runs' reports say over seeds; the page and the plots show them, the same bytes for the same
// reports.
//
// How one run is done is the caller's: a Runner. A run's report is that of package testnet/report.
package experiment
