package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func writeWord(w io.Writer) error {
	_, err := io.WriteString(w, "word")
	return err
}

// TestReplaceFileKeepsPipes: as root, replacing /dev/null by a file harms every other program on
// the machine. This test uses a pipe instead.
func TestReplaceFileKeepsPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckWritable(pipe); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that neither side waits for the other.
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := ReplaceFile(pipe, writeWord); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(pipe)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Fatalf("the pipe became %v, %v", info.Mode(), err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "word" {
		t.Errorf("%q came through the pipe, %v", got, err)
	}
}

func TestReplaceFileKeepsLinksAndModes(t *testing.T) {
	real := oldReport(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(link, writeWord); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(real); err != nil || string(data) != "word" {
		t.Errorf("the file behind the link holds %q, %v", data, err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file behind the link has mode %v, %v; want 0600 as before", info.Mode(), err)
	}
}

func TestReplaceFileKeepsTheOldOnFailure(t *testing.T) {
	path := oldReport(t)
	err := ReplaceFile(path, func(w io.Writer) error {
		if _, err := w.Write([]byte("half")); err != nil {
			return err
		}
		return context.Canceled
	})
	if data, readErr := os.ReadFile(path); err == nil || readErr != nil || string(data) != "old" {
		t.Errorf("the file holds %q; errors %v, %v", data, err, readErr)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files are in the folder, want 1", len(entries))
	}
}

// oldReport writes a file of mode 0600 and returns its path.
func oldReport(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Where the second of two files cannot be written whole, the first is not there either.
func TestReplaceFilesIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	err := ReplaceFiles([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, func(w io.Writer, i int) error {
		if err := writeWord(w); err != nil || i == 0 {
			return err
		}
		return syscall.ENOSPC
	})
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%v are left in the folder", entries)
	}
}
