package run

import (
	"os"
	"runtime/debug"
)

// collectPercent is the growth of the heap, relative to the memory in use, that triggers the next
// garbage collection. Most memory is used by the cluster cache, which stays: Go's default of 100
// would reserve the same amount again for short-lived data. Lowering it takes more processor time.
const collectPercent = 50

// CollectSooner reduces memory usage by more frequent garbage collection, unless GOGC is set.
func CollectSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
}
