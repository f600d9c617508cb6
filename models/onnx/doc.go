// Package onnx runs the graphs of bundles with ONNX Runtime. It is the only package that requires
// cgo and a shared library: if one of them is missing, [Start] returns an error with advice, and
// everything else works.
package onnx

import "errors"

// ErrUnavailable is wrapped by the error of a program or machine that cannot run graphs.
var ErrUnavailable = errors.New("ONNX Runtime is not available")

// The supported versions of ONNX Runtime: from Oldest, whose API this program was built with, to
// before Newest, whose Linux build opens files for telemetry.
const (
	Oldest = "1.24"
	Newest = "1.30"
)
