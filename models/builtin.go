package models

import (
	"embed"
	"io/fs"
)

// shipped are the bundles that are part of the program. docs/models.md is their card.
//
//go:embed builtin qnet
var shipped embed.FS

// Builtin returns the files of the bundle that forecasts.
func Builtin() fs.FS { return shippedAt("builtin") }

// BuiltinActions returns the files of the bundle that values actions. Its features
// are built on forecasts of the closed form, so that it has no forecaster.
func BuiltinActions() fs.FS { return shippedAt("qnet") }

func shippedAt(dir string) fs.FS {
	files, err := fs.Sub(shipped, dir)
	if err != nil {
		panic("models: an embedded bundle: " + err.Error())
	}
	return files
}
