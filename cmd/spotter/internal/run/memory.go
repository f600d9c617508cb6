package run

import (
	"os"
	"runtime/debug"
)

// collectPercent is by how much of what is in use the heap may grow before the next
// collection. Most of what is in use is the cache of the cluster, which stays: the 100 of
// Go would keep as much again for what is used for milliseconds. Lowering it takes more
// processor time.
const collectPercent = 50

// CollectSooner holds memory down, unless GOGC says otherwise.
func CollectSooner() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectPercent)
	}
}
