//go:build !unix

package lab

import (
	"errors"
	"os"
	"os/exec"
)

// replace runs the program at path and ends this process with its exit code.
func replace(path string, args []string) error {
	c := exec.Command(path, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	os.Exit(c.ProcessState.ExitCode())
	return nil
}
