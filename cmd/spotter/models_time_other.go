//go:build !unix

package main

import "time"

// processorTime returns false, since it is not supported on this system.
func processorTime() (time.Duration, bool) { return 0, false }
