package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spotter-dev/spotter/internal/cli"
)

// checkOutput returns an error if dir, the value of --out, cannot be the folder for what;
// advice says what to read.
func checkOutput(dir, what, advice string) error {
	if dir == "" {
		return cli.Invalid(fmt.Errorf("--out is missing: where the %s should go", what), advice)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && len(entries) > 0:
		err = fmt.Errorf("%s is not empty", dir)
	}
	if err != nil {
		return cli.Invalid(fmt.Errorf("--out: %w", err), "name a folder that is new or empty")
	}
	return nil
}
