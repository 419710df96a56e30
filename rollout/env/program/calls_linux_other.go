//go:build linux && !amd64 && !arm64

package program

import (
	"errors"
	"runtime"
)

var errProcessor = errors.New("there is one for the processors amd64 and arm64 alone, and this is " + runtime.GOARCH)

func filterSupported() error { return errProcessor }

func restrictCalls() error { return errProcessor }
