package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing/fstest"
)

// A platform is what a machine's architecture is called by others than Go.
type platform struct {
	// triplet is how Debian names the folder of libraries, compiler the C compiler
	// that builds for it on another machine, packages what Debian has that in.
	triplet, compiler, packages string

	// npm is the folder in the npm package of ONNX Runtime.
	npm string
}

// platforms are those that images are made for.
var platforms = map[string]platform{
	"amd64": {"x86_64-linux-gnu", "x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu libc6-dev-amd64-cross", "x64"},
	"arm64": {"aarch64-linux-gnu", "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross", "arm64"},
}

// architectures returns the names of the platforms, in order.
func architectures() []string { return sortedKeys(platforms) }

// onnxLibrary is the name under which the program looks for ONNX Runtime.
const onnxLibrary = "libonnxruntime.so.1"

// fetchRuntime returns the pinned library of ONNX Runtime as a file: from the cache, from
// the folder of the program if `make onnxruntime` has put the same library there, or from
// npm.
func (b *builder) fetchRuntime(arch string, p pin) (string, error) {
	file := b.cached(p.sum)
	if sumOf(file) == p.sum {
		return file, nil
	}
	if beside := filepath.Join(b.root, "bin", onnxLibrary); sumOf(beside) == p.sum {
		return beside, nil
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "", wrong(fmt.Errorf("fetching %s: %w", p, err))
	}
	work, err := os.MkdirTemp(b.work, "npm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := b.run(work, nil, "npm", "pack", "--silent", p.name+"@"+p.version); err != nil {
		return "", err
	}
	member := "package/bin/napi-v6/linux/" + platforms[arch].npm + "/" + onnxLibrary
	if err := b.run(work, nil, "tar", "-xzf", p.name+"-"+p.version+".tgz", member); err != nil {
		return "", err
	}
	got := filepath.Join(work, member)
	if sum := sumOf(got); sum != p.sum {
		return "", fmt.Errorf("%s of %s has the SHA-256 %s, pinned is %s", member, p, sum, p.sum)
	}
	return file, os.Rename(got, file)
}

// runtimeTree returns the library where the system keeps its libraries, and its
// licences. The notices of what it is itself made of are no part of the npm package;
// without them the image says where they are.
func (b *builder) runtimeTree(arch string, p pin, notices string) (tree, error) {
	found, err := b.fetchRuntime(arch, p)
	if err != nil {
		return nil, err
	}
	library, err := os.ReadFile(found)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(b.root, "build", "licenses", "onnxruntime", "LICENSE"))
	if err != nil {
		return nil, err
	}
	t := tree{}
	t["usr/lib/"+platforms[arch].triplet+"/"+onnxLibrary] = &fstest.MapFile{Mode: 0o755, Data: library}
	const doc = "usr/share/doc/onnxruntime/"
	t[doc+"LICENSE"] = file(licence)
	if notices == "" {
		t[doc+"README"] = file(fmt.Appendf(nil,
			"ONNX Runtime %s, unmodified, as published by Microsoft in the npm package %s.\nNotices of third parties: https://github.com/microsoft/onnxruntime/blob/v%s/ThirdPartyNotices.txt\n", p.version, p.name, p.version))
		return t, nil
	}
	text, err := os.ReadFile(notices)
	if err != nil {
		return nil, wrong(fmt.Errorf("--onnxruntime-notices: %w", err))
	}
	if len(text) == 0 {
		return nil, wrong(errors.New("--onnxruntime-notices " + notices + ": the file is empty"))
	}
	t[doc+"ThirdPartyNotices.txt"] = file(text)
	return t, nil
}
