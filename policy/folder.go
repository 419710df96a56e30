package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/safetensors"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/wire"
)

// The files of a policy's folder, in Hugging Face's layout.
const (
	ConfigFile     = "config.json"
	TokenizerFile  = "tokenizer.json"
	GenerationFile = "generation_config.json"
	WeightsFile    = "model.safetensors"
)

// generationFile is generation_config.json: the generation config, and the template's name, for which the layout
// has no place of its own.
type generationFile struct {
	Stop     []int32           `json:"eos_token_id"`
	Template chat.TemplateName `json:"lightswarm_template"`
}

// WriteDir writes the policy as a folder. dir must not exist, or be empty (else fs.ErrExist): it appears whole or
// not at all, and once WriteDir returns it survives a power cut.
func (s *Snapshot) WriteDir(dir string) error {
	if err := s.writeDir(filepath.Clean(dir)); err != nil {
		return fmt.Errorf("write policy to %s: %w", dir, err)
	}
	return nil
}

// CheckDir tells before long work whether WriteDir may write to dir: it must not exist, or be empty, and its parent,
// which is made, must be writable. What it cannot tell is whether the disk has room.
func CheckDir(dir string) error {
	temp, err := besideDir(filepath.Clean(dir))
	if err == nil {
		err = os.Remove(temp)
	}
	if err != nil {
		return fmt.Errorf("write policy to %s: %w", dir, err)
	}
	return nil
}

// besideDir makes a new folder beside dir, which must not exist or be empty.
func besideDir(dir string) (temp string, err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("folder is not empty: %w", fs.ErrExist)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, "."+filepath.Base(dir)+".*")
}

func (s *Snapshot) writeDir(dir string) (err error) {
	files, err := s.files()
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	temp, err := besideDir(dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := durable.WriteContent(filepath.Join(temp, name), data, 0o644); err != nil {
			return err
		}
	}
	if err := durable.SyncFolder(temp); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	return durable.SyncFolder(parent)
}

// files is the content of the policy's folder.
func (s *Snapshot) files() (map[string][]byte, error) {
	tok, err := s.Tokenizer.MarshalJSON()
	if err != nil {
		return nil, err
	}
	generation, err := json.MarshalIndent(generationFile{s.Generation.Stop, s.Template}, "", "  ")
	if err != nil {
		return nil, err
	}
	weights, err := safetensors.Encode(safetensors.File{Tensors: s.Tensors, Metadata: metadata})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		ConfigFile:     s.ConfigJSON,
		TokenizerFile:  tok,
		GenerationFile: append(generation, '\n'),
		WeightsFile:    weights,
	}, nil
}

// ReadDir reads a folder that WriteDir wrote. Other files in it are ignored. It fails with ErrPolicy, or the error
// of a part's package or of reading.
func ReadDir(dir string) (*Snapshot, error) {
	s, err := ReadFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("read policy from %s: %w", dir, err)
	}
	return s, nil
}

// ReadFS is ReadDir for the root of any file system.
func ReadFS(files fs.FS) (*Snapshot, error) {
	config, err := readBounded(files, ConfigFile, wire.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	raw, err := readBounded(files, GenerationFile, wire.MaxConfigBytes)
	if err != nil {
		return nil, err
	}
	generation, err := parseGeneration(raw)
	if err != nil {
		return nil, err
	}
	var g struct {
		Template chat.TemplateName `json:"lightswarm_template"`
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrPolicy, GenerationFile, err)
	}
	if raw, err = readBounded(files, TokenizerFile, tokenizer.MaxFileBytes); err != nil {
		return nil, err
	}
	tok, err := tokenizer.Load(raw)
	if err != nil {
		return nil, err
	}
	weights, err := readBounded(files, WeightsFile, MaxBytes+8+safetensors.MaxHeaderBytes)
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Decode(weights)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", WeightsFile, err)
	}
	return New(config, tok, g.Template, generation, file.Tensors)
}

// readBounded reads a file of at most limit bytes.
func readBounded(files fs.FS, name string, limit int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d", ErrPolicy, name, info.Size(), limit)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}
