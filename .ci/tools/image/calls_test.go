package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// TestBroken reads an archive and refuses one of which one byte was changed.
func TestBroken(t *testing.T) {
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture = "linux", "amd64"
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	b := &builder{work: t.TempDir(), version: "1", at: time.Unix(1, 0), said: t.Output()}
	archive := filepath.Join(b.work, "x.oci.tar")
	if _, err := b.archive([]edition{{"amd64", img, []byte("{}")}}, archive); err != nil {
		t.Fatal(err)
	}
	_, bills, err := b.open(archive, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(bills) != 1 {
		t.Fatalf("%d bills of materials, want 1", len(bills))
	}
	m, err := bills[0].Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := img.Digest(); err != nil || m.Subject == nil || m.Subject.Digest != digest {
		t.Errorf("the bill of materials is of %+v, want %s: %v", m.Subject, digest, err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	in, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	blob, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, blob)
	if at < 0 {
		t.Fatal("the layer is not in the archive")
	}
	data[at+len(blob)/2] ^= 1
	if err := os.WriteFile(archive, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.open(archive, t.TempDir()); err == nil {
		t.Error("an archive with a changed byte is taken")
	}
}

// TestCalls refuses what is wrongly called, with exit code 2.
func TestCalls(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"", "no command"},
		{"bake", `"bake"`},
		{"build x", "1 arguments"},
		{"build --arch riscv64", `"riscv64"`},
		{"build --arch amd64,amd64", "once"},
		{"build --version a/b", `"a/b"`},
		{"stage --arch amd64", "--out"},
		{"stage --arch amd64,arm64 --out x", "takes one"},
		{"push nowhere.tar example.com/x:1", "nowhere.tar"},
	} {
		err := run(t.Context(), strings.Fields(c.args), io.Discard, io.Discard)
		if err == nil || !errors.As(err, &errWrong{}) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("imagetool %s: %v", c.args, err)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if err := run(t.Context(), []string{"build"}, io.Discard, io.Discard); err == nil || !errors.As(err, &errWrong{}) ||
		!strings.Contains(err.Error(), `"today"`) {
		t.Errorf("SOURCE_DATE_EPOCH=today: %v", err)
	}
}

// TestLock holds the pins to what is needed, and to what `make onnxruntime` fetches.
func TestLock(t *testing.T) {
	all, err := readLock(filepath.Join(root, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	fetch, err := os.ReadFile(filepath.Join(root, ".ci", "tools", "onnxruntime", "fetch"))
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range architectures() {
		packages, err := of(all, "debian", arch)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range packages {
			names = append(names, p.name)
		}
		if !slices.Equal(names, debianPackages) {
			t.Errorf("%s: pinned are %v, want %v", arch, names, debianPackages)
		}
		runtimes, err := of(all, "npm", arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range runtimes {
			if !strings.Contains(string(fetch), "sum="+p.sum) || !strings.Contains(string(fetch), "version="+p.version) {
				t.Errorf("%s: %s with the SHA-256 %s is not what make onnxruntime fetches", arch, p, p.sum)
			}
		}
	}
	for text, says := range map[string]string{
		"debian libc6 1 amd64":               "wrong number of fields",
		"pip a 1 amd64 00":                   `"pip"`,
		"npm a 1 sparc 00":                   `"sparc"`,
		"npm a 1 any 00":                     `"any"`,
		"debian libc6 1 amd64 00zz":          `"00zz"`,
		all[0].line() + "\n" + all[0].line(): "twice",
	} {
		name := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readLock(name); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNotices: notices that differ from the pinned ones are refused and, where everything
// must be pinned, so are those of another version. Where no notices were ever pinned, they
// are accepted and their SHA-256 is reported.
func TestNotices(t *testing.T) {
	const text = "# x\n"
	b := &builder{root: t.TempDir(), said: io.Discard}
	file := filepath.Join(b.root, "notices.txt")
	lock := filepath.Join(b.root, lockFile)
	runtime := pin{source: "npm", name: "onnxruntime-node", version: "1.2.3"}
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version, sum string
		locked       bool
		want         string
	}{
		{"1.2.3", sum([]byte(text)), true, ""},
		{"1.2.3", sum([]byte("y")), false, "pinned for onnxruntime 1.2.3 is " + sum([]byte("y"))},
		{"1.2.2", sum([]byte(text)), true, "not pinned"},
		{"1.2.2", sum([]byte(text)), false, ""},
	} {
		if err := writeLock(lock, []pin{{noticesSource, "onnxruntime", c.version, "any", c.sum}}); err != nil {
			t.Fatal(err)
		}
		err := b.checkNotices(options{notices: file, locked: c.locked}, runtime)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	var said bytes.Buffer
	b.said = &said
	if err := writeLock(lock, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.checkNotices(options{notices: file, locked: true}, runtime); err != nil ||
		!strings.Contains(said.String(), sum([]byte(text))) {
		t.Errorf("with no pin at all: %v, said %q", err, said.String())
	}
}

// TestLicences: a licence is recognised by its text, and one that a file only links to by
// the text next to that file. An unknown text is an error, as is a Debian copyright file
// that no person has read.
func TestLicences(t *testing.T) {
	mit, err := os.ReadFile(filepath.Join(root, "build", "licenses", "onnxruntime", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	apache, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	const link = "https://www.apache.org/licenses/LICENSE-2.0"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"LICENSE": string(mit), "NOTICE": "whatever"}, "MIT"},
		{map[string]string{"LICENSE": string(apache), "x/LICENSE.txt": string(mit)}, "Apache-2.0 AND MIT"},
		{map[string]string{"LICENSE": string(apache), "LICENSE-link": link}, "Apache-2.0"},
		{map[string]string{"LICENSE": string(mit), "LICENSE-link": link}, ""},
		{map[string]string{"LICENSE": "All is mine."}, ""},
		{map[string]string{"NOTICE": string(mit)}, ""},
	} {
		tr := tree{}
		for name, text := range c.files {
			tr[licencesOf+"m@v1/"+name] = file([]byte(text))
		}
		if got, err := moduleLicences(tr, "m@v1"); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %q, want %q: %v", sortedKeys(tr), got, c.want, err)
		}
	}
	for _, name := range debianPackages {
		if x := debianLicences[name]; x.expression == "" || len(x.sum) != 64 {
			t.Errorf("%s: %+v", name, x)
		}
		if _, err := packageLicence(tree{}, name); err == nil {
			t.Errorf("%s: a copyright file that nobody has read is taken", name)
		}
	}
}

func (p pin) line() string {
	return strings.Join([]string{p.source, p.name, p.version, p.arch, p.sum}, " ")
}
