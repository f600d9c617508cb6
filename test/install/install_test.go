package install

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// sizeMax is how large an archive may be, in bytes.
const sizeMax = 30e6

// steps are the first command lines of the README: the prefix of each, a regular expression
// that its output matches, the keys that end it where it needs a terminal, and how long it
// may take from scratch, on two processors that do nothing else.
var steps = []struct {
	begins, shows, keys string
	max                 time.Duration
}{
	{"curl ", "^$", "", 10 * time.Second},
	{"./spotter eval ", `(?m)^▸ portfolio +[\d,]`, "", 30 * time.Second},
	{"./spotter eval --report report.html", `(?m)^▸ portfolio +[\d,]`, "", time.Minute},
	{"./spotter tui", `net savings \+\$\d`, "q", 20 * time.Second},
}

// release returns the folder that a release was made in, or skips.
func release(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SPOTTER_RELEASE")
	if dir == "" {
		t.Skip("SPOTTER_RELEASE names no release: run `make install-test`")
	}
	return dir
}

// host is the name of the archive for this machine.
func host(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf spotter_$(uname -s)_$(uname -m).tar.gz").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// unpacked returns the program of the archive for this machine, in a folder of its own.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(release(t), host(t)), "-C",
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "spotter")
}

// TestReadme runs the lines of the README below "## Install" as they stand, in an empty
// folder, with nothing but a shell, curl and tar. curl is given the address of github.com; what
// answers there sends it on, as GitHub does, to what belongs to the tag.
func TestReadme(t *testing.T) {
	dir := release(t)
	const latest, tagged = "/spotter-dev/spotter/releases/latest/download/", "/spotter-dev/spotter/releases/download/v0.0.1/"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, ok := strings.CutPrefix(r.URL.Path, latest); ok && r.Host == "github.com" {
			http.Redirect(w, r, tagged+name, http.StatusFound)
		} else if name, ok := strings.CutPrefix(r.URL.Path, tagged); ok && name == filepath.Base(name) {
			http.ServeFile(w, r, filepath.Join(dir, name))
		} else {
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	home := t.TempDir()
	rc := fmt.Sprintf("connect-to = \"github.com:443:%s\"\ninsecure\n", server.Listener.Addr())
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	work, path := t.TempDir(), only(t, "sh", "curl", "tar", "gzip", "uname")
	var installed time.Duration
	for i, line := range installLines(t) {
		c := exec.CommandContext(t.Context(), "sh", "-c", line) //nolint:gosec // the README of this repository
		c.Dir, c.Env = work, []string{"HOME=" + home, "PATH=" + path, "TERM=xterm-256color"}
		start, at := time.Now(), steps[i]
		if !strings.HasPrefix(line, at.begins) {
			t.Fatalf("line %d of the README is %q, want %q", i+1, line, at.begins)
		}
		if at.keys != "" {
			if err := onTerminal(t, c, at.shows, at.keys); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		} else if out, err := c.CombinedOutput(); err != nil || !regexp.MustCompile(at.shows).Match(out) {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		if i == 0 {
			installed = used
		}
		t.Logf("%s: %v, %v of processors", line, time.Since(start).Round(time.Millisecond), used.Round(time.Millisecond))
		if sum := installed + used; sum > 2*at.max {
			t.Errorf("%s: from nothing it takes %v of two processors, want at most %v", line, sum/2, at.max)
		}
	}
	if text := read(t, filepath.Join(work, "report.html")); !strings.Contains(text, "</html>") {
		t.Errorf("report.html is no report: %.300s", text)
	}
}

// installLines returns the commands of the README below "## Install".
func installLines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n## Install\n.*?```sh\n(.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("the README has no commands below ## Install")
	}
	lines := strings.Split(strings.TrimSpace(string(m[1])), "\n")
	if len(lines) != len(steps) {
		t.Fatalf("the README has %d commands below ## Install, want %d", len(lines), len(steps))
	}
	return lines
}

