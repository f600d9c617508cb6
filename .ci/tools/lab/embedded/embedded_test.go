package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const file = "../../../../scenarios/trace/embedded/" + trace.Recorded + ".parquet"

// The embedded trace is made from its recording, byte for byte.
func TestRemade(t *testing.T) {
	made, err := Make(policytest.Recording(t, Source))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "made.parquet")
	if err := trace.WriteFile(path, made); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what its recording gives (%x, %d bytes, and not %d); run make recorded", file, made.Digest[:8], len(got), len(want))
	}
}
