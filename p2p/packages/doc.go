// Package packages asks peers which environment packages they keep, over /lightswarm/packages/1, and answers so.
//
// # Protocol
//
// One PackagesRequest frame is answered by one PackagesResponse frame, and the stream ends. The answer holds the signed
// statements (wire.EnvironmentPackage) about packages whose blocks the peer keeps: about one environment, if the request
// names its manifest, else about all, up to as many as were asked for and as the answer has room for. A peer of another
// network answers with none. The packages themselves are blocks, which package block moves.
//
// # What holds
//
//  1. Nobody is told of a package who did not ask: a peer can fill up or flood nobody with statements.
//  2. Every statement that Ask returns was opened, so that its signature is its author's, and is about the environment
//     that was asked for. An answer with anything else in it is refused whole, with an error that wraps ErrMisbehaved.
//     Statements in a newer format are left out.
//  3. An answer is bounded in size, number and time before anything of it is looked at.
package packages
