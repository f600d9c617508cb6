//go:build !cgo || !(linux || darwin)

package onnx

import (
	"errors"
	"testing"
)

// TestAbsent: a program without cgo returns that error from every call, and never reports that it
// can run graphs.
func TestAbsent(t *testing.T) {
	if Linked {
		t.Error("it says that it can load ONNX Runtime")
	}
	const want = "ONNX Runtime is not available: this program was built without cgo"
	for _, path := range []string{"", "libonnxruntime.so.1"} {
		if version, err := Start(path); version != "" || !errors.Is(err, ErrUnavailable) || err.Error() != want {
			t.Errorf("Start(%q) = %q, %v", path, version, err)
		}
	}
	if s, err := Open(nil); s != nil || !errors.Is(err, ErrUnavailable) {
		t.Errorf("Open = %v, %v", s, err)
	}
}
