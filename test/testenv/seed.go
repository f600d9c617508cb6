package testenv

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// SeedVariable is the environment variable that has random tests repeat a seed.
const SeedVariable = "SPOTTER_SEED"

// Seed returns the seed of a random test: what [SeedVariable] says, else a new one.
// A test that fails logs how it is repeated.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv(SeedVariable); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedVariable, err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with %s=%d and -run '^%s$'", SeedVariable, seed, t.Name())
		}
	})
	return seed
}
