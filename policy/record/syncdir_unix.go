//go:build unix

package record

import (
	"errors"
	"os"
)

// syncDir writes the entries of a folder to disk.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
