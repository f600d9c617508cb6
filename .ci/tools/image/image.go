package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
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

// A tree is the content of a layer, by path without the first slash. The owner of a file
// is root unless Sys is a tar header with another.
type tree = fstest.MapFS

// file returns a file that every user may read.
func file(data []byte) *fstest.MapFile { return &fstest.MapFile{Mode: 0o644, Data: data} }

// layerOf returns a tree as a layer whose bytes depend on the tree and the time alone.
func layerOf(t tree, at time.Time) (v1.Layer, error) {
	all := tree{}
	for name, f := range t {
		dated := *f
		dated.ModTime = at
		all[name] = &dated
		for dir := path.Dir(name); dir != "." && t[dir] == nil; dir = path.Dir(dir) {
			all[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: at}
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.AddFS(all), w.Close()); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// A part is a layer and what made it.
type part struct {
	tree tree
	by   string
}

// assemble makes the image of an architecture from its layers. Layers that change seldom
// come first, so that an upgrade fetches little.
func (b *builder) assemble(arch string, base []pin, parts []part) (v1.Image, error) {
	var adds []mutate.Addendum
	for _, p := range parts {
		layer, err := layerOf(p.tree, b.at)
		if err != nil {
			return nil, err
		}
		adds = append(adds, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: b.at}, CreatedBy: p.by}})
	}
	img, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		types.OCIConfigJSON), adds...)
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

// labels describe the image, what it is made from and where its documentation is.
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
// layouts keep it next to the image.
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
	a = mutate.Annotations(a,
		map[string]string{"org.opencontainers.image.created": at.UTC().Format(time.RFC3339)}).(v1.Image)
	// The subject comes last: any other change after it would remove it.
	return mutate.Subject(a, v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size,
		Digest: subject.Digest}).(v1.Image), nil
}

// An edition is the image of one architecture with its bill of materials.
type edition struct {
	arch string
	img  v1.Image
	bill []byte
}

// indexes returns the index of all architectures, and that of a layout, which has the first
// under the version and next to it the bills.
func (b *builder) indexes(editions []edition) (images, top v1.ImageIndex, err error) {
	images = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var bills []mutate.IndexAddendum
	for _, e := range editions {
		platform := &v1.Platform{OS: "linux", Architecture: e.arch}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{Add: e.img,
			Descriptor: v1.Descriptor{Platform: platform}})
		a, err := attach(e.bill, e.img, b.at)
		if err != nil {
			return nil, nil, err
		}
		bills = append(bills, mutate.IndexAddendum{Add: a, Descriptor: v1.Descriptor{ArtifactType: string(billType)}})
	}
	named := v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": b.version}}
	top = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	return images, mutate.AppendManifests(top, append([]mutate.IndexAddendum{{Add: images, Descriptor: named}},
		bills...)...), nil
}
