package storetest_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/storetest"
)

func TestMemory(t *testing.T) {
	stores := make(map[string]*learner.Memory)
	storetest.Run(t, func(dir string) (learner.Store, func() error, error) {
		if stores[dir] == nil {
			stores[dir] = learner.NewMemory()
		}
		return stores[dir], func() error { return nil }, nil
	})
}

func TestFolder(t *testing.T) {
	storetest.Run(t, func(dir string) (learner.Store, func() error, error) {
		f, err := learner.OpenFolder(dir)
		if err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	})
}
