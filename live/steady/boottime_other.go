//go:build !linux

package steady

import "time"

// bootTime returns the time since the process started.
func bootTime() time.Duration { return time.Since(started) }

var started = time.Now()
