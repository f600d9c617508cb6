package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// debianPackages are those below everything: the C and C++ libraries that the
// program and ONNX Runtime are linked with, certificates, time zones, the names of
// ports, and what says which system this is. distroless cc has the same, and besides
// what nothing here loads.
var debianPackages = []string{"base-files", "ca-certificates", "gcc-12-base", "libc6", "libgcc-s1", "libstdc++6", "netbase", "tzdata"}

// debianSources is where a Debian 12 says what packages it knows.
const debianSources = "/etc/apt/sources.list.d/debian.sources"

// A debian fetches packages with the machine's own client, which checks what it gets
// against Debian's signatures, into a folder of its own. The machine's list of
// installed packages and its architectures do not matter.
type debian struct {
	dir, arch string
	updated   bool
}

// apt runs the client and returns what it prints.
func (d *debian) apt(args ...string) (string, error) {
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(d.dir, dir), 0o755); err != nil {
			return "", err
		}
	}
	status := filepath.Join(d.dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return "", err
	}
	all := []string{"-q"}
	for _, o := range []string{
		"APT::Architecture=" + d.arch, "APT::Architectures::=" + d.arch, "APT::Sandbox::User=",
		"Dir::State=" + filepath.Join(d.dir, "state"), "Dir::State::status=" + status, "Dir::Cache=" + filepath.Join(d.dir, "cache"),
		"Dir::Etc::sourcelist=" + debianSources, "Dir::Etc::sourceparts=/dev/null", "Acquire::Languages=none", "Acquire::Retries=3",
	} {
		all = append(all, "-o", o)
	}
	cmd := exec.Command("apt-get", append(all, args...)...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// download fetches a package, name or name=version, and returns its file.
func (d *debian) download(what string) (string, error) {
	if !d.updated {
		if _, err := d.apt("update"); err != nil {
			return "", err
		}
		d.updated = true
	}
	name, _, _ := strings.Cut(what, "=")
	pattern := filepath.Join(d.dir, name+"_*.deb")
	old, _ := filepath.Glob(pattern)
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return "", err
		}
	}
	if _, err := d.apt("download", what); err != nil {
		return "", err
	}
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("downloading %s left %d files", what, len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// bookworm says why packages of Debian 12 cannot be fetched on this machine.
func bookworm() error {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return err
	}
	if !bytes.Contains(release, []byte("ID=debian\n")) || !bytes.Contains(release, []byte(`VERSION_ID="12"`)) {
		return wrong(errors.New("the image is made of packages of Debian 12, and this is another system: build it there, or with build/Dockerfile"))
	}
	if _, err := os.Stat(debianSources); err != nil {
		return fmt.Errorf("where Debian's packages come from is not said: %w", err)
	}
	return nil
}

// fetchDebian returns the pinned packages of an architecture, as files. What is in
// the cache is not fetched. Where a version is no longer to be had, since Debian keeps
// only the newest, that is taken and said, but with locked.
func (b *builder) fetchDebian(arch string, pins []pin, locked bool) ([]pin, []string, error) {
	d := &debian{dir: filepath.Join(b.work, "apt-"+arch), arch: arch}
	pins = slices.Clone(pins)
	files := make([]string, len(pins))
	for i, p := range pins {
		files[i] = b.cached(p.sum)
		if sumOf(files[i]) == p.sum {
			continue
		}
		if err := bookworm(); err != nil {
			return nil, nil, err
		}
		file, err := d.download(p.name + "=" + p.version)
		if err == nil && sumOf(file) != p.sum {
			return nil, nil, fmt.Errorf("%s for %s has the SHA-256 %s, pinned is %s", p, arch, sumOf(file), p.sum)
		}
		if err != nil && locked {
			return nil, nil, fmt.Errorf("%w\n%s for %s is not to be had: run make image-lock", err, p, arch)
		}
		if err != nil {
			if file, err = d.download(p.name); err != nil {
				return nil, nil, err
			}
			if pins[i], err = pinOf(file, arch); err != nil {
				return nil, nil, err
			}
			fmt.Fprintf(b.said, "warning: %s for %s is not to be had: %s is taken; run make image-lock\n", p, arch, pins[i].version)
			files[i] = b.cached(pins[i].sum)
		}
		if err := os.Rename(file, files[i]); err != nil {
			return nil, nil, err
		}
	}
	return pins, files, nil
}

