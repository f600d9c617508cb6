package policytest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Golden returns a file of golden vectors, from the folder that SPOTTER_GOLDEN names (a relative
// one from the root of the module) or shared/golden next to the module. Without a folder the test
// is skipped and says so; a file that is missing from a folder fails it.
func Golden(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(beside(t, "SPOTTER_GOLDEN", "golden", name))
	if err != nil {
		t.Fatalf("golden vectors: %v", err)
	}
	return data
}

// Recording returns the path of a recorded data set, from the folder that SPOTTER_DATA names or
// shared/data next to the module, as [Golden] does.
func Recording(t *testing.T, name string) string {
	t.Helper()
	path := beside(t, "SPOTTER_DATA", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("recordings: %v", err)
	}
	return path
}

// beside returns the path of name in the folder that the variable names, else in the folder below
// shared next to the module.
func beside(t *testing.T, variable, folder, name string) string {
	t.Helper()
	root := Root(t)
	dir := os.Getenv(variable)
	switch {
	case dir == "":
		dir = filepath.Join(root, "..", "shared", folder)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			t.Skipf("there is nothing to read: %s is not set and %s does not exist", variable, dir)
		}
	case !filepath.IsAbs(dir):
		dir = filepath.Join(root, dir)
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// Root returns the folder of the project's go.mod above the package under test,
// which may be in a module of its own below .ci.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, ".ci")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no .ci above the package under test")
		}
		dir = up
	}
}
