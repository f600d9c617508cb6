package steady

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time since the machine started, including the time in which it was
// suspended.
func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}

var started = time.Now()
