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

// ReplaceFile atomically replaces path with what f writes: the previous file remains until the new
// one is complete. A device, a pipe or a link to one is written to, but not replaced.
func ReplaceFile(path string, f func(io.Writer) error) error {
	return ReplaceFiles([]string{path}, func(w io.Writer, _ int) error { return f(w) })
}

// ReplaceFiles writes each of paths with f, which receives its index, in the same way as
// [ReplaceFile]. If writing one of them fails, for example because the disk is full, it replaces no
// file.
func ReplaceFiles(paths []string, f func(w io.Writer, i int) error) (err error) {
	var staged []stagedFile
	defer func() {
		for _, s := range staged { // empty after all files were moved
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

// A stagedFile is a complete temporary file that will be moved to path.
type stagedFile struct{ temporary, path string }

// stage writes a temporary file for path with f.
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
// /dev/stdout, even if a shell redirects that to a file.
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

// existing resolves links, so that their target is replaced rather than the link. It returns the
// resolved path, and the current or default mode of the file.
func existing(path string) (string, fs.FileMode) {
	if behind, err := filepath.EvalSymlinks(path); err == nil {
		path = behind
	}
	if info, err := os.Stat(path); err == nil {
		return path, info.Mode().Perm()
	}
	return path, 0o644
}

// temporary creates a temporary file in the folder of path. Errors name path, not the temporary
// file, which the user does not know.
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

// CheckWritable returns an error if path cannot be written. Long-running commands call it before
// they start.
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

// CheckOut is [CheckWritable] for the value of a flag.
func CheckOut(flag, path string) error {
	if err := CheckWritable(path); err != nil {
		return Invalid(fmt.Errorf("%s: %w", flag, err), "give a file in an existing folder that can be written")
	}
	return nil
}

// formats are the file extensions that imply a format.
var formats = []string{".json", ".yaml", ".yml", ".md", ".csv", ".parquet", ".xml", ".html", ".svg", ".png", ".pdf"}

// CheckEnding returns an error if the extension of a flag's path implies a format other than own.
func CheckEnding(flag, path string, own ...string) error {
	if ext := strings.ToLower(filepath.Ext(path)); slices.Contains(formats, ext) && !slices.Contains(own, ext) {
		return Invalid(fmt.Errorf("%s: %s: the ending %s belongs to another format", flag, path, ext),
			"name a file that ends with "+strings.Join(own, " or "))
	}
	return nil
}

// Output writes text with f to path, or to standard output if path is empty. It escapes control
// characters; see [figures.PlainText].
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

// Binary is [Program.Output] for data that is not text.
func (p *Program) Binary(path string, f func(io.Writer) error) error {
	if path != "" {
		return ReplaceFile(path, f)
	}
	b := bufio.NewWriter(plain(p.Stdout).w)
	return errors.Join(f(b), b.Flush())
}

// SameFile reports whether two paths identify the same file.
func SameFile(a, b string) bool {
	a, _ = existing(a)
	b, _ = existing(b)
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// Width returns the width of the terminal that receives the report if it is written to out, 0 if
// that is not a terminal.
func (p *Program) Width(out string) int {
	if f, ok := File(p.Stdout); ok && out == "" {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return w
		}
	}
	return 0
}

// Colors reports whether out is a terminal with colours, and NO_COLOR does not disable them.
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
