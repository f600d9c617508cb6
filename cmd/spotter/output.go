package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// replaceFile writes path by f. The file is there complete or not at all, and
// what was there before stays until it is.
func replaceFile(path string, f func(io.Writer) error) error {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(t, 1<<16)
	err = f(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = t.Chmod(0o644)
	}
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

// checkTarget reports early that path cannot be written, before minutes are
// spent on what should go there.
func checkTarget(path string) error {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return errors.Join(t.Close(), os.Remove(t.Name()))
}

// output writes by f to path, or to the terminal when path is empty.
func (p *program) output(path string, f func(io.Writer) error) error {
	if path != "" {
		return replaceFile(path, f)
	}
	b := bufio.NewWriter(p.stdout)
	return errors.Join(f(b), b.Flush())
}
