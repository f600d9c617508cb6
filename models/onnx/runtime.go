//go:build cgo && (linux || darwin)

package onnx

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// started is the one environment of ONNX Runtime that a process has.
var started struct {
	sync.Mutex
	library, version string
}

// Start loads ONNX Runtime from the shared library at path and returns its
// version. A process loads it once: a later call with the same path does
// nothing, and one with another path is an error.
func Start(path string) (version string, err error) {
	started.Lock()
	defer started.Unlock()
	switch {
	case started.library == path && path != "":
		return started.version, nil
	case started.library != "":
		return "", fmt.Errorf("%w from %q: it is loaded from %s already", ErrUnavailable, path, started.library)
	case path == "":
		return "", fmt.Errorf("%w: no shared library is named", ErrUnavailable)
	}
	ort.SetSharedLibraryPath(path)
	if err := ort.InitializeEnvironment(ort.WithLogLevelError()); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrUnavailable, path, err)
	}
	version = ort.GetVersion()
	if !supported(version) {
		if err := ort.DestroyEnvironment(); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %s is version %s, and %s to before %s is wanted", ErrUnavailable, path, version, Oldest, Newest)
	}
	if err := ort.DisableTelemetry(); err != nil {
		return "", err
	}
	started.library, started.version = path, version
	return version, nil
}

// supported reports whether version lies from Oldest to before Newest.
func supported(version string) bool {
	v, ok := parse(version)
	oldest, _ := parse(Oldest)
	newest, _ := parse(Newest)
	return ok && v >= oldest && v < newest
}

// parse returns the first two numbers of a version as one that compares.
func parse(version string) (int, bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, false
	}
	minor, err := strconv.Atoi(parts[1])
	return 1000*major + minor, err == nil
}
