package wire

// Limits on everything that crosses machines. A reader checks the size of a whole message before it decodes it and
// the counts inside before it works on them; a writer refuses to produce what readers refuse. They are part of the
// protocol: raising one needs a new major of the messages that it bounds.
const (
	// MaxGossipBytes bounds a gossiped message (release, announcement, presence), signature included. Gossip
	// repeats every byte 5 to 7 times across the network, so it carries references only.
	MaxGossipBytes = 2 << 10
	// MaxCharterBytes bounds a signed charter.
	MaxCharterBytes = 64 << 10
	// MaxManifestBytes bounds an environment manifest.
	MaxManifestBytes = 64 << 10
	// MaxBlockBytes bounds a block: what one CID names and one answer of the block protocol carries. Kubo and
	// other IPFS peers move blocks of this size too.
	MaxBlockBytes = 1 << 20
	// MaxPolicyManifestBytes bounds a policy manifest, which is one block.
	MaxPolicyManifestBytes = MaxBlockBytes

	// MaxResultBytes bounds the bits of one purpose in the results of a presence: 4096 evaluation blocks.
	MaxResultBytes = 512
	// MaxNameBytes bounds a name in a charter or manifest: network, environment, split, tensor, template.
	MaxNameBytes = 128
	// MaxDescriptionBytes bounds an environment's description.
	MaxDescriptionBytes = 4 << 10
	// MaxVersionBytes bounds a program's or environment's version text.
	MaxVersionBytes = 64
	// MaxNonceBytes bounds a charter's nonce.
	MaxNonceBytes = 64
	// MaxLearners bounds the peers that may sign a network's releases.
	MaxLearners = 64
	// MaxEnvironments bounds the environments of one network.
	MaxEnvironments = 64
	// MaxEnvironmentWeight bounds one environment's share of draws, so that the sum of all fits 32 bits.
	MaxEnvironmentWeight = 1 << 20
	// MaxSplitTasks bounds the tasks of one split.
	MaxSplitTasks = 1 << 48
	// MaxSplits bounds the splits of an environment.
	MaxSplits = 16
	// MaxAgents bounds the agents (roles) of an environment.
	MaxAgents = 64
	// MaxAgentName bounds the name of one agent.
	MaxAgentName = 64
	// MaxToolRewards bounds the rules by which an environment rewards calls for their tools.
	MaxToolRewards = 64
	// MaxArtefacts bounds the files of an environment package.
	MaxArtefacts = 16
	// MaxArtefactBlocks bounds the blocks of all its files together: with blocks of 1 MiB, 64 MiB.
	MaxArtefactBlocks = 64
	// MaxEpisodeMemory bounds what a manifest may let an episode use, in bytes.
	MaxEpisodeMemory = 1 << 32
	// MaxEpisodeSteps bounds the steps that a manifest may let a request take.
	MaxEpisodeSteps = 1 << 40
	// MaxLag bounds the lag, in versions, that a charter may allow.
	MaxLag = 1 << 20
	// MaxGroupsPerVersion bounds the groups that a node runs under one version.
	MaxGroupsPerVersion = 1 << 20
	// MaxEvaluationTasks bounds the held-out tasks that measure a release, per environment.
	MaxEvaluationTasks = 1 << 16
	// MaxDeltas bounds the deltas of one release; with as many it still fits MaxGossipBytes.
	MaxDeltas = 8
	// MaxDeltaBytes bounds what a delta may say of its size.
	MaxDeltaBytes = 1 << 40

	// MaxBundleBytes bounds an encoded bundle, which is one block.
	MaxBundleBytes = MaxBlockBytes
	// MaxBundleDecodedBytes bounds the columns of a bundle after decompression.
	MaxBundleDecodedBytes = 16 << 20
	// MaxBundleTokens bounds the tokens of all prompts and completions of a bundle once references to earlier
	// prompts are resolved, and with it the memory of a decoded bundle.
	MaxBundleTokens = 1 << 22
	// MaxRolloutsPerBundle bounds a group or an evaluation block.
	MaxRolloutsPerBundle = 256
	// MaxCallsPerRollout bounds the calls of one rollout.
	MaxCallsPerRollout = 64
	// MaxTokensPerCall bounds a call's prompt, and its completion.
	MaxTokensPerCall = 1 << 15
	// MaxGrammarBytes bounds a call's grammar.
	MaxGrammarBytes = 16 << 10
	// MaxAskedBytes bounds what an agent wanted of a call's sampling.
	MaxAskedBytes = 512
	// MaxComponents bounds the named parts of a rollout's reward.
	MaxComponents = 32
	// MaxComponentName bounds the name of one of them.
	MaxComponentName = 64

	// MaxTensors bounds the tensors of a policy.
	MaxTensors = 1 << 13
	// MaxTensorRank bounds a tensor's dimensions.
	MaxTensorRank = 8
	// MaxPolicyBlocks bounds the blocks of a policy's weights: with blocks of 1 MiB, 16 GiB.
	MaxPolicyBlocks = 1 << 14
	// MaxConfigBytes bounds a policy's config.json, and its generation config.
	MaxConfigBytes = 64 << 10

	// MaxBlockRequestCIDs bounds the blocks asked for in one request.
	MaxBlockRequestCIDs = 256
	// MaxBlockRequestBytes bounds an encoded BlockRequest.
	MaxBlockRequestBytes = 16 << 10
	// MaxBlockHeaderBytes bounds an encoded BlockHeader.
	MaxBlockHeaderBytes = 64
	// MaxHeadReleases bounds the releases of one HeadResponse.
	MaxHeadReleases = 256
	// MaxHeadAnnouncements bounds the announcements of one HeadResponse.
	MaxHeadAnnouncements = 1024
	// MaxHeadCursors bounds the cursors of one HeadRequest.
	MaxHeadCursors = 1024
	// MaxHeadRequestBytes bounds an encoded HeadRequest.
	MaxHeadRequestBytes = 64 << 10
	// MaxHeadResponseBytes bounds an encoded HeadResponse. It is less than the largest number of the largest
	// messages: a responder stops early, and the asker comes back with a later cursor.
	MaxHeadResponseBytes = 1 << 20
	// MaxPeersRequestBytes bounds an encoded PeersRequest.
	MaxPeersRequestBytes = 256
	// MaxPeerRecords bounds the records of one PeersResponse.
	MaxPeerRecords = 64
	// MaxPeerRecordBytes bounds one of them.
	MaxPeerRecordBytes = 4 << 10
	// MaxPeersResponseBytes bounds an encoded PeersResponse.
	MaxPeersResponseBytes = 128 << 10
	// MaxPackagesRequestBytes bounds an encoded PackagesRequest.
	MaxPackagesRequestBytes = 256
	// MaxPackageRecords bounds the packages of one PackagesResponse.
	MaxPackageRecords = 256
	// MaxPackagesResponseBytes bounds an encoded PackagesResponse. It is less than the largest number of the largest
	// records: a responder leaves out what has no room.
	MaxPackagesResponseBytes = 128 << 10
)
