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

// pid returns the process of a server.
func (e *Env) pid(server string) (int, error) {
	data, err := os.ReadFile(filepath.Join(e.Dir, server+".pid"))
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("process of %s: %w", server, err)
	}
	return pid, nil
}

// kill ends a server without asking it, and returns its arguments once it is gone.
func (e *Env) kill(server string) (args []string, err error) {
	pid, err := e.pid(server)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return nil, err
	}
	gone := func() error {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(text) > 0 { // a zombie has none
			return fmt.Errorf("process %d is still there", pid)
		}
		return nil
	}
	return strings.Split(strings.Trim(string(line), "\x00"), "\x00")[1:], poll(startTimeout, gone)
}

// signal freezes a server or lets it continue.
func (e *Env) signal(server string, freeze bool) error {
	pid, err := e.pid(server)
	if err != nil {
		return err
	}
	if freeze {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
