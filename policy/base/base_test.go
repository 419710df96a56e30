package base

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
)

func TestLoadReadsAFolder(t *testing.T) {
	tok, err := tokenizer.Train(slices.Values([]string{"What is 1 plus 2?"}), 270, chat.Specials())
	if err != nil {
		t.Fatal(err)
	}
	weights := []policy.Tensor{safetensors.FromFloat32s("w", safetensors.BF16, []int{2}, []float32{1, 2})}
	want, err := policy.New([]byte(`{"vocab_size":270}`), tok, chat.Lightswarm1, policy.GenerationConfig{Stop: []int32{8}}, weights)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := want.WriteDir(filepath.Join(root, "files")); err != nil {
		t.Fatal(err)
	}
	got, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest() != want.Digest() {
		t.Errorf("loaded %s, want %s", got.Digest(), want.Digest())
	}
	if _, err := load(os.DirFS(t.TempDir())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}
