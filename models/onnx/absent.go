//go:build !cgo || !(linux || darwin)

package onnx

import (
	"fmt"

	"github.com/spotter-dev/spotter/models"
)

// Start reports that the program was built without cgo.
func Start(string) (version string, err error) {
	return "", fmt.Errorf("%w: this program was built without cgo", ErrUnavailable)
}

// Open reports that the program was built without cgo.
func Open(*models.Net) (models.Session, error) {
	_, err := Start("")
	return nil, err
}
