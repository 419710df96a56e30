package discovery

// For tests.
var (
	OpenRecords = openRecords
	Reachable   = reachable
)
