// Package pack turns a folder into an environment package, and a package into a file.
//
// A folder has environment.toml, which says all that the manifest has, and the files that it names. Read checks all of it
// and says of what is wrong which line it is on and what to do. Template is a folder to start from.
//
// A file (Encode, Decode) is a package in one piece, with the author's signature if it has one:
//
//	"LSWE"  major (1 byte, 1)
//	varint length of the statement, and the signed statement (wire.EnvironmentPackage); length 0: nobody signed
//	varint length of the manifest, and the manifest
//	the blocks of each artefact, in the manifest's order
package pack
