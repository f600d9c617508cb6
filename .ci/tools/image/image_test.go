package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// root is the folder of the sources.
const root = "../../.."

// image returns the archive that `make image-test` has made.
func image(t *testing.T) string {
	t.Helper()
	file := os.Getenv("SPOTTER_IMAGE")
	if file == "" {
		t.Skip("SPOTTER_IMAGE names no archive: run make image-test")
	}
	return file
}

// opened returns the archive, and the architectures in it.
func opened(t *testing.T) (v1.ImageIndex, []string) {
	t.Helper()
	b := &builder{said: t.Output()}
	index, bills, err := b.open(image(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var archs []string
	for _, d := range m.Manifests {
		archs = append(archs, d.Platform.Architecture)
	}
	if len(archs) == 0 || len(bills) != len(archs) {
		t.Fatalf("%d architectures and %d bills of materials", len(archs), len(bills))
	}
	return index, archs
}

// editionOf returns the image of an architecture.
func editionOf(t *testing.T, index v1.ImageIndex, arch string) v1.Image {
	t.Helper()
	found, err := partial.FindImages(index, match.Platforms(v1.Platform{OS: "linux", Architecture: arch}))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d images: %v", arch, len(found), err)
	}
	return found[0]
}

// files returns what a container of an image sees: its layers, one above the other.
func files(t *testing.T, img v1.Image) tree {
	t.Helper()
	in := mutate.Extract(img)
	defer in.Close()
	all := tree{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[path.Clean(h.Name)] = &fstest.MapFile{Mode: h.FileInfo().Mode(), Data: data, Sys: h}
	}
}

// TestWhatStandsInTheImage looks at files, owners and the configuration: nothing may be
// written by the user of the image but where everybody may, and all that the program
// and ONNX Runtime are linked with is there.
func TestWhatStandsInTheImage(t *testing.T) {
	index, archs := opened(t)
	for _, arch := range archs {
		img := editionOf(t, index, arch)
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if c.Config.User != "65532:65532" || !slices.Equal(c.Config.Entrypoint, []string{"/usr/bin/spotter"}) ||
			c.Architecture != arch || !strings.Contains(c.Config.Labels["dev.spotter.base"], "libc6=") {
			t.Errorf("%s: configuration %+v", arch, c.Config)
		}
		all := files(t, img)
		for path, f := range all {
			kind, owner := f.Mode.Type(), f.Sys.(*tar.Header).Uid
			if kind != 0 && kind != fs.ModeDir && kind != fs.ModeSymlink {
				t.Errorf("%s: %s is neither file nor folder nor symbolic link", arch, path)
			}
			free := path == "tmp" && f.Mode == fs.ModeDir|fs.ModeSticky|0o777
			if f.Mode.Perm()&0o022 != 0 && kind != fs.ModeSymlink && !free || owner != 0 && path != "home/nonroot" {
				t.Errorf("%s: %s has the mode %v and the owner %d", arch, path, f.Mode, owner)
			}
		}
		lib := "usr/lib/" + platforms[arch].triplet + "/"
		for _, path := range []string{program, lib + onnxLibrary, "etc/ssl/certs/ca-certificates.crt", "etc/passwd",
			"usr/lib/os-release", "usr/share/zoneinfo/Europe/Berlin",
			"usr/share/doc/spotter/LICENSE", "usr/share/doc/spotter/licenses/go/LICENSE", "usr/share/doc/onnxruntime/LICENSE", "usr/share/doc/libc6/copyright", "var/lib/dpkg/status.d/libc6"} {
			if all[path] == nil || len(all[path].Data) == 0 {
				t.Errorf("%s: %s is not there or empty", arch, path)
			}
		}
		for _, path := range []string{program, lib + onnxLibrary} {
			linked(t, all, arch, path)
		}
		certificates := bytes.Count(all["etc/ssl/certs/ca-certificates.crt"].Data, []byte("BEGIN CERTIFICATE"))
		if certificates < 100 {
			t.Errorf("%s: %d certificates", arch, certificates)
		}
	}
}

// linked sees that what a file is linked with stands where the loader looks.
func linked(t *testing.T, all tree, arch, path string) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(all[path].Data))
	if err != nil {
		t.Fatalf("%s: %s: %v", arch, path, err)
	}
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]; f.Machine != want {
		t.Errorf("%s: %s is for %v", arch, path, f.Machine)
	}
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Errorf("%s: %s is linked with %v: %v", arch, path, libraries, err)
	}
	for _, l := range libraries {
		if !slices.ContainsFunc([]string{"lib/", "usr/lib/"}, func(dir string) bool {
			_, ok := all[dir+platforms[arch].triplet+"/"+l]
			return ok
		}) {
			t.Errorf("%s: %s needs %s, which is not there", arch, path, l)
		}
	}
}

