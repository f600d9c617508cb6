package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// lockFile is where the pins stand, below the folder of the sources.
const lockFile = "build/image.lock"

// pins returns what is pinned for an architecture: packages of Debian, and ONNX
// Runtime.
func (b *builder) pins(arch string) ([]pin, pin, error) {
	all, err := readLock(filepath.Join(b.root, lockFile))
	if err != nil {
		return nil, pin{}, wrong(err)
	}
	packages, err := of(all, "debian", arch)
	if err != nil {
		return nil, pin{}, wrong(fmt.Errorf("%s: %w", lockFile, err))
	}
	runtimes, err := of(all, "npm", arch)
	if err == nil && len(runtimes) != 1 {
		err = fmt.Errorf("%d npm packages are pinned for %s, want one", len(runtimes), arch)
	}
	if err != nil {
		return nil, pin{}, wrong(fmt.Errorf("%s: %w", lockFile, err))
	}
	return packages, runtimes[0], nil
}

// build makes the image for all architectures and writes it, with a bill of materials
// for each beside it.
func (b *builder) build(archs []string, o options, out io.Writer) error {
	file := o.out
	if file == "" {
		file = filepath.Join(b.root, "dist", "spotter-"+b.version+".oci.tar")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	var editions []edition
	for _, arch := range archs {
		e, err := b.edition(arch, o)
		if err != nil {
			return err
		}
		editions = append(editions, e)
	}
	digest, err := b.archive(editions, file)
	if err != nil {
		return err
	}
	for _, e := range editions {
		name := filepath.Join(filepath.Dir(file), "spotter-"+b.version+"-linux-"+e.arch+".cdx.json")
		if err := os.WriteFile(name, e.bill, 0o644); err != nil {
			return err
		}
		size, err := compressed(e)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "linux/%s: %.1f MB compressed, bill of materials in %s\n", e.arch, float64(size)/1e6, name)
	}
	fmt.Fprintf(out, "%s: %s\n", file, digest)
	return nil
}

// compressed returns how many bytes of layers a machine fetches.
func compressed(e edition) (int64, error) {
	m, err := e.img.Manifest()
	if err != nil {
		return 0, err
	}
	var n int64
	for _, l := range m.Layers {
		n += l.Size
	}
	return n, nil
}

// edition makes the image of an architecture.
func (b *builder) edition(arch string, o options) (edition, error) {
	packages, runtime, err := b.pins(arch)
	if err != nil {
		return edition{}, err
	}
	packages, files, err := b.fetchDebian(arch, packages, o.locked)
	if err != nil {
		return edition{}, err
	}
	base, err := baseTree(packages, files)
	if err != nil {
		return edition{}, err
	}
	above, compiled, err := b.above(arch, runtime, o)
	if err != nil {
		return edition{}, err
	}
	img, err := b.assemble(arch, packages, append([]part{{base, "packages of Debian 12"}}, above...))
	if err != nil {
		return edition{}, err
	}
	bill, err := b.bill(materials{arch, compiled, above[len(above)-1].tree, base, packages, runtime, o.locked})
	return edition{arch, img, bill}, err
}

// above makes what stands above Debian's packages, and returns the program's file too.
func (b *builder) above(arch string, runtime pin, o options) ([]part, string, error) {
	if err := b.checkNotices(o, runtime); err != nil {
		return nil, "", err
	}
	onnx, err := b.runtimeTree(arch, runtime, o.notices)
	if err != nil {
		return nil, "", err
	}
	compiled, err := b.compile(arch)
	if err != nil {
		return nil, "", err
	}
	own, err := b.programTree(arch, compiled)
	if err != nil {
		return nil, "", err
	}
	return []part{{onnx, "ONNX Runtime " + runtime.version}, {own, "spotter " + b.version}}, compiled, nil
}

// stage writes what stands above Debian's packages into a folder.
func (b *builder) stage(arch string, o options) error {
	if o.out == "" {
		return wrong(errors.New("--out: name the folder"))
	}
	_, runtime, err := b.pins(arch)
	if err != nil {
		return err
	}
	parts, _, err := b.above(arch, runtime, o)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.tree.write(o.out); err != nil {
			return err
		}
	}
	return nil
}

// push sends an archive to a registry.
func (b *builder) push(ctx context.Context, file, to string, out io.Writer) error {
	dir, err := os.MkdirTemp(b.work, "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := open(file, dir)
	if err != nil {
		return err
	}
	all, err := push(ctx, a, to)
	if err != nil {
		return err
	}
	for _, ref := range all {
		fmt.Fprintln(out, ref)
	}
	return nil
}

// checkNotices holds the notices of ONNX Runtime against their pin. Where there is none
// they are taken with a warning that has their sum, to be pinned; with locked, only as
// long as those of no other version are.
func (b *builder) checkNotices(o options, runtime pin) error {
	if o.notices == "" {
		return nil
	}
	all, err := readLock(filepath.Join(b.root, lockFile))
	if err != nil {
		return wrong(err)
	}
	got := sumOf(o.notices)
	if got == "" {
		return wrong(fmt.Errorf("--onnxruntime-notices %s cannot be read", o.notices))
	}
	for _, p := range all {
		switch {
		case p.source != noticesSource || p.version != runtime.version:
		case p.sum != got:
			return wrong(fmt.Errorf("--onnxruntime-notices %s has the SHA-256 %s, pinned for %s is %s", o.notices, got, p, p.sum))
		default:
			return nil
		}
	}
	unpinned := fmt.Errorf("--onnxruntime-notices %s (SHA-256 %s): the notices of ONNX Runtime %s are not pinned in %s: read them and run make image-lock IMAGE_FLAGS='--onnxruntime-notices %s'", o.notices, got, runtime.version, lockFile, o.notices)
	if o.locked && slices.ContainsFunc(all, func(p pin) bool { return p.source == noticesSource }) {
		return wrong(unpinned)
	}
	fmt.Fprintf(b.said, "warning: %v\n", unpinned)
	return nil
}

// lock pins the newest packages for all architectures, and the notices of ONNX Runtime
// where they are given. Other pins stay as they are.
func (b *builder) lock(o options) error {
	name := filepath.Join(b.root, lockFile)
	old, err := readLock(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return wrong(err)
	}
	if err := bookworm(); err != nil {
		return err
	}
	var all []pin
	for _, p := range old {
		if p.source == "debian" || p.source == noticesSource && o.notices != "" {
			continue
		}
		all = append(all, p)
	}
	if o.notices != "" {
		_, runtime, err := b.pins(architectures()[0])
		if err != nil {
			return err
		}
		p := pin{noticesSource, "onnxruntime", runtime.version, "any", sumOf(o.notices)}
		if p.sum == "" {
			return wrong(fmt.Errorf("--onnxruntime-notices %s cannot be read", o.notices))
		}
		all = append(all, p)
	}
	for _, arch := range architectures() {
		d := &debian{dir: filepath.Join(b.work, "apt-"+arch), arch: arch}
		for _, what := range debianPackages {
			file, err := d.download(what)
			if err != nil {
				return err
			}
			p, err := pinOf(file, arch)
			if err != nil {
				return err
			}
			if err := os.Rename(file, b.cached(p.sum)); err != nil {
				return err
			}
			all = append(all, p)
		}
	}
	return writeLock(name, all)
}