// pinOf describes a package.
func pinOf(file, arch string) (pin, error) {
	out, err := exec.Command("dpkg-deb", "-f", file, "Package", "Version").Output()
	if err != nil {
		return pin{}, fmt.Errorf("reading %s: %w", file, err)
	}
	p := pin{source: "debian", arch: arch, sum: sumOf(file)}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Package":
			p.name = value
		case "Version":
			p.version = value
		}
	}
	if p.name == "" || p.version == "" {
		return pin{}, fmt.Errorf("%s has no name or version:\n%s", file, out)
	}
	return p, nil
}

// sumOf returns the SHA-256 of a file, and nothing where it cannot be read.
func sumOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// baseTree returns what of the packages stands in the image, beside what their
// installation would make: users, the bundle of certificates, empty folders, and
// what scanners read to know which packages these are.
func baseTree(pins []pin, files []string) (tree, error) {
	t := tree{}
	certificates := map[string][]byte{}
	for i, file := range files {
		if err := unpackPackage(t, certificates, file); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", pins[i], err)
		}
		control, err := exec.Command("dpkg-deb", "-f", file).Output()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", pins[i], err)
		}
		t.file("var/lib/dpkg/status.d/"+pins[i].name, control)
	}
	var bundle []byte
	for _, name := range sortedKeys(certificates) {
		bundle = append(bundle, bytes.TrimSpace(certificates[name])...)
		bundle = append(bundle, '\n')
	}
	t.file("etc/ssl/certs/ca-certificates.crt", bundle)
	t.file("etc/passwd", []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"))
	t.file("etc/group", []byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"))
	t.file("etc/nsswitch.conf", []byte("hosts: files dns\n"))
	for _, dir := range []string{"dev", "proc", "run", "sys", "var/tmp"} {
		t[dir] = node{mode: fs.ModeDir | 0o755}
	}
	t["root"] = node{mode: fs.ModeDir | 0o700}
	t["tmp"] = node{mode: fs.ModeDir | fs.ModeSticky | 0o777}
	t["home/nonroot"] = node{mode: fs.ModeDir | 0o700, owner: nonroot}
	return t, nil
}

// unpackPackage adds the files of a package that stand in the image.
func unpackPackage(t tree, certificates map[string][]byte, file string) error {
	out, err := exec.Command("dpkg-deb", "--fsys-tarfile", file).Output()
	if err != nil {
		return err
	}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "./"))
		authority := strings.HasPrefix(name, "usr/share/ca-certificates/") && strings.HasSuffix(name, ".crt")
		if !authority && !stands(name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			if authority {
				certificates[name] = data
			} else {
				t[name] = node{mode: fs.FileMode(h.Mode) & 0o755, data: data}
			}
		case tar.TypeSymlink:
			t[name] = node{mode: fs.ModeSymlink, link: h.Linkname}
		case tar.TypeLink:
			first, ok := t[path.Clean(strings.TrimPrefix(h.Linkname, "./"))]
			if !ok {
				return fmt.Errorf("%s is a link to %s, which is not there", name, h.Linkname)
			}
			t[name] = first
		}
	}
}

// stands says whether a file of a Debian package stands in the image: libraries,
// time zones, names and licences do, programs and pages for reading do not.
func stands(name string) bool {
	switch name {
	case "etc/os-release", "usr/lib/os-release", "etc/debian_version", "etc/protocols", "etc/services":
		return true
	}
	if rest, ok := strings.CutPrefix(name, "usr/share/doc/"); ok {
		return path.Base(rest) == "copyright" || !strings.Contains(rest, "/")
	}
	if rest, ok := strings.CutPrefix(name, "usr/share/zoneinfo/"); ok {
		return !strings.HasPrefix(rest, "posix/") && !strings.HasPrefix(rest, "right/")
	}
	if strings.HasPrefix(name, "usr/share/common-licenses/") {
		return true
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(name, "usr/"), "/")
	return (top == "lib" || top == "lib64") && strings.Contains(path.Base(name), ".so") && !strings.Contains(name, "/gconv/") && !strings.HasSuffix(name, ".py")
}
