// Package program runs environments that are programs: the driver of kind "exec". A program is a file of the package that
// begins with "#!/usr/bin/env NAME", such as a Python program, or a Linux executable. It speaks package protocol; one
// process plays one episode.
//
// A program needs Linux, with Landlock (5.13 and later) and seccomp. Where they are missing, Open refuses, and says why.
// Options.WithoutLandlock lets the owner of a machine do without the first.
//
// # What a program has
//
//   - files: it reads the system's programs and libraries, its interpreter and its package, and writes in a scratch folder,
//     which is its working folder and gone afterwards. It sees no other file's content, not even below /proc.
//   - time: limits.steps milliseconds for each request, counted from the request to the answer, for the first from the
//     program's start on. All its threads together may compute for timesTime times as long.
//   - memory: limits.memory_bytes of address space.
//   - threads: MaxThreads. It can start no other process.
//   - room: MaxScratchBytes in at most MaxScratchFiles files.
//   - answers of at most 1 MiB, and MaxComplaints of messages on standard error.
//   - variables: PATH, HOME, TMPDIR, LANG and a few that interpreters know. None of the node's.
//   - no network, no signals to others, no other means between processes, no privileges.
//
// Nothing makes two machines' programs agree to the byte: they have their own interpreters. So determinism is stochastic.
//
// # How
//
// Options.Command starts this program again; it calls Work, which gives up all that the environment's program is not to
// have and then becomes that program. Limits that a system has none for, of threads and of room, are watched, several times
// a second; whoever is beyond them is killed: it stands still while its room is measured. The kernel kills a program whose
// node ends.
//
// What this does not contain: a program can see whether a file exists and how large it is, which Landlock does not hide.
// Between two looks at its room it can write as much as the disk takes in that time. And one that starts itself anew from
// another of its threads than the first loses the mark by which the kernel ends it with its node: it outlives a node that is
// killed, unwatched, until its processor time is used up or somebody ends it. It still reaches nothing.
package program
