package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// pack writes a folder as an archive whose bytes depend on its files and the time alone.
// The archive is renamed to its name when it is complete.
func (b *builder) pack(dir, archive string) error {
	part := archive + ".part"
	defer os.Remove(part)
	if err := b.run(dir, nil, "tar", "--create", "--file", part, "--format=ustar", "--sort=name", "--numeric-owner",
		"--owner=0", "--group=0",
		"--mode=u=rwX,go=rX", fmt.Sprintf("--mtime=@%d", b.at.Unix()), "blobs", "index.json", "oci-layout"); err != nil {
		return err
	}
	return os.Rename(part, archive)
}

// open unpacks an archive into the empty folder dir, verifies every digest in it, and
// returns the index of all architectures and the bills of materials.
func (b *builder) open(archive, dir string) (v1.ImageIndex, []v1.Image, error) {
	if _, err := os.Stat(archive); err != nil {
		return nil, nil, wrong(err)
	}
	if err := b.run("", nil, "tar", "--extract", "--file", archive, "--directory", dir); err != nil {
		return nil, nil, err
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", archive, err)
	}
	indexes, err := partial.FindIndexes(top, match.MediaTypes(string(types.OCIImageIndex)))
	if err == nil && len(indexes) != 1 {
		err = fmt.Errorf("%d indexes of images, want 1", len(indexes))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", archive, err)
	}
	bills, err := partial.FindImages(top, match.MediaTypes(string(types.OCIManifestSchema1)))
	if err == nil {
		err = validate.Index(indexes[0])
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", archive, err)
	}
	return indexes[0], bills, nil
}

// push sends an archive to a registry under a tag and returns the references by digest:
// that of all architectures, then the platform and the reference of each. The tag is set
// last, after everything that it refers to.
func (b *builder) push(ctx context.Context, archive, to string) ([]string, error) {
	dir, err := os.MkdirTemp(b.work, "layout-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	index, bills, err := b.open(archive, dir)
	if err != nil {
		return nil, err
	}
	tag, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return nil, wrong(fmt.Errorf("pushing to %q: %w", to, err))
	}
	digest, err := index.Digest()
	if err != nil {
		return nil, err
	}
	all := []string{tag.Context().Digest(digest.String()).String()}
	content := map[name.Reference]remote.Taggable{tag.Context().Digest(digest.String()): index}
	for _, bill := range bills {
		if digest, err = bill.Digest(); err != nil {
			return nil, err
		}
		content[tag.Context().Digest(digest.String())] = bill
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.MultiWrite(content, options...); err != nil {
		return nil, fmt.Errorf("pushing to %s: %w", tag.Context(), err)
	}
	if err := remote.Tag(tag, index, options...); err != nil {
		return nil, fmt.Errorf("setting the tag %s: %w", tag, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		all = append(all, d.Platform.String()+" "+tag.Context().Digest(d.Digest.String()).String())
	}
	return all, nil
}

// archive writes editions as an OCI layout in a tar: one index of all architectures,
// which bears the version, and next to it the bills. It returns the index's digest.
func (b *builder) archive(editions []edition, out string) (v1.Hash, error) {
	index, top, err := b.indexes(editions)
	if err != nil {
		return v1.Hash{}, err
	}
	dir, err := os.MkdirTemp(b.work, "layout-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, top); err != nil {
		return v1.Hash{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	out, err = filepath.Abs(out)
	if err != nil {
		return v1.Hash{}, err
	}
	return digest, b.pack(dir, out)
}
