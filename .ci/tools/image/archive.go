package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// An image that was archived.
type archived struct {
	// index is that of all architectures.
	index v1.ImageIndex

	// bills are the artefacts that refer to the images.
	bills []v1.Image
}

// open reads an archive and checks every digest in it. Its layout is kept in dir.
func open(file, dir string) (*archived, error) {
	if err := extractLayout(file, dir); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	l, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	top, err := l.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	a := &archived{}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex() && a.index == nil:
			a.index, err = top.ImageIndex(d.Digest)
		case d.MediaType.IsImage():
			var bill v1.Image
			bill, err = top.Image(d.Digest)
			a.bills = append(a.bills, bill)
		default:
			err = fmt.Errorf("it has %s of the type %s", d.Digest, d.MediaType)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if a.index == nil {
		return nil, fmt.Errorf("%s: it has no index of images", file)
	}
	if err := validate.Index(a.index); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// extractLayout writes the files of an archive below dir.
func extractLayout(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return wrong(err)
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			return fmt.Errorf("%s is no file", h.Name)
		}
		if err := root.MkdirAll(path.Dir(h.Name), 0o755); err != nil {
			return err
		}
		out, err := root.Create(h.Name)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, r); err != nil {
			return errors.Join(err, out.Close())
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
}

// edition returns the image of an architecture.
func (a *archived) edition(arch string) (v1.Image, error) {
	manifest, err := a.index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.Architecture == arch {
			return a.index.Image(d.Digest)
		}
	}
	return nil, wrong(fmt.Errorf("--arch %s: the archive has no image for it", arch))
}

// files returns what a container of an image would see: its layers, one above the other.
func files(img v1.Image) (tree, error) {
	in := mutate.Extract(img)
	defer in.Close()
	t := tree{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		n := node{mode: fs.FileMode(h.Mode).Perm(), owner: h.Uid}
		switch h.Typeflag {
		case tar.TypeDir:
			n.mode |= fs.ModeDir
			if h.Mode&0o1000 != 0 {
				n.mode |= fs.ModeSticky
			}
		case tar.TypeSymlink:
			n.mode, n.link = fs.ModeSymlink, h.Linkname
		case tar.TypeReg:
			if n.data, err = io.ReadAll(r); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%s is neither file nor folder nor symbolic link", h.Name)
		}
		t[strings.TrimSuffix(path.Clean(h.Name), "/")] = n
	}
}

// push sends the images and their bills to a registry, under a tag, and returns the
// references by digest: that of all architectures, and after its platform that of
// each. The tag is set last, when all that it stands for is there.
func push(ctx context.Context, a *archived, to string) ([]string, error) {
	tag, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return nil, wrong(fmt.Errorf("pushing to %q: %w", to, err))
	}
	digest, err := a.index.Digest()
	if err != nil {
		return nil, err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	by := tag.Context().Digest(digest.String())
	if err := remote.WriteIndex(by, a.index, options...); err != nil {
		return nil, fmt.Errorf("pushing %s: %w", by, err)
	}
	for _, bill := range a.bills {
		d, err := bill.Digest()
		if err != nil {
			return nil, err
		}
		if err := remote.Write(tag.Context().Digest(d.String()), bill, options...); err != nil {
			return nil, fmt.Errorf("pushing the bill of materials %s: %w", d, err)
		}
	}
	if err := remote.Tag(tag, a.index, options...); err != nil {
		return nil, fmt.Errorf("setting the tag %s: %w", tag, err)
	}
	manifest, err := a.index.IndexManifest()
	if err != nil {
		return nil, err
	}
	all := []string{by.String()}
	for _, d := range manifest.Manifests {
		all = append(all, d.Platform.String()+" "+tag.Context().Digest(d.Digest.String()).String())
	}
	return all, nil
}

// unpack writes the files of an architecture's image below dir, which must be new or
// empty.
func unpack(file, arch, dir, work string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return wrong(fmt.Errorf("%s is not empty", dir))
	}
	l, err := os.MkdirTemp(work, "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(l)
	a, err := open(file, l)
	if err != nil {
		return err
	}
	img, err := a.edition(arch)
	if err != nil {
		return err
	}
	t, err := files(img)
	if err != nil {
		return err
	}
	return t.write(filepath.Clean(dir))
}
