//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the time that this process has spent on processors, and
// whether the system reports it.
func processorTime() (time.Duration, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
