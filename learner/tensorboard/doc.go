// Package tensorboard writes event files, which TensorBoard draws: scalars and histograms by step.
//
// An event file is a sequence of records. A record is (all little-endian)
//
//	length uint64 | masked crc32c of the length uint32 | data | masked crc32c of the data uint32
//
// where the mask of a checksum c is (c>>15 | c<<17) + 0xa282ead8. The data of each is an Event of TensorFlow's
// event.proto; the first says the format, "brain.Event:2". Readers stop at a record that is cut short and go on when it is
// whole. TensorBoard reads the files of a folder in the order of their names, as one run.
package tensorboard
