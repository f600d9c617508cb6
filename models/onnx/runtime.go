//go:build cgo && (linux || darwin)

package onnx

import (
	"fmt"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
	"k8s.io/apimachinery/pkg/util/version"
)

// Linked reports whether this program can load ONNX Runtime.
const Linked = true

// Advice explains how to make the library available.
const Advice = "run `make onnxruntime`, or let SPOTTER_ONNXRUNTIME name a library of ONNX Runtime 1.24"

// started describes the environment of ONNX Runtime, of which a process has only one.
var started struct {
	sync.Mutex
	library, version string
}

// Start loads ONNX Runtime from the shared library at path and returns its version. A process loads
// it only once: a later call with the same path has no effect, and one with another path returns an
// error.
func Start(path string) (loaded string, err error) {
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
	loaded = ort.GetVersion()
	if !supported(loaded) {
		if err := ort.DestroyEnvironment(); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: %s is version %s, and %s to before %s is wanted", ErrUnavailable, path, loaded,
			Oldest, Newest)
	}
	if err := ort.DisableTelemetry(); err != nil {
		return "", err
	}
	started.library, started.version = path, loaded
	return loaded, nil
}

// supported reports whether text is a version from Oldest to before Newest.
func supported(text string) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.AtLeast(version.MustParseGeneric(Oldest)) && v.LessThan(version.MustParseGeneric(Newest))
}
