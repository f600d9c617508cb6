package record

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsName is the file with the digests of a segment's tables, in the format of sha256sum. Parquet
// protects pages by checksums, but neither their headers nor the footer, and a decoder that trusts
// a damaged header may crash the program.
const sumsName = "SHA256SUMS"

// writeSums writes the digests of all tables in dir.
func writeSums(dir string) error {
	tables, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil {
		return err
	}
	slices.Sort(tables)
	var b strings.Builder
	for _, path := range tables {
		sum, err := digest(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, filepath.Base(path))
	}
	f, err := os.Create(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, b.String())
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// checkSums returns an error for the first table in dir whose digest does not match. A segment
// without digests, written by an earlier version, is not checked.
func checkSums(dir string) (err error) {
	f, err := os.Open(filepath.Join(dir, sumsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		want, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || filepath.Base(name) != name {
			return fmt.Errorf("%s: %q is not a digest and a name: %w", f.Name(), lines.Text(), ErrCorrupt)
		}
		path := filepath.Join(dir, name)
		got, err := digest(path)
		if err != nil {
			return missing(err)
		}
		if got != want {
			return fmt.Errorf("%s: its content does not match its checksum: %w", path, ErrCorrupt)
		}
	}
	return lines.Err()
}

// digest returns the SHA-256 of a file in hexadecimal.
func digest(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
