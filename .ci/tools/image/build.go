package main

import (
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
		return nil, pin{}, wrong(err)
	}
	runtimes, err := of(all, "npm", arch)
	if err == nil && len(runtimes) != 1 {
		err = fmt.Errorf("%s: %d npm packages are pinned for %s, want one", lockFile, len(runtimes), arch)
	}
	if err != nil {
		return nil, pin{}, wrong(err)
	}
	return packages, runtimes[0], nil
}

// build makes the image for all architectures and writes it together with a bill of
// materials for each architecture.
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
		m, err := e.img.Manifest()
		if err != nil {
			return err
		}
		var size int64 // of the compressed layers
		for _, l := range m.Layers {
			size += l.Size
		}
		fmt.Fprintf(out, "linux/%s: %.1f MB compressed, bill of materials in %s\n", e.arch, float64(size)/1e6, name)
	}
	fmt.Fprintf(out, "%s: %s\n", file, digest)
	return nil
}

// edition makes the image of an architecture.
func (b *builder) edition(arch string, o options) (edition, error) {
	packages, runtime, err := b.pins(arch)
	if err != nil {
		return edition{}, err
	}
	if packages, err = b.fetchDebian(arch, packages, o.locked); err != nil {
		return edition{}, err
	}
	base, err := b.baseTree(packages)
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

// above makes the layers above Debian's packages, and returns the program's file too.
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
	own, err := b.programTree(compiled)
	if err != nil {
		return nil, "", err
	}
	return []part{{onnx, "ONNX Runtime " + runtime.version}, {own, "spotter " + b.version}}, compiled, nil
}

// stage writes the layers above Debian's packages into a folder, as the user and with the
// umask of the process.
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
		if err := os.CopyFS(o.out, p.tree); err != nil {
			return err
		}
	}
	return nil
}

// readNotices returns the pin that the notices of ONNX Runtime would have.
func (o *options) readNotices(runtime pin) (pin, error) {
	p := pin{noticesSource, "onnxruntime", runtime.version, "any", sumOf(o.notices)}
	if p.sum == "" {
		return p, wrong(fmt.Errorf("--onnxruntime-notices %s cannot be read", o.notices))
	}
	return p, nil
}

// checkNotices compares the notices of ONNX Runtime with their pin. Notices of a version
// without a pin are accepted with a warning that gives their SHA-256, to be pinned; with
// locked they are accepted only if no other version is pinned either.
func (b *builder) checkNotices(o options, runtime pin) error {
	if o.notices == "" {
		return nil
	}
	all, err := readLock(filepath.Join(b.root, lockFile))
	if err != nil {
		return wrong(err)
	}
	got, err := o.readNotices(runtime)
	if err != nil {
		return err
	}
	pinned := slices.DeleteFunc(all, func(p pin) bool { return p.source != noticesSource })
	for _, p := range pinned {
		if p.version == got.version && p.sum != got.sum {
			return wrong(fmt.Errorf("--onnxruntime-notices %s has the SHA-256 %s, pinned for %s is %s", o.notices, got.sum,
				p, p.sum))
		}
		if p.version == got.version {
			return nil
		}
	}
	unpinned := fmt.Errorf("--onnxruntime-notices %s (SHA-256 %s): the notices of ONNX Runtime %s are not pinned in %s: "+
		"read them and run make image-lock IMAGE_FLAGS='--onnxruntime-notices %[1]s'", o.notices, got.sum, got.version, lockFile)
	if o.locked && len(pinned) > 0 {
		return wrong(unpinned)
	}
	fmt.Fprintf(b.said, "warning: %v\n", unpinned)
	return nil
}

// lock pins the newest packages for all architectures, and the notices of ONNX Runtime
// where they are given. Other pins stay as they are.
func (b *builder) lock(o options) error {
	name := filepath.Join(b.root, lockFile)
	all, err := readLock(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return wrong(err)
	}
	all = slices.DeleteFunc(all, func(p pin) bool {
		return p.source == "debian" ||
			p.source == noticesSource && o.notices != ""
	})
	if o.notices != "" {
		_, runtime, err := b.pins(architectures()[0])
		if err != nil {
			return err
		}
		p, err := o.readNotices(runtime)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	for _, arch := range architectures() {
		d, err := b.debianOf(arch)
		if err != nil {
			return err
		}
		for _, what := range debianPackages {
			p, err := b.download(d, arch, what, "")
			if err != nil {
				return err
			}
			all = append(all, p)
		}
	}
	return writeLock(name, all)
}
