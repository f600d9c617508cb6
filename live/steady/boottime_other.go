//go:build !linux

package steady

import "time"

// bootTime returns how long the process has run.
func bootTime() time.Duration { return time.Since(started) }

var started = time.Now()
