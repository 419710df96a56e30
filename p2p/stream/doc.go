// Package stream is what Lightswarm's request protocols share: length-prefixed messages, and a server that bounds how
// many streams it handles and waits for them when it closes.
//
// A frame is the length of a message as an unsigned varint, then that many bytes. Lengths are checked against the
// reader's limit before memory is set aside.
package stream
