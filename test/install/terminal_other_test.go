//go:build !linux

package install

import (
	"os/exec"
	"testing"
)

// onTerminal skips: the tests have terminals on Linux alone.
func onTerminal(t *testing.T, _ *exec.Cmd, _, _ string) error {
	t.Helper()
	t.Skip("no pseudo-terminals here")
	return nil
}
