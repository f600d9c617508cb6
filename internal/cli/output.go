package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muesli/termenv"
	"golang.org/x/term"
)

// ReplaceFile writes path by f. A file is there complete or not at all, and
// what was there before stays until it is. A device, a pipe or a link to one
// is written to and never replaced.
func ReplaceFile(path string, f func(io.Writer) error) error {
	return ReplaceFiles([]string{path}, func(w io.Writer, _ int) error { return f(w) })
}

// ReplaceFiles writes each of paths by f, which is given its index, as [ReplaceFile]
// does: all of them, or on a full disk none.
func ReplaceFiles(paths []string, f func(w io.Writer, i int) error) (err error) {
	var staged []stagedFile
	defer func() {
		for _, s := range staged { // none once they are in their places
			err = errors.Join(err, os.Remove(s.temporary))
		}
	}()
	for i, path := range paths {
		write := func(w io.Writer) error { return f(w, i) }
		if IsDevice(path) {
			if err := writeThrough(path, write); err != nil {
				return err
			}
			continue
		}
		s, err := stage(path, write)
		if err != nil {
			return err
		}
		staged = append(staged, s)
	}
	for len(staged) > 0 {
		if err := os.Rename(staged[0].temporary, staged[0].path); err != nil {
			return err
		}
		staged = staged[1:]
	}
	return nil
}

// A stagedFile is whole and not in its place yet.
type stagedFile struct{ temporary, path string }

// stage writes by f what is to become path.
func stage(path string, f func(io.Writer) error) (stagedFile, error) {
	path, mode := existing(path)
	t, err := temporary(path)
	if err != nil {
		return stagedFile{}, err
	}
	b := bufio.NewWriterSize(t, 1<<16)
	err = f(b)
	if err == nil {
		err = b.Flush()
	}
	if err == nil {
		err = t.Chmod(mode)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return stagedFile{}, errors.Join(err, os.Remove(t.Name()))
	}
	return stagedFile{t.Name(), path}, nil
}

// IsDevice reports whether path is not a regular file: a device, a pipe, or the target of
// /dev/stdout, even where a shell redirects that to a file.
func IsDevice(path string) bool {
	if whole, err := filepath.Abs(path); err == nil {
		for _, folder := range []string{"/dev/", "/proc/"} {
			if strings.HasPrefix(whole, folder) && !strings.HasPrefix(whole, "/dev/shm/") {
				return true
			}
		}
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

func writeThrough(path string, f func(io.Writer) error) error {
	t, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(t, 1<<16)
	if err = f(b); err == nil {
		err = b.Flush()
	}
	return errors.Join(err, t.Close())
}

// existing follows links, so that the file behind one is replaced and not the
// link, and returns the mode that the file has or shall get.
func existing(path string) (string, fs.FileMode) {
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		path = behind
	}
	if info, err := os.Stat(path); err == nil {
		return path, info.Mode().Perm()
	}
	return path, 0o644
}

// temporary makes the file that becomes path. Errors name path, which the user gave, and not the
// temporary name, which users do not know.
func temporary(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t, err := os.CreateTemp(filepath.Dir(path), ".spotter-*")
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return nil, &fs.PathError{Op: "write", Path: path, Err: inner.Err}
	}
	return t, err
}

// CheckWritable reports early that path cannot be written, before minutes are
// spent on what should go there.
func CheckWritable(path string) error {
	if IsDevice(path) {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			return fmt.Errorf("%s is a folder", path)
		}
		return err
	}
	path, _ = existing(path)
	t, err := temporary(path)
	if err != nil {
		return err
	}
	return errors.Join(t.Close(), os.Remove(t.Name()))
}

// CheckOut is [CheckWritable] of a file that a flag names.
func CheckOut(flag, path string) error {
	if err := CheckWritable(path); err != nil {
		return Invalid(fmt.Errorf("%s: %w", flag, err), "give a file in an existing folder that can be written")
	}
	return nil
}

// formats are the extensions of files that imply a format.
var formats = []string{".json", ".yaml", ".yml", ".md", ".csv", ".parquet", ".xml", ".html", ".svg", ".png", ".pdf"}

// CheckEnding refuses a file that a flag names if its extension implies a format other than those
// of the file, whose extensions are own.
func CheckEnding(flag, path string, own ...string) error {
	if ext := strings.ToLower(filepath.Ext(path)); slices.Contains(formats, ext) && !slices.Contains(own, ext) {
		return Invalid(fmt.Errorf("%s: %s: the ending %s belongs to another format", flag, path, ext),
			"name a file that ends with "+strings.Join(own, " or "))
	}
	return nil
}

// Output writes text by f to path, or to the terminal when path is empty. Characters that would
// change how it is shown are escaped, see [figures.PlainText].
func (p *Program) Output(path string, f func(io.Writer) error) error {
	text := func(w io.Writer) error {
		to := plain(w)
		b := bufio.NewWriter(to)
		return errors.Join(f(b), b.Flush(), to.flush())
	}
	if path != "" {
		return ReplaceFile(path, text)
	}
	return text(p.Stdout)
}

// Binary is [Program.Output] for data other than text.
func (p *Program) Binary(path string, f func(io.Writer) error) error {
	if path != "" {
		return ReplaceFile(path, f)
	}
	b := bufio.NewWriter(plain(p.Stdout).w)
	return errors.Join(f(b), b.Flush())
}

// SameFile reports whether two paths lead to one file.
func SameFile(a, b string) bool {
	a, _ = existing(a)
	b, _ = existing(b)
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// Width returns the width of the terminal that a report to out goes to, 0 when it
// goes elsewhere.
func (p *Program) Width(out string) int {
	if f, ok := File(p.Stdout); ok && out == "" {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// Colors reports whether out goes to a terminal that shows colours and NO_COLOR does not disable
// them.
func (p *Program) Colors(out string) bool {
	f, ok := File(p.Stdout)
	return ok && out == "" && termenv.NewOutput(f).EnvColorProfile() != termenv.Ascii
}

// Warn prints each warning once.
func (p *Program) Warn(warned map[string]bool, warnings []string) {
	for _, text := range warnings {
		if !warned[text] {
			warned[text] = true
			fmt.Fprintf(p.Stderr, "warning: %s\n", text)
		}
	}
}
