package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spotter-dev/spotter/models"
)

// builtinBundle names the bundle that is part of the program, and builtinActions
// the one with the network of the policy model; "./builtin" is a folder of that
// name.
const (
	builtinBundle  = "builtin"
	builtinActions = "builtin-actions"
)

// readFolder says what is wrong with dir as the folder of a bundle, before
// anything in it is judged.
func readFolder(dir string) (fs.FS, error) {
	if dir == builtinBundle {
		return models.Builtin(), nil
	}
	if dir == builtinActions {
		return models.BuiltinActions(), nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", dir)
	}
	fsys := os.DirFS(dir)
	if _, err := fs.Stat(fsys, models.ManifestName); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return fsys, nil
}

// checkOutput says what is wrong with -o DIR, to which what is to be written; advice
// says what to read.
func checkOutput(dir, what, advice string) error {
	if dir == "" {
		return wrong(fmt.Errorf("-o is missing: where the %s should go", what), advice)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && len(entries) > 0:
		err = fmt.Errorf("%s is not empty", dir)
	}
	if err != nil {
		return wrong(fmt.Errorf("-o: %w", err), "name a folder that is new or empty")
	}
	return nil
}
