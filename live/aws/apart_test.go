package aws_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/aws/fake"
)

// Regions that are recorded by themselves have the very files of those recorded together,
// and one that the account may not use takes nothing from them.
func TestRegionsApart(t *testing.T) {
	server, url := serve(t, draw(3, 4), fake.Faults{PageMax: 40, Throttle: 0.05, Seed: 3})
	c := settingsOf(filepath.Join(t.TempDir(), "apart"), url, end, 3)
	all, err := aws.ListRegions(t.Context(), c)
	if err != nil || !slices.Equal(all, regions) {
		t.Fatalf("%v, %v", all, err)
	}
	c.Regions = slices.Concat(all, []string{"ap-south-1"})
	r, err := aws.NewApart(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	var failed *aws.RegionsError
	s, err := r.Record(t.Context())
	if !errors.As(err, &failed) || !slices.Equal(failed.Regions, []string{"ap-south-1"}) || !errors.Is(err, aws.ErrCredentials) {
		t.Fatalf("%+v, %v", s, err)
	}
	together := settingsOf(filepath.Join(t.TempDir(), "together"), url, end, 3)
	if want := record(t, together); s.Markets != want.Markets || s.Changes != want.Changes || s.Files != want.Files {
		t.Errorf("apart %+v, together %+v", s, want)
	}
	if a, b := files(t, c.Dir), files(t, together.Dir); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("apart %v, together %v", a, b)
	} else {
		for _, name := range a {
			x, errX := os.ReadFile(filepath.Join(c.Dir, name))
			y, errY := os.ReadFile(filepath.Join(together.Dir, name))
			if err := errors.Join(errX, errY); err != nil || !bytes.Equal(x, y) {
				t.Errorf("%s differs: %v", name, err)
			}
		}
	}
	before := len(server.Calls())
	if s, err = r.Record(t.Context()); !errors.As(err, &failed) || s.Files != 0 {
		t.Errorf("again: %+v, %v", s, err)
	}
	if again := len(server.Calls()) - before; again*2 > before {
		t.Errorf("%d requests, and %d again", before, again)
	}
}

// Where no region can be recorded nothing is left.
func TestNoRegionApart(t *testing.T) {
	_, url := serve(t, draw(3, 1), fake.Faults{})
	c := settingsOf(filepath.Join(t.TempDir(), "none"), url, end, 1)
	c.Regions = []string{"ap-south-1", "sa-east-1"}
	r, err := aws.NewApart(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := r.Record(t.Context()); s != nil || !errors.Is(err, aws.ErrCredentials) {
		t.Errorf("%+v, %v", s, err)
	}
	if left, err := os.ReadDir(c.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// files are the names of the files of a trace.
func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".parquet") {
			all = append(all, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
