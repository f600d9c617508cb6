package bundles

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/spotter-dev/spotter/models"
)

// Builtin names the bundle that is part of the program, and builtinActions
// the one with the network of the policy model; "./builtin" is a folder of that
// name.
const (
	Builtin        = "builtin"
	BuiltinActions = "builtin-actions"
)

// Folder says what is wrong with dir as the folder of a bundle, before
// anything in it is judged.
func Folder(dir string) (fs.FS, error) {
	if dir == Builtin {
		return models.Builtin(), nil
	}
	if dir == BuiltinActions {
		return models.BuiltinActions(), nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	fsys := os.DirFS(dir)
	if _, err := fs.Stat(fsys, models.ManifestName); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return fsys, nil
}
