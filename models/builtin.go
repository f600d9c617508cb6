package models

import (
	"embed"
	"io/fs"
)

// shipped contains the embedded bundles, which docs/models.md describes.
//
//go:embed builtin qnet
var shipped embed.FS

// Builtin returns the files of the embedded bundle with a forecaster.
func Builtin() fs.FS { return shippedAt("builtin") }

// BuiltinActions returns the files of the embedded bundle with action values. It has no forecaster,
// because its features use forecasts of the closed form.
func BuiltinActions() fs.FS { return shippedAt("qnet") }

func shippedAt(dir string) fs.FS {
	files, err := fs.Sub(shipped, dir)
	if err != nil {
		panic("models: an embedded bundle: " + err.Error())
	}
	return files
}
