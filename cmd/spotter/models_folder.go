package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/spotter-dev/spotter/models"
)

// readFolder says what is wrong with dir as the folder of a bundle, before
// anything in it is judged.
func readFolder(dir string) (fs.FS, error) {
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
