//go:build unix

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ownGroup puts a process into a group of its own, so that it can be ended with all
// that it started and does not end at an interrupt from the terminal.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signal freezes a server or lets it go on.
func (e *Env) signal(server string, freeze bool) error {
	data, err := os.ReadFile(filepath.Join(e.Dir, server+".pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("process of %s: %w", server, err)
	}
	if freeze {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
