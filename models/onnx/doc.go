// Package onnx runs the graphs of bundles with ONNX Runtime. It is the only
// package that needs cgo and a shared library: without either, [Start] says how
// to get them and everything else works.
package onnx

import "errors"

// ErrUnavailable says that this program or machine cannot run graphs.
var ErrUnavailable = errors.New("ONNX Runtime is not available")

// The versions of ONNX Runtime that are taken: from Oldest on, whose interface
// this program was built with, to before Newest, whose Linux build opens files
// for telemetry.
const (
	Oldest = "1.24"
	Newest = "1.30"
)
