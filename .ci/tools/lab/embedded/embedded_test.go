package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

const (
	folder = "../../../../scenarios/trace/embedded/"
	file   = folder + trace.Recorded + ".parquet"
)

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

// The embedded synthetic traces are what the generator draws, so nothing was put in by hand.
func TestDrawn(t *testing.T) {
	all, err := Drawn()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range all {
		embedded, ok, err := trace.EmbeddedNamed(name)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		drawn, err := generate.Generate(c)
		if err != nil {
			t.Fatal(err)
		}
		drawn.Name = embedded.Name
		if !reflect.DeepEqual(embedded, drawn) {
			t.Errorf("the embedded trace %s (%x) is not what the generator draws (%x); run embedded/gen.go",
				name, embedded.Digest[:8], drawn.Digest[:8])
		}
		if !embedded.Synthetic || !strings.Contains(embedded.About, "synthetic") {
			t.Errorf("%s does not say that it is synthetic: %q", name, embedded.About)
		}
		if info, err := os.Stat(folder + name + ".parquet"); err != nil || info.Size() > 110_000 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
