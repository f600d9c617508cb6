package bundles

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/spotter-dev/spotter/models"
)

// Builtin is the name of the embedded bundle, and BuiltinActions the name of the embedded bundle
// with the network of the policy model. "./builtin" is a folder of that name.
const (
	Builtin        = "builtin"
	BuiltinActions = "builtin-actions"
)

// Folder returns the bundle in dir as a file system. It returns an error if dir is not the folder
// of a bundle, but does not verify the content.
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
