package testenv

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The servers, by the names of their binaries.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// module is the first line of our go.mod.
const module = "module github.com/spotter-dev/spotter"

// binaries returns the folder of the binaries, or skips the test where one of
// those needed is not there.
func binaries(t testing.TB, o Options) string {
	t.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		dir = filepath.Join(root, "bin", "testenv")
	}
	for _, name := range append(o.servers(), "kubectl") {
		_, err := os.Stat(filepath.Join(dir, name))
		switch {
		case err == nil:
		case os.Getenv("SPOTTER_TESTENV") == "required":
			t.Fatalf("testenv: %v; run make testenv", err)
		default:
			t.Skipf("testenv: there is no %s in %s; run make testenv", name, dir)
		}
	}
	return dir
}

// moduleRoot returns the folder above the test's that holds our go.mod.
func moduleRoot() (string, error) {
	from, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		if firstLine(filepath.Join(dir, "go.mod")) == module {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of ours at or above %s", from)
		}
	}
}

func firstLine(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Scan()
	return strings.TrimSpace(s.Text())
}
