//go:build !wasip1

package main

import "net"

var dial = (&net.Dialer{}).DialContext
