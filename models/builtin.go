package models

import (
	"embed"
	"io/fs"
)

// builtin is the bundle that the program ships. docs/models.md is its card.
//
//go:embed builtin
var builtin embed.FS

// Builtin returns the files of the bundle that the program ships.
func Builtin() fs.FS {
	files, err := fs.Sub(builtin, "builtin")
	if err != nil {
		panic("models: the embedded bundle: " + err.Error())
	}
	return files
}
