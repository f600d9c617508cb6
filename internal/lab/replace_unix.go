//go:build unix

package lab

import (
	"os"
	"syscall"
)

// replace puts the program at path into the place of this process, which keeps its
// terminal, its signals and its parent.
func replace(path string, args []string) error {
	return syscall.Exec(path, append([]string{path}, args...), os.Environ()) //nolint:gosec // in its folder or in PATH
}
