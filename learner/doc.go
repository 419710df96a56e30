// Package learner trains one policy on one network: it takes in what rollout nodes announce, and turns it into releases.
//
//	Offer → queue → fetch → checks → Store.Accept → buffer → step → Store.Commit → Publisher.Publish
//
// # What comes in
//
// Offer takes announcements whose signature was verified, from gossip or pulled from a peer's head, as often as they
// come. Each is screened before anything is spent on it, in the order network, environment, version and digest,
// duplicate, draw, lag; then its bundle is fetched, decoded within limits, checked against announcement and rules, and
// made durable together with others in one synced batch. Every announcement ends in one Verdict with a stable Reason;
// reasons are counted. Memory is bounded by Intake: announcements that do not fit the queue are dropped, the oldest of
// the peer with the most first, under QueueFull; a full buffer stops the fetching.
//
// Evaluation bundles take the same way to the Board, which keeps the first valid result of each held-out task.
//
// # What happens to it
//
// The training loop waits for a batch of whole groups, oldest first and not too many of one peer (BatchRule), measures
// their lag against the newest version and drops what is too old. Algorithm, LightningRL, gives calls their returns, or
// asks a critic that learns (package credit), compares rollouts with their group or with what was before (advantage), lays
// calls out as sequences (row) and bounds what a token may do to the weights (loss). A step that meets a gradient that is
// not finite, or absurd, leaves the weights as they were and says so. Either way it ends in a release: the next version,
// on which nodes draw new tasks.
//
// With BatchRule.Dynamic a step goes on past groups that teach nothing until enough do, and releases ask nodes for as many
// more as that took lately (Yield, Pace).
//
// # What survives
//
// A version exists from the instant at which its Checkpoint is committed: the trainer's masters and optimiser, the signed
// release, the counters, what the algorithm remembers and its critic has learned, and the marks on the bundles that it used up, in one atomic step.
// Only then is the release published; after a restart it is published again, which is harmless. Hence a learner that is
// killed at any moment continues where it was: no accepted group is lost or trained on twice, and the chain has no second
// version of a number.
// The caller keeps offering what peers announce from a cursor of its own or from the beginning; what is known is refused
// as Duplicate.
//
// # Duties of the caller
//
//  1. Verify signatures before Offer (wire.OpenAnnouncement does).
//  2. Supply Store, Fetcher and Publisher as their comments ask, and give a Store to one learner at a time.
//  3. Call Run once, and stop it by its context. After an error, open a new Learner on the store.
//
// RunFolder is a learner without a network: bundles from a folder in, a trained policy out. Decision code is pure or a
// state machine without I/O (State, Rules, Board, Buffer, Schedule, Stop, Yield, Pace, Algorithm); Learner is the thin part
// around it. The package imports wire and policy, never p2p, node or rollout.
package learner
