package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/node/config"
)

// choosePorts replaces each port 0 of listen addresses by a free port. The error, a *config.FieldError, says that a node
// could not listen.
func choosePorts(listen []string) (chosen []string, err error) {
	// All stay open until all are, so that no port is chosen twice.
	var open []io.Closer
	defer func() {
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, text := range listen {
		fixed, c, err := bind(text)
		if err != nil {
			problem := fmt.Sprintf("this machine cannot listen on %s: %v", text, errors.Unwrap(err))
			return nil, &config.FieldError{Key: "p2p.listen", Value: text, Problem: problem}
		}
		chosen, open = append(chosen, fixed), append(open, c)
	}
	return chosen, nil
}

// keepPorts replaces each port 0 of listen addresses by the port that the node had last, if it is free, or else by a free
// one, so that others find the node again after a restart. An address that cannot be listened on stays as it is.
func keepPorts(listen, last []string) []string {
	kept := slices.Clone(listen)
	for i, text := range listen {
		open := portPattern.FindString(text)
		if !strings.HasSuffix(open, "/0") {
			continue
		}
		for _, candidate := range append(slices.Clone(last), text) {
			if portPattern.ReplaceAllString(candidate, "/$1/0") != portPattern.ReplaceAllString(text, "/$1/0") {
				continue
			}
			if fixed, c, err := bind(candidate); err == nil && c.Close() == nil {
				kept[i] = fixed
				break
			}
		}
	}
	return kept
}

// portPattern is the part of a multiaddress with its port.
var portPattern = regexp.MustCompile(`/(tcp|udp)/([0-9]+)`)

// lastListen are the addresses that rememberListen stored, if any.
func lastListen(folder string) []string {
	data, err := os.ReadFile(config.View(folder).ListenFile())
	if err != nil {
		return nil // then other ports are chosen
	}
	return strings.Fields(string(data))
}

// rememberListen stores the addresses that a node listens on.
func rememberListen(folder string, listen []string) error {
	err := durable.WriteFile(config.View(folder).ListenFile(), []byte(strings.Join(listen, "\n")+"\n"), 0o600)
	if err != nil {
		return fmt.Errorf("remember the node's ports: %w", err)
	}
	return nil
}

// bind listens on the TCP or UDP part of an address, and returns the address with the port that it got.
func bind(text string) (fixed string, c io.Closer, err error) {
	address, err := multiaddr.NewMultiaddr(text)
	if err != nil {
		return "", nil, fmt.Errorf("bind: %w", err)
	}
	for i, part := range address {
		code := part.Protocol().Code
		if code != multiaddr.P_TCP && code != multiaddr.P_UDP {
			continue
		}
		local, rest := address[:i+1], address[i+1:]
		var got multiaddr.Multiaddr
		if code == multiaddr.P_TCP {
			l, err := manet.Listen(local)
			if err != nil {
				return "", nil, fmt.Errorf("bind: %w", err)
			}
			got, c = l.Multiaddr(), l
		} else {
			l, err := manet.ListenPacket(local)
			if err != nil {
				return "", nil, fmt.Errorf("bind: %w", err)
			}
			got, c = l.LocalMultiaddr(), l
		}
		// The host part stays as the user wrote it.
		port, err := got.ValueForProtocol(code)
		if err != nil {
			return "", nil, errors.Join(fmt.Errorf("bind: %w", err), c.Close())
		}
		name := part.Protocol().Name
		return address[:i].String() + "/" + name + "/" + port + rest.String(), c, nil
	}
	return "", nil, fmt.Errorf("bind: %w", errors.New("it has no TCP or UDP port; use for example /ip4/0.0.0.0/tcp/4001"))
}

// reachOf says where alone addresses are of use of which none is public; it is empty if one is.
func reachOf(addresses []string) string {
	private := false
	for _, text := range addresses {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			continue
		}
		ip, err := manet.ToIP(m)
		if err != nil {
			return "" // a name
		}
		address, _ := netip.AddrFromSlice(ip)
		address = address.Unmap()
		switch {
		case address.IsLoopback():
		case address.IsPrivate() || address.IsLinkLocalUnicast():
			private = true
		default:
			return ""
		}
	}
	if private {
		return "in the local network"
	}
	return "on this machine"
}
