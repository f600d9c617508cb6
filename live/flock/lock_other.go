//go:build !unix

// Package flock reserves a folder for one process with a lock on a file in it.
package flock

import (
	"errors"
	"os"
)

// ErrBusy is never returned on systems without locks.
var ErrBusy = errors.New("another recorder is running")

// Lock only opens the file: for these systems, the standard library has no lock that ends with its
// process, and a lock that outlives its process would be worse than none.
func Lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}
