package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lightswarm/lightswarm/scripts/checks/peers"
)

// Each author announces perAuthor groups in the measured part, of which sampledPerAuthor are sampled.
const perAuthor, sampledPerAuthor = groups / authors, 50

// inventory is what the authors need to know.
type inventory struct {
	Charter []byte
	Learner []string // its addresses
	Bodies  [][]byte // every author's groups in the order of counters, the first author's first
}

// writeGroups leaves the groups for the authors.
func writeGroups(work string, ready learnerReady, list []peers.Group) error {
	i := inventory{Charter: ready.Charter, Learner: ready.Addresses}
	for _, g := range list {
		i.Bodies = append(i.Bodies, g.Body)
	}
	encoded, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "groups.json"), encoded, 0o600)
}

// readGroups reads what writeGroups wrote.
func readGroups(work string) (i inventory, list []peers.Group, err error) {
	encoded, err := os.ReadFile(filepath.Join(work, "groups.json"))
	if err != nil {
		return i, nil, err
	}
	if err := json.Unmarshal(encoded, &i); err != nil {
		return i, nil, err
	}
	for n, body := range i.Bodies {
		g, err := peers.Open(body)
		if err != nil {
			return i, nil, fmt.Errorf("number %d: %w", n, err)
		}
		list = append(list, g)
	}
	return i, list, nil
}
