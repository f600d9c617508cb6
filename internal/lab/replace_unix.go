//go:build unix

package lab

import (
	"os"
	"syscall"
)

// replace replaces this process with the program at path. Terminal, signals and parent remain the
// same.
func replace(path string, args []string) error {
	return syscall.Exec(path, append([]string{path}, args...), os.Environ()) //nolint:gosec // in its folder or in PATH
}
