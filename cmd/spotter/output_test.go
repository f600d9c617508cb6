package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func writeWord(w io.Writer) error {
	_, err := io.WriteString(w, "word")
	return err
}

// TestReplaceFileKeepsPipes: as root, replacing /dev/null by a file harms
// every other program on the machine. A pipe stands in for it here.
func TestReplaceFileKeepsPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkTarget(pipe); err != nil {
		t.Fatal(err)
	}
	// Open for both, so that neither side waits for the other.
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := replaceFile(pipe, writeWord); err != nil {
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
	real := file(t, "report", "old") // mode 0600
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(link, writeWord); err != nil {
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

func TestTargetsThatCannotBeWritten(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	folder := t.TempDir()
	inFile := filepath.Join(file(t, "letter", "dear"), "report")
	missing := filepath.Join(folder, "none", "report")
	long := filepath.Join(folder, strings.Repeat("a", 300))
	for want, path := range map[string]string{
		folder + " is a folder": folder,
		inFile:                  inFile,
		missing:                 missing,
		long:                    long,
	} {
		wrongCallIs(t, want, "eval", scenario, "--seeds", "1", "--out", path)
		wrongCallIs(t, want, "sim", scenario, "--log", path)
	}
	empty(t, folder)
	// A name of the greatest length that a file may have is a good name.
	if err := replaceFile(filepath.Join(folder, strings.Repeat("a", 255)), writeWord); err != nil {
		t.Error(err)
	}
}
