package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the user that the program runs as.
const nonroot = 65532

// billType is the media type of a bill of materials.
const billType = types.MediaType("application/vnd.cyclonedx+json")

// layerOf returns a tree as a layer.
func layerOf(t tree, at time.Time) (v1.Layer, error) {
	data, err := t.tar(at)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// A part is a layer and what made it.
type part struct {
	tree tree
	by   string
}

// assemble makes the image of an architecture from its layers. What changes seldom
// comes first, so that an upgrade fetches little.
func (b *builder) assemble(arch string, base []pin, parts []part) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var adds []mutate.Addendum
	for _, p := range parts {
		layer, err := layerOf(p.tree, b.at)
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: b.at}, CreatedBy: p.by}})
	}
	img, err := mutate.Append(img, adds...)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: b.at}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nonroot, nonroot),
		Entrypoint: []string{"/" + program},
		WorkingDir: "/home/nonroot",
		Env:        []string{"PATH=/usr/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels:     b.labels(base),
	}
	return mutate.ConfigFile(img, config)
}

// labels say what the image is, what it is made from and where it is told of.
func (b *builder) labels(base []pin) map[string]string {
	var packages []string
	for _, p := range base {
		packages = append(packages, p.name+"="+p.version)
	}
	l := map[string]string{
		"org.opencontainers.image.title":         "spotter",
		"org.opencontainers.image.description":   "Decides how much of a Kubernetes cluster runs on Spot capacity, on which markets, and when to move.",
		"org.opencontainers.image.url":           "https://github.com/spotter-dev/spotter",
		"org.opencontainers.image.source":        "https://github.com/spotter-dev/spotter",
		"org.opencontainers.image.documentation": "https://github.com/spotter-dev/spotter/blob/main/docs/install.md",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       b.version,
		"org.opencontainers.image.created":       b.at.UTC().Format(time.RFC3339),
		"dev.spotter.base":                       "packages of Debian 12: " + strings.Join(packages, " "),
	}
	if b.revision != "" {
		l["org.opencontainers.image.revision"] = b.revision
	}
	return l
}

// attach returns the bill as an artefact that refers to an image, as registries and
// layouts keep it beside the image.
func attach(bill []byte, img v1.Image, at time.Time) (v1.Image, error) {
	subject, err := partial.Descriptor(img)
	if err != nil {
		return nil, err
	}
	a, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(bill, billType))
	if err != nil {
		return nil, err
	}
	a = mutate.ConfigMediaType(a, billType)
	a = mutate.Annotations(a, map[string]string{"org.opencontainers.image.created": at.UTC().Format(time.RFC3339)}).(v1.Image)
	// The subject comes last: any other change after it would take it away.
	return mutate.Subject(a, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest}).(v1.Image), nil
}

// An edition is the image of one architecture with its bill of materials.
type edition struct {
	arch string
	img  v1.Image
	bill []byte
}

// archive writes editions as an OCI layout in a tar: one index of all architectures,
// which bears the version, and the bills beside it. It returns the index's digest.
func (b *builder) archive(editions []edition, out string) (v1.Hash, error) {
	all := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	top := v1.ImageIndex(mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	var bills []mutate.IndexAddendum
	for _, e := range editions {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: e.img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: e.arch}}})
		a, err := attach(e.bill, e.img, b.at)
		if err != nil {
			return v1.Hash{}, err
		}
		bills = append(bills, mutate.IndexAddendum{Add: a, Descriptor: v1.Descriptor{ArtifactType: string(billType)}})
	}
	named := v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": b.version}}
	top = mutate.AppendManifests(top, append([]mutate.IndexAddendum{{Add: all, Descriptor: named}}, bills...)...)
	dir, err := os.MkdirTemp(b.work, "layout-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, top); err != nil {
		return v1.Hash{}, err
	}
	digest, err := all.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	return digest, pack(dir, out, b.at)
}

// pack writes a folder as a tar whose bytes depend on what is in it and the time. The
// file is there only when it is whole.
func pack(dir, out string, at time.Time) error {
	f, err := os.CreateTemp(filepath.Dir(out), ".image-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(data)), ModTime: at, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}
