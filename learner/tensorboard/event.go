package tensorboard

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Event is what was measured at one step.
type Event struct {
	Time time.Time
	// Step is where the values stand in their curves.
	Step   int64
	Values []Value
}

// Value is a point of a curve.
type Value struct {
	// Tag names the curve; what comes before the first slash groups curves.
	Tag string
	// Scalar is the value, unless there is a Histogram.
	Scalar    float64
	Histogram *Histogram
}

// Histogram is a distribution. Counts[i] values lie between Limits[i-1], or Min, and Limits[i].
type Histogram struct {
	Min, Max float64
	// Number, Sum and Squares are how many values there are, their sum and that of their squares.
	Number, Sum, Squares float64
	Limits, Counts       []float64
}

// Add counts n values v in Min, Max and the sums; buckets are the caller's.
func (h *Histogram) Add(v, n float64) {
	if n <= 0 {
		return
	}
	if h.Number == 0 {
		h.Min, h.Max = v, v
	}
	h.Min, h.Max = min(h.Min, v), max(h.Max, v)
	h.Number += n
	h.Sum += n * v
	h.Squares += n * v * v
}

// The fields of TensorFlow's messages.
const (
	eventWallTime    = 1
	eventStep        = 2
	eventFileVersion = 3
	eventSummary     = 5

	summaryValue = 1

	valueTag       = 1
	valueSimple    = 2
	valueHistogram = 5

	histogramLimits = 6
	histogramCounts = 7
)

// fileVersion is what the first event of a file says.
const fileVersion = "brain.Event:2"

// encode returns the event as a message.
func (e Event) encode() []byte {
	b := doubleField(nil, eventWallTime, seconds(e.Time))
	if e.Step != 0 {
		b = protowire.AppendTag(b, eventStep, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(e.Step))
	}
	var summary []byte
	for _, v := range e.Values {
		summary = bytesField(summary, summaryValue, v.encode())
	}
	return bytesField(b, eventSummary, summary)
}

// first is the event that begins a file.
func first(now time.Time) []byte {
	return bytesField(doubleField(nil, eventWallTime, seconds(now)), eventFileVersion, []byte(fileVersion))
}

func (v Value) encode() []byte {
	b := bytesField(nil, valueTag, []byte(v.Tag))
	if v.Histogram != nil {
		return bytesField(b, valueHistogram, v.Histogram.encode())
	}
	b = protowire.AppendTag(b, valueSimple, protowire.Fixed32Type)
	return protowire.AppendFixed32(b, math.Float32bits(float32(v.Scalar)))
}

func (h *Histogram) encode() []byte {
	var b []byte
	for i, v := range []float64{h.Min, h.Max, h.Number, h.Sum, h.Squares} {
		if v != 0 {
			b = doubleField(b, protowire.Number(i+1), v)
		}
	}
	b = bytesField(b, histogramLimits, doubles(h.Limits))
	return bytesField(b, histogramCounts, doubles(h.Counts))
}

// doubles is a packed field's content.
func doubles(list []float64) []byte {
	var b []byte
	for _, v := range list {
		b = protowire.AppendFixed64(b, math.Float64bits(v))
	}
	return b
}

func doubleField(b []byte, n protowire.Number, v float64) []byte {
	b = protowire.AppendTag(b, n, protowire.Fixed64Type)
	return protowire.AppendFixed64(b, math.Float64bits(v))
}

func bytesField(b []byte, n protowire.Number, v []byte) []byte {
	b = protowire.AppendTag(b, n, protowire.BytesType)
	return protowire.AppendBytes(b, v)
}

// seconds since 1970, which is how events are dated.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