// runScript runs a program as a container would: with the image as a root that cannot
// be written, with nothing but loopback of a network, as the user of the image.
const runScript = `set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
[ -z "$2" ] || cp -r "$2" "$1/tmp/bundle"
chmod -R a+rX "$1/tmp/"
mount -o remount,ro,bind "$1"
chroot=$(command -v chroot)
as=$3
dir=$1
shift 3
exec env -i PATH=/usr/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt "$chroot" $as "$dir" "$@"`

// A container runs an unpacked image.
type container struct {
	dir, bundle string

	// before is what runs programs of another architecture.
	before []string
}

// run returns what the program prints.
func (c *container) run(ctx context.Context, args ...string) (string, error) {
	as := "--userspec=65532:65532"
	all := []string{"--mount", "--net", "--pid", "--fork"}
	if os.Geteuid() != 0 {
		all, as = append(all, "--map-root-user"), ""
	}
	all = append(all, "sh", "-c", runScript, "sh", c.dir, c.bundle, as)
	cmd := exec.CommandContext(ctx, "unshare", append(append(append(all, c.before...), "/"+program), args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestRun unpacks the image and runs the program in it, with ONNX Runtime where there
// is a bundle of models.
func TestRun(t *testing.T) {
	index, archs := opened(t)
	bundle, err := filepath.Abs(filepath.Join(root, "..", "shared", "compat", "spotvortex", "models"))
	if err != nil {
		t.Fatal(err)
	}
	if dir := os.Getenv("SPOTTER_COMPAT"); dir != "" {
		bundle = filepath.Join(dir, "spotvortex", "models")
	}
	if _, err := os.Stat(bundle); err != nil {
		t.Logf("models are not run: %v: name the folder by SPOTTER_COMPAT", err)
		bundle = ""
	}
	for _, arch := range archs {
		c := &container{dir: filepath.Join(t.TempDir(), "root"), bundle: bundle}
		if err := os.Chmod(filepath.Dir(filepath.Dir(c.dir)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(c.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "tar", "--extract", "--preserve-permissions", "--numeric-owner", "--directory", c.dir)
		cmd.Stdin = mutate.Extract(editionOf(t, index, arch))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if arch != runtime.GOARCH && !c.emulate(t, arch) {
			continue
		}
		c.play(t, arch)
	}
}

// play runs what needs the program alone, then what needs ONNX Runtime and its
// libraries, and then what must be refused.
func (c *container) play(t *testing.T, arch string) {
	t.Helper()
	runs := []struct{ want, args string }{
		{"linux/" + arch, "version"},
		{"hash ", "sim tiny --policy portfolio --seed 1"},
	}
	if c.bundle != "" {
		runs = append(runs, struct{ want, args string }{"answer under ONNX Runtime", "models verify /tmp/bundle"})
	}
	for _, r := range runs {
		if out, err := c.run(t.Context(), strings.Fields(r.args)...); err != nil || !strings.Contains(out, r.want) {
			t.Errorf("%s: spotter %s: %v\n%s", arch, r.args, err, out)
		}
	}
	for dir, free := range map[string]bool{"/tmp": true, "/home/nonroot": false, "/usr/share": false} {
		out, err := c.run(t.Context(), "sim", "tiny", "--policy", "portfolio", "--log", dir+"/log")
		if (err == nil) != free || !free && !strings.Contains(out, "read-only") {
			t.Errorf("%s: writing to %s: %v\n%s", arch, dir, err, out)
		}
	}
}

// emulate has programs of another architecture run by qemu, where that is.
func (c *container) emulate(t *testing.T, arch string) bool {
	t.Helper()
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	qemu, err := exec.LookPath("qemu-" + machine + "-static")
	if err != nil {
		t.Logf("linux/%s is not run: %v", arch, err)
		return false
	}
	data, err := os.ReadFile(qemu)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "qemu"), data, 0o755); err != nil {
		t.Fatal(err)
	}
	c.before = []string{"/qemu"}
	return true
}

// TestAgain makes the image a second time and gets the same bytes.
func TestAgain(t *testing.T) {
	file := image(t)
	index, archs := opened(t)
	c, err := editionOf(t, index, archs[0]).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.oci.tar")
	t.Setenv("SOURCE_DATE_EPOCH", strconv.FormatInt(c.Created.Unix(), 10))
	args := []string{"build", "--root", root, "--arch", strings.Join(archs, ","), "--version",
		c.Config.Labels["org.opencontainers.image.version"], "--out", again}
	args = append(args, strings.Fields(os.Getenv("SPOTTER_IMAGE_FLAGS"))...)
	if err := run(t.Context(), args, io.Discard, os.Stderr); err != nil {
		t.Fatal(err)
	}
	if one, two := sumOf(file), sumOf(again); one != two || one == "" {
		t.Errorf("two builds differ: %s and %s", one, two)
	}
}

// TestPush sends the image to a registry and finds there what was sent, and the bill
// of materials as one that refers to the image.
func TestPush(t *testing.T) {
	_, archs := opened(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/spotter-dev/spotter:1.2.3"
	refs, err := (&builder{work: t.TempDir(), said: t.Output()}).push(t.Context(), image(t), to)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.ParseReference(to)
	if err != nil {
		t.Fatal(err)
	}
	d, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	if len(refs) != 1+len(archs) || !strings.HasSuffix(refs[0], "@"+d.Digest.String()) {
		t.Errorf("%v was pushed, the tag is of %s", refs, d.Digest)
	}
	for i, arch := range archs {
		platform, ref, _ := strings.Cut(refs[1+i], " ")
		if platform != "linux/"+arch {
			t.Errorf("%s was pushed for %s", platform, arch)
		}
		digest, err := name.NewDigest(ref)
		if err != nil {
			t.Fatal(err)
		}
		checkBill(t, digest, arch)
	}
}

// checkBill reads the bill of materials that refers to an image in a registry.
func checkBill(t *testing.T, image name.Digest, arch string) {
	t.Helper()
	referrers, err := remote.Referrers(image)
	if err != nil {
		t.Fatal(err)
	}
	m, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != 1 || m.Manifests[0].ArtifactType != string(billType) {
		t.Fatalf("%s: what refers to the image: %+v", arch, m.Manifests)
	}
	img, err := remote.Image(image.Context().Digest(m.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	bom := billOf(t, img)
	found := map[string]bool{}
	for _, c := range *bom.Components {
		name, _, _ := strings.Cut(c.PackageURL, "@")
		found[name] = c.Version != ""
		if c.Licenses == nil || len(*c.Licenses) != 1 {
			t.Errorf("%s: %s has no licence", arch, c.PackageURL)
		}
	}
	for _, want := range []string{"pkg:golang/stdlib", "pkg:golang/k8s.io/client-go",
		"pkg:golang/github.com/spotter-dev/spotter", "pkg:github/microsoft/onnxruntime", "pkg:deb/debian/libc6"} {
		if !found[want] {
			t.Errorf("%s: the bill of materials has no %s among %d", arch, want, len(found))
		}
	}
	if id := bom.Metadata.Component.PackageURL; !strings.Contains(id, "arch="+arch) {
		t.Errorf("%s: the bill of materials is of %s", arch, id)
	}
}

func billOf(t *testing.T, img v1.Image) *cdx.BOM {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("a bill of materials in %d layers: %v", len(layers), err)
	}
	in, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(in, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	return &bom
}
