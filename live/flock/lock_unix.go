//go:build unix

// Package flock reserves a folder for one process with a lock on a file in it.
package flock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrBusy means that another process has the lock.
var ErrBusy = errors.New("another recorder is running")

// Lock locks the file at path for this process. The operating system releases the lock when the
// process ends for any reason. If another process has the lock, the error wraps ErrBusy.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, ErrBusy)
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}
