package models

import (
	"embed"
	"io/fs"
)

// builtinActions is the bundle of action values that the program ships.
//
//go:embed qnet
var builtinActions embed.FS

// BuiltinActions returns the files of the bundle of action values that the
// program ships. Its features are built on forecasts of the closed form, so that
// it has no forecaster.
func BuiltinActions() fs.FS {
	files, err := fs.Sub(builtinActions, "qnet")
	if err != nil {
		panic("models: the embedded bundle: " + err.Error())
	}
	return files
}
