//go:build unix

package module

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Work is what the process of a module does. Its arguments are "compile", a folder for compiled modules and the module's
// file; or "run", the same, and the module's arguments. The module gets the variables of environ, and connections to where
// its OPENAI_BASE_URL is. Work returns the process's exit status, and with an error why it is that.
func Work(arguments, environ []string) (status int, err error) {
	if len(arguments) < 3 {
		return trapped, fmt.Errorf("%d arguments are too few", len(arguments))
	}
	what, folder, name := arguments[0], arguments[1], arguments[2]
	p := &Program{Cache: folder, Args: append([]string{filepath.Base(name)}, arguments[3:]...), Environ: environ}
	if p.Code, err = readModule(name); err != nil {
		return trapped, err
	}
	switch what {
	case "compile":
		if err := p.Compile(context.Background()); err != nil {
			return trapped, err
		}
		return 0, nil
	case "run":
		if p.Endpoint, err = endpoint(environ); err != nil {
			return trapped, err
		}
		signal.Ignore(syscall.SIGTERM) // a module cannot be asked to end; until it is killed it may still answer
		return p.Run(context.Background())
	}
	return trapped, fmt.Errorf("there is nothing called %q to do with a module", what)
}

func readModule(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	code, err := io.ReadAll(io.LimitReader(f, MaxModuleBytes+1))
	if err == nil && len(code) > MaxModuleBytes {
		err = fmt.Errorf("%s has more than %d bytes", name, MaxModuleBytes)
	}
	return code, err
}

// endpoint is where the policy is reached.
func endpoint(environ []string) (netip.AddrPort, error) {
	const name = "OPENAI_BASE_URL"
	for _, entry := range environ {
		value, ok := strings.CutPrefix(entry, name+"=")
		if !ok {
			continue
		}
		u, err := url.Parse(value)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("%s: %w", name, err)
		}
		a, err := netip.ParseAddrPort(u.Host)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return a, err
	}
	return netip.AddrPort{}, fmt.Errorf("%s is not set", name)
}
