// Package api is a node's local HTTP API: what command-line tools, dashboards and scripts talk to.
//
// # Endpoints
//
//	GET  /v1/status                    Status
//	GET  /v1/runs                      []Run, the newest version first
//	GET  /v1/peers                     []Peer, ordered by id
//	GET  /v1/ledger?from=0&limit=100   []LedgerEntry, ascending; limit is at most 1000
//	GET  /v1/blocks/{cid}?from=PEER    a block's bytes, from the store or from other members, those named first
//	GET  /v1/environments?cid=CID      []Environment: the packages that this node and members keep, all or of one CID
//	POST /v1/environments              Environment: the body, a signed package file, is kept and served to members
//	DELETE /v1/environments/{cid}      204; the package is kept no longer
//	GET  /v1/events                    server-sent events, each an Event
//	GET  /metrics                      Prometheus text format
//	POST /v1/shutdown                  202; the node stops as on an interrupt
//
// Every request carries "Authorization: Bearer TOKEN", the token of the data folder's api.token. Answers are JSON,
// but for blocks. A refusal is an [Error] with the status code of its kind. Fields are only ever added within /v1: a reader ignores
// what it does not know.
//
// # Hardening
//
// The server listens on loopback alone. The token is compared in constant time. The Host header must name loopback
// and the port, so that a web page that points its own name at 127.0.0.1 gets nothing. Headers, bodies, durations and
// the number of event streams are bounded.
package api
