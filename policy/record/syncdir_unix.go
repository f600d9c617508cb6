//go:build unix

package record

import (
	"errors"
	"os"
)

// syncDir puts on the disk which names a folder holds.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