// only returns a folder with links to some programs of this machine.
func only(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("the README needs %s: %v", name, err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestGoInstall: go install takes the module as it is, and what it builds knows which
// commit it is of.
func TestGoInstall(t *testing.T) {
	release(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	// Go reads the commit of a clone, and not that of a further worktree.
	if info, err := os.Stat(filepath.Join(root, ".git")); err != nil || !info.IsDir() {
		t.Skip("this is no clone")
	}
	// go install …@VERSION refuses a module that has any of these.
	if text := read(t, filepath.Join(root, "go.mod")); regexp.MustCompile(`(?m)^\s*(replace|exclude)\b`).MatchString(text) {
		t.Error("go.mod replaces or excludes modules")
	}
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "go", "install", "-buildvcs=true", "./cmd/spotter")
	c.Dir, c.Env = root, append(os.Environ(), "GOBIN="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, code := call(t, filepath.Join(dir, "spotter"), "version"); code != 0 ||
		!regexp.MustCompile(`^spotter v\d+\.\d+\.\d+\S* \(go[^,]+, [a-z0-9/]+\)\n$`).MatchString(out) {
		t.Errorf("exit %d, %q", code, out)
	}
}

// TestLacks: the program of an archive says that it cannot run trained models, and what
// can; everything else works.
func TestLacks(t *testing.T) {
	spotter := unpacked(t)
	builtin, err := filepath.Abs(filepath.Join("..", "..", "models", "builtin"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"version", ", without ONNX Runtime)", 0},
		{"version -o json", `"lacks": "ONNX Runtime"`, 0},
		{"models verify " + builtin, "use the container image, or build spotter with a C compiler", 0},
		{"sim tiny --policy portfolio:bundle=" + builtin, "ONNX Runtime is not available: this program was built without cgo", 2},
		{"sim tiny --policy portfolio", "hash ", 0},
	} {
		out, code := call(t, spotter, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("spotter %s: exit %d, want %d with %q\n%s", c.args, code, c.code, c.says, out)
		}
		if strings.Count(out, "built without cgo") > 1 {
			t.Errorf("spotter %s says it more than once:\n%s", c.args, out)
		}
	}
}

// TestKubectl: kubectl finds the program below the name that krew and the packages give
// it, which takes the flags of kubectl.
func TestKubectl(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(unpacked(t), filepath.Join(dir, "kubectl-spotter")); err != nil {
		t.Fatal(err)
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		if kubectl, err = filepath.Abs(filepath.Join("..", "..", "bin", "testenv", "kubectl")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(kubectl); err != nil {
		t.Skipf("no kubectl: %v", err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, code := call(t, kubectl, "spotter", "status", "--help"); code != 0 || !strings.Contains(out, "kubectl spotter status [flags]") {
		t.Errorf("exit %d\n%s", code, out)
	}
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	if out, code := call(t, kubectl, "spotter", "status", "--context", "other", "-n", "there"); code != 2 ||
		!strings.Contains(out, `context "other" does not exist`) {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestKrew has krew install the plugin from its manifest and a local archive, without the
// address that the manifest names.
func TestKrew(t *testing.T) {
	dir := release(t)
	krew, err := filepath.Abs(filepath.Join("..", "..", "bin", "krew"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(krew); err != nil {
		t.Skipf("no krew: %v", err)
	}
	root := t.TempDir()
	t.Setenv("KREW_ROOT", root)
	t.Setenv("PATH", filepath.Join(root, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, code := call(t, krew, "install", "--manifest", filepath.Join(dir, "krew", "spotter.yaml"), "--archive",
		filepath.Join(dir, host(t))); code != 0 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if out, code := call(t, filepath.Join(root, "bin", "kubectl-spotter"), "--help"); code != 0 ||
		!strings.Contains(out, "kubectl spotter [command]") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestOtherMachine runs the program for arm64 by qemu, where both are here.
func TestOtherMachine(t *testing.T) {
	archive := filepath.Join(release(t), "spotter_Linux_aarch64.tar.gz")
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if _, missing := os.Stat(archive); err != nil || missing != nil {
		t.Skipf("no qemu, or no archive for arm64: %v, %v", err, missing)
	}
	dir := t.TempDir()
	if out, code := call(t, "tar", "-xzf", archive, "-C", dir); code != 0 {
		t.Fatal(out)
	}
	own, _ := call(t, unpacked(t), "sim", "tiny", "--policy", "portfolio")
	out, code := call(t, qemu, filepath.Join(dir, "spotter"), "sim", "tiny", "--policy", "portfolio")
	if hash := regexp.MustCompile(`(?m)^hash .*$`).FindString(own); code != 0 || hash == "" || !strings.Contains(out, hash) {
		t.Errorf("exit %d, want the %s of this machine\n%s", code, hash, out)
	}
}

// TestArchives: each archive holds the program with the licences of all that is in it,
// is small enough, and has its sum in checksums.txt and in the manifests.
func TestArchives(t *testing.T) {
	dir := release(t)
	sums := checksums(t, dir)
	archives, err := filepath.Glob(filepath.Join(dir, "spotter_*_*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in %s: %v", dir, err)
	}
	manifests := read(t, filepath.Join(dir, "krew", "spotter.yaml")) + read(t, filepath.Join(dir, "homebrew", "Casks", "spotter.rb"))
	for _, path := range archives {
		name := filepath.Base(path)
		data := read(t, path)
		sum := sha256.Sum256([]byte(data))
		if hex.EncodeToString(sum[:]) != sums[name] {
			t.Errorf("%s: checksums.txt says %q", name, sums[name])
		}
		t.Logf("%s: %.1f MB", name, float64(len(data))/1e6)
		if len(data) > sizeMax {
			t.Errorf("%s has %.1f MB, want at most %.0f", name, float64(len(data))/1e6, sizeMax/1e6)
		}
		if got, want := entries(t, path), []string{"LICENSE", "THIRD_PARTY_LICENSES", "spotter"}; !slices.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", name, got, want)
		}
		// The cask and the plugin name the address and the sum.
		for _, part := range []string{"/releases/download/v", "/" + name, sums[name]} {
			if strings.Count(manifests, part) < 2 {
				t.Errorf("%s: krew and Homebrew do not both have %s:\n%s", name, part, manifests)
			}
		}
	}
	bills, err := filepath.Glob(filepath.Join(dir, "*.cdx.json"))
	if err != nil || len(bills) != len(archives) {
		t.Errorf("%d bills of materials of %d archives: %v", len(bills), len(archives), err)
	}
	for _, bill := range bills {
		if text := read(t, bill); !strings.Contains(text, "pkg:golang/k8s.io/client-go@") ||
			strings.Contains(text, "onnxruntime@") || sums[filepath.Base(bill)] == "" {
			t.Errorf("%s is not the bill of a program without ONNX Runtime, or has no sum", filepath.Base(bill))
		}
	}
}

// TestPackages unpacks what is for Debian on this machine and runs it.
func TestPackages(t *testing.T) {
	dir := release(t)
	sums := checksums(t, dir)
	for _, kind := range []string{"deb", "rpm"} {
		found, err := filepath.Glob(filepath.Join(dir, "*."+kind))
		if err != nil || len(found) == 0 && runtime.GOOS == "linux" {
			t.Errorf("no %s: %v", kind, err)
		}
		for _, path := range found {
			if sums[filepath.Base(path)] == "" {
				t.Errorf("%s has no sum", path)
			}
		}
	}
	deb, err := filepath.Glob(filepath.Join(dir, "*_"+runtime.GOARCH+".deb"))
	if _, missing := exec.LookPath("dpkg-deb"); err != nil || missing != nil || len(deb) != 1 {
		t.Skipf("no dpkg-deb, or no package for %s: %v, %v, %v", runtime.GOARCH, missing, deb, err)
	}
	into := t.TempDir()
	if out, code := call(t, "dpkg-deb", "-x", deb[0], into); code != 0 {
		t.Fatal(out)
	}
	for _, name := range []string{
		"usr/bin/spotter", "usr/share/doc/spotter/copyright", "usr/share/doc/spotter/THIRD_PARTY_LICENSES", "usr/share/man/man1/spotter-eval.1.gz",
		"usr/share/bash-completion/completions/spotter", "usr/share/zsh/vendor-completions/_spotter", "usr/share/fish/vendor_completions.d/spotter.fish",
	} {
		if _, err := os.Stat(filepath.Join(into, name)); err != nil {
			t.Error(err)
		}
	}
	if to, err := os.Readlink(filepath.Join(into, "usr/bin/kubectl-spotter")); err != nil || to != "spotter" {
		t.Errorf("kubectl-spotter is %q, %v", to, err)
	}
	if out, code := call(t, filepath.Join(into, "usr/bin/spotter"), "version"); code != 0 {
		t.Error(out)
	}
}

// checksums reads checksums.txt as sha256sum does.
func checksums(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(read(t, filepath.Join(dir, "checksums.txt"))))
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			t.Fatalf("checksums.txt: %q", lines.Text())
		}
		sums[name] = sum
	}
	return sums
}

// entries lists the files of an archive in order.
func entries(t *testing.T, path string) []string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// call runs a program and returns what it printed and its exit code.
func call(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
