package main

import (
	"fmt"
	"strings"

	"github.com/multiformats/go-multiaddr"
)

// fixPorts replaces each port 0 of listen addresses by the port that was chosen for it, which is that of an address
// with the same transport among those that the node can be reached at.
func fixPorts(listen, reached []string) ([]string, error) {
	fixed := make([]string, len(listen))
	for i, text := range listen {
		address, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("listen address %q: %w", text, err)
		}
		fixed[i] = text
		if port, protocol := portOf(address); port == "0" {
			fixed[i] = strings.Replace(text, "/"+protocol+"/0", "/"+protocol+"/"+chosenPort(address, reached), 1)
		}
	}
	return fixed, nil
}

// portOf is an address's TCP or UDP port.
func portOf(address multiaddr.Multiaddr) (port, protocol string) {
	for _, p := range []int{multiaddr.P_TCP, multiaddr.P_UDP} {
		if port, err := address.ValueForProtocol(p); err == nil {
			return port, multiaddr.ProtocolWithCode(p).Name
		}
	}
	return "", ""
}

// chosenPort is the port of the first reached address of the same shape; 0 if there is none.
func chosenPort(address multiaddr.Multiaddr, reached []string) string {
	for _, text := range reached {
		other, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			continue
		}
		same := len(other) >= len(address)
		for i, part := range address {
			same = same && part.Protocol().Code == other[i].Protocol().Code
		}
		if port, _ := portOf(other); same {
			return port
		}
	}
	return "0"
}
