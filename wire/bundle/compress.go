package bundle

import (
	"embed"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/lightswarm/lightswarm/wire"
)

// Dictionaries are trained on recorded bundles' columns and never change once published: a reader keeps all of them,
// a writer uses the newest. The file dictionary/N.zdict has the id N, which a zstd frame carries in its header.
//
//go:embed dictionary/*.zdict
var dictionaryFiles embed.FS

// newestDictionary is the id of the dictionary that Encode uses.
const newestDictionary = 1

func dictionary(id int) []byte {
	b, err := dictionaryFiles.ReadFile(fmt.Sprintf("dictionary/%d.zdict", id))
	if err != nil {
		panic("bundle: " + err.Error()) // it is embedded
	}
	return b
}

// encoder is shared: EncodeAll is safe for concurrent use, and its output depends on its input alone.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	return newEncoder(dictionary(newestDictionary))
})

// level is the zstd level of bundles. On recorded groups the fastest level makes them 3% larger, and the strongest 1%
// smaller at a fraction of the speed.
const level = zstd.SpeedBetterCompression

// newEncoder leaves the checksum out, since a bundle is verified by its CID.
func newEncoder(dictionary []byte) *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(level),
		zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true),
		zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderDict(dictionary))
	if err != nil {
		panic("bundle: zstd encoder: " + err.Error())
	}
	return e
}

// decoder is shared: DecodeAll is safe for concurrent use. It writes no more than the capacity that it is given.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	var dictionaries [][]byte
	for id := 1; id <= newestDictionary; id++ {
		dictionaries = append(dictionaries, dictionary(id))
	}
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(0),
		zstd.WithDecoderMaxMemory(wire.MaxBundleDecodedBytes),
		zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderDicts(dictionaries...))
	if err != nil {
		panic("bundle: zstd decoder: " + err.Error())
	}
	return d
})

// decompress reads one zstd frame that says its size, which must be at most limit. It allocates that size.
func decompress(frame []byte, limit int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil || h.Skippable || !h.HasFCS {
		return nil, malformed("its columns are not a zstd frame that says its size")
	}
	if h.FrameContentSize > uint64(limit) {
		return nil, tooLarge("bytes of columns are", int(min(h.FrameContentSize, math.MaxInt32)), limit)
	}
	if h.DictionaryID > newestDictionary {
		return nil, fmt.Errorf("bundle: %w: it needs dictionary %d and this program has up to %d; upgrade lightswarm on this machine",
			wire.ErrNewerMajor, h.DictionaryID, newestDictionary)
	}
	out, err := decoder().DecodeAll(frame, make([]byte, 0, h.FrameContentSize))
	if err != nil {
		return nil, fmt.Errorf("bundle: %w: decompress: %w", wire.ErrMalformed, err)
	}
	if uint64(len(out)) != h.FrameContentSize {
		return nil, malformed("its columns are not as long as they say")
	}
	return out, nil
}
