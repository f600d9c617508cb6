//go:build !unix

// Package flock takes a folder for one process by a lock on a file in it.
package flock

import (
	"errors"
	"os"
)

// ErrBusy is returned on no system without locks.
var ErrBusy = errors.New("another recorder is running")

// Lock opens the file only: these systems have no lock in the standard library
// that ends with its process, and one that outlives it would be worse than none.
func Lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}
