//go:build !cgo || !(linux || darwin)

package onnx

import (
	"fmt"

	"github.com/spotter-dev/spotter/models"
)

// Linked reports whether this program can load ONNX Runtime.
const Linked = false

// Advice explains how to get a program that can load it.
const Advice = "use the container image, or build spotter with a C compiler (CGO_ENABLED=1)"

// Start always returns an error: the program was built without cgo.
func Start(string) (version string, err error) {
	return "", fmt.Errorf("%w: this program was built without cgo", ErrUnavailable)
}

// Open always returns an error: the program was built without cgo.
func Open(*models.Net) (models.Session, error) {
	_, err := Start("")
	return nil, err
}
