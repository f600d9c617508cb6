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
	"testing/fstest"
)

// debianPackages are the packages that everything else needs: the C and C++ libraries that
// the program and ONNX Runtime are linked with, certificates, time zones, the names of
// ports, and the files that identify the system. The distroless cc image has the same
// packages and some that nothing here loads.
var debianPackages = []string{"base-files", "ca-certificates", "gcc-12-base", "libc6", "libgcc-s1", "libstdc++6",
	"netbase", "tzdata"}

// debianSources is where a Debian 12 says what packages it knows.
const debianSources = "/etc/apt/sources.list.d/debian.sources"

// A debian fetches packages with the machine's own client, which checks what it gets
// against Debian's signatures, into a folder of its own. The machine's list of
// installed packages and its architectures do not matter.
type debian struct {
	dir     string
	updated bool
}

// apt runs the client.
func (d *debian) apt(args ...string) error {
	cmd := exec.Command("apt-get", append([]string{"-q"}, args...)...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "LC_ALL=C", "APT_CONFIG="+filepath.Join(d.dir, "apt.conf"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// debianOf prepares the client for an architecture.
func (b *builder) debianOf(arch string) (*debian, error) {
	d := &debian{dir: filepath.Join(b.work, "apt-"+arch)}
	config := fmt.Sprintf(`APT::Architecture "%s"; APT::Architectures "%[1]s"; APT::Sandbox::User ""; Acquire::Languages "none"; Acquire::Retries "3";
Dir::State "%[2]s/state"; Dir::State::status "%[2]s/status"; Dir::Cache "%[2]s/cache";
Dir::Etc::sourcelist "%[3]s"; Dir::Etc::sourceparts "/dev/null";
`, arch, d.dir, debianSources)
	return d, errors.Join(bookworm(),
		os.MkdirAll(filepath.Join(d.dir, "state/lists/partial"), 0o755), os.MkdirAll(filepath.Join(d.dir,
			"cache/archives/partial"), 0o755),
		os.WriteFile(filepath.Join(d.dir, "status"), nil, 0o644), os.WriteFile(filepath.Join(d.dir, "apt.conf"),
			[]byte(config), 0o644))
}

// download moves a package, name or name=version, into the cache and returns its pin. Its
// SHA-256 must be sum, unless that is empty.
func (b *builder) download(d *debian, arch, what, sum string) (pin, error) {
	if !d.updated {
		if err := d.apt("update"); err != nil {
			return pin{}, err
		}
		d.updated = true
	}
	if err := d.apt("download", what); err != nil {
		return pin{}, err
	}
	found, err := filepath.Glob(filepath.Join(d.dir, "*.deb"))
	if err != nil || len(found) != 1 {
		return pin{}, fmt.Errorf("downloading %s left %d files in %s: %v", what, len(found), d.dir, err)
	}
	defer os.Remove(found[0])
	out, err := exec.Command("dpkg-deb", "--show", "--showformat=${Package} ${Version}", found[0]).Output()
	name, version, ok := strings.Cut(string(out), " ")
	if err != nil || !ok {
		return pin{}, fmt.Errorf("reading %s: %q: %v", found[0], out, err)
	}
	p := pin{"debian", name, version, arch, sumOf(found[0])}
	if sum != "" && p.sum != sum {
		return p, fmt.Errorf("%w: %s for %s has the SHA-256 %s, pinned is %s", errSum, p, arch, p.sum, sum)
	}
	return p, os.Rename(found[0], b.cached(p.sum))
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

// errSum means that a package is another than the one pinned.
var errSum = errors.New("not the package that is pinned")

// fetchDebian returns the pinned packages of an architecture, which are then in the cache.
// Debian keeps only the newest version: where another is pinned, the newest is taken with a
// warning, or refused with locked.
func (b *builder) fetchDebian(arch string, pins []pin, locked bool) ([]pin, error) {
	var d *debian
	pins = slices.Clone(pins)
	for i, p := range pins {
		if sumOf(b.cached(p.sum)) == p.sum {
			continue
		}
		var err error
		if d == nil {
			if d, err = b.debianOf(arch); err != nil {
				return nil, err
			}
		}
		_, err = b.download(d, arch, p.name+"="+p.version, p.sum)
		if err == nil {
			continue
		}
		if locked || errors.Is(err, errSum) {
			return nil, fmt.Errorf("%w\n%s for %s is unavailable: run make image-lock", err, p, arch)
		}
		if pins[i], err = b.download(d, arch, p.name, ""); err != nil {
			return nil, err
		}
		fmt.Fprintf(b.said, "warning: %s for %s is unavailable: %s is taken; run make image-lock\n", p, arch, pins[i].version)
	}
	return pins, nil
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

// baseTree returns the packages' files that the image contains and those that installing
// the packages would create: users, the certificate bundle, empty folders, and the files
// from which scanners learn which packages these are.
func (b *builder) baseTree(pins []pin) (tree, error) {
	t, certificates := tree{}, tree{}
	for _, p := range pins {
		if err := unpackPackage(t, certificates, b.cached(p.sum)); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", p, err)
		}
		control, err := exec.Command("dpkg-deb", "-f", b.cached(p.sum)).Output()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", p, err)
		}
		t["var/lib/dpkg/status.d/"+p.name] = file(control)
	}
	var bundle []byte
	for _, name := range sortedKeys(certificates) {
		bundle = append(bundle, bytes.TrimSpace(certificates[name].Data)...)
		bundle = append(bundle, '\n')
	}
	t["etc/ssl/certs/ca-certificates.crt"] = file(bundle)
	t["etc/passwd"] = file([]byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"))
	t["etc/group"] = file([]byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"))
	t["etc/nsswitch.conf"] = file([]byte("hosts: files dns\n"))
	for _, dir := range []string{"dev", "proc", "run", "sys", "var/tmp"} {
		t[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	t["root"] = &fstest.MapFile{Mode: fs.ModeDir | 0o700}
	t["tmp"] = &fstest.MapFile{Mode: fs.ModeDir | fs.ModeSticky | 0o777}
	t["home/nonroot"] = &fstest.MapFile{Mode: fs.ModeDir | 0o700, Sys: &tar.Header{Uid: nonroot, Gid: nonroot}}
	return t, nil
}

// unpackPackage adds the files of a package that are part of the image, and its certificates.
func unpackPackage(t, certificates tree, deb string) error {
	out, err := exec.Command("dpkg-deb", "--fsys-tarfile", deb).Output()
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
		name, to := path.Clean(h.Name), t
		if strings.HasPrefix(name, "usr/share/ca-certificates/") && strings.HasSuffix(name, ".crt") {
			to = certificates
		} else if !inImage(name) {
			continue
		}
		switch h.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			to[name] = &fstest.MapFile{Mode: fs.FileMode(h.Mode) & 0o755, Data: data}
		case tar.TypeSymlink:
			to[name] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(h.Linkname)}
		case tar.TypeLink:
			if to[name] = to[path.Clean(h.Linkname)]; to[name] == nil {
				return fmt.Errorf("%s is a link to %s, which is missing", name, h.Linkname)
			}
		}
	}
}

// inImage reports whether a file of a Debian package is part of the image: libraries,
// time zones, names and licences are, programs and documentation are not.
func inImage(name string) bool {
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
	return (top == "lib" || top == "lib64") && strings.Contains(path.Base(name), ".so") &&
		!strings.Contains(name, "/gconv/") && !strings.HasSuffix(name, ".py")
}
