//go:build race

package onnx

// raced says that the race detector is on.
const raced = true
