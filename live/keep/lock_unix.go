//go:build unix

package keep

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the folder of a record for this process. The system releases
// it when the process ends, however it does.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, ErrBusy)
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}
