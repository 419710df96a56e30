// Package config holds a node's settings and its data folder.
//
// Settings come from four places; a later one wins:
//
//  1. the defaults of [Default];
//  2. the TOML file, normally config.toml in the data folder;
//  3. environment variables, LIGHTSWARM_ followed by the key with dots as underscores;
//  4. command-line flags, the key with hyphens for dots and underscores, without "p2p." and
//     the "rollout." of "rollout.agent."; the command of the agent is --agent.
//
// One table, in fields.go, names every key once; the file, the variables, the flags and docs/configuration.md all follow
// from it. [Load] remembers where each value came from. An unknown key is an error that suggests the
// nearest known one, and an invalid value is an error that says which field, which value, where it came from and
// what to do.
//
// The data folder ([OpenFolder]) is a node's whole durable state:
//
//	config.toml    settings, optional
//	identity.key   the peer's ed25519 private key, PKCS #8 in PEM, mode 0600
//	api.token      bearer token of the local API, mode 0600
//	api.address    where the local API listens; there while a node runs
//	listen         addresses that the node listened on last, so that it keeps its ports
//	log.txt        the log of a learner that draws on a terminal, and of the nodes of a testnet
//	lock           held by the process that uses the folder; it contains that process's id
//	db/            the database of package store
//	lightning.key  what runners of Agent Lightning have to know
//	lightning.env  what their processes need in their environment
//	agents/        where the programs that play rollouts work; nothing in it outlives the node
//
// Files that must survive a crash are written to a temporary name, synced, renamed and the folder synced, so that a
// reader sees all of a file or none of it.
package config
