package program

// For tests from outside the package.
var (
	NeedSandbox = needSandbox
	TestDriver  = testDriver
)
