package wasm

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// A module can fail right behind an answer that nobody has taken yet: the next request is told why, and doesn't wait.
func TestAFailureBehindAnAnswer(t *testing.T) {
	const episode = 1
	var said bytes.Buffer
	for _, f := range []frame{
		{frameAnswer, episode, append(Usage{}.append(nil), "one"...)},
		{frameFailed, episode, []byte(`{"Reason":"protocol","Detail":"it says more"}`)},
		{frameEnded, episode, nil},
	} {
		if err := writeFrame(&said, f); err != nil {
			t.Fatal(err)
		}
	}
	left := false
	s := newSeat(func() { left = true })
	c := &child{in: nowhere{}, limit: patience, done: make(chan struct{}), episodes: map[uint32]*seat{episode: s}}
	if err := c.take(&said); !errors.Is(err, io.EOF) || !left {
		t.Fatalf("taking the frames: %v; left: %v", err, left)
	}
	if answer, _, err := c.request(t.Context(), episode, s, nil); string(answer) != "one" || err != nil {
		t.Errorf("the first request: %q, %v", answer, err)
	}
	var f *Failure
	if _, _, err := c.request(t.Context(), episode, s, nil); !errors.As(err, &f) || f.Detail != "it says more" {
		t.Errorf("the second request: %v", err)
	}
}

// nowhere takes all that is written.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }
