package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"
)

// A node is a file, a folder or a symbolic link of the image.
type node struct {
	// mode has the type and the permissions.
	mode fs.FileMode

	// data is that of a file, link what a symbolic link says.
	data []byte
	link string

	// owner is the user and the group, 0 for root.
	owner int
}

// A tree is what stands in a layer, by path without the first slash.
type tree map[string]node

// file adds a file that everybody may read.
func (t tree) file(name string, data []byte) {
	t[name] = node{mode: 0o644, data: data}
}

// withFolders returns the tree with all folders above what is in it, so that their
// owners and modes are said and not left to who unpacks.
func (t tree) withFolders() tree {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = node{mode: fs.ModeDir | 0o755}
			}
		}
	}
	return all
}

// tar returns the tree as an archive whose bytes depend on the tree and on the time
// alone.
func (t tree) tar(at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	all := t.withFolders()
	for _, name := range slices.SortedFunc(maps.Keys(all), cmp.Compare[string]) {
		n := all[name]
		h := &tar.Header{Name: name, Mode: int64(n.mode.Perm()), Uid: n.owner, Gid: n.owner, ModTime: at, Format: tar.FormatPAX}
		switch {
		case n.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
			if n.mode&fs.ModeSticky != 0 {
				h.Mode |= 0o1000
			}
		case n.mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, n.link, 0o777
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(n.data))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(n.data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// write writes the tree below dir, which it makes. Nothing is written outside of it,
// whatever links say. Owners are set only by root.
func (t tree) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	all := t.withFolders()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := writeNode(root, name, all[name]); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

func writeNode(root *os.Root, name string, n node) error {
	switch {
	case n.mode.IsDir():
		if err := root.MkdirAll(name, 0o755); err != nil {
			return err
		}
	case n.mode&fs.ModeSymlink != 0:
		return root.Symlink(n.link, name)
	default:
		if err := root.WriteFile(name, n.data, 0o600); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		if err := root.Chown(name, n.owner, n.owner); err != nil {
			return err
		}
	}
	return root.Chmod(name, n.mode&(fs.ModePerm|fs.ModeSticky))
}
