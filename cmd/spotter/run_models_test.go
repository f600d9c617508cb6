package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/registry"
)

// TestPoolsOpenNoFile: whatever a pool gives as a parameter, no file is opened for it
// but those that models.dir holds. What a link leads to elsewhere is not among them.
func TestPoolsOpenNoFile(t *testing.T) {
	within := filepath.Join(t.TempDir(), "models")
	outside := copied(t)
	secret := filepath.Join(t.TempDir(), "secret.json")
	for _, err := range []error{
		os.Mkdir(within, 0o700), os.WriteFile(secret, []byte(`{"token": "TOPSECRET"}`), 0o600),
		os.Symlink(outside, filepath.Join(within, "link")), os.Symlink(secret, filepath.Join(within, "linked.json")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []runner.ModelsDir{"", runner.ModelsDir(within)} {
		r := runner.New()
		r.Models = dir
		make := r.LivePolicy(registry.Manifest)
		for _, value := range []string{
			"/proc/self/environ", secret, "../" + filepath.Base(outside), "..", ".", "a/b", `a\b`, "", ".hidden", outside, "linked.json",
		} {
			_, err := make([]string{"spotvortex:runtime=" + value})
			if err == nil || strings.Contains(err.Error(), "TOPSECRET") {
				t.Errorf("%q: a pool has runtime=%s: %v", dir, value, err)
			}
			if value == "linked.json" { // a good name, and nothing more
				continue
			}
			for _, policy := range []string{"model", "portfolio", "spotvortex"} {
				if _, err := make([]string{policy + ":bundle=" + value}); !errors.Is(err, registry.ErrParameter) {
					t.Errorf("%q: a pool has %s:bundle=%s: %v", dir, policy, value, err)
				}
			}
		}
		for _, name := range []string{"link", "none", "../link", outside, "linked.json"} {
			if b, err := dir.Open(name); err == nil {
				t.Errorf("%q: %s is opened: %v", dir, name, b.Files)
			}
		}
	}
}

// TestModelsDir opens the contents of the folder by name: a bundle, a link within the folder to a
// bundle, and a runtime file with the files that it names.
func TestModelsDir(t *testing.T) {
	within := t.TempDir()
	config := filepath.Dir(runtimeFolder(t, strings.ReplaceAll(runtimeJSON, "config/", ""), boundsYAML))
	bundle := copied(t)
	for _, err := range []error{
		os.CopyFS(within, os.DirFS(config)), os.CopyFS(filepath.Join(within, "a"), os.DirFS(bundle)), os.Symlink("a",
			filepath.Join(within, "current")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := runner.New()
	r.Models = runner.ModelsDir(within)
	make := r.LivePolicy(registry.Manifest)
	for _, spec := range []string{"spotvortex:runtime=runtime.json", "portfolio:bundle=a", "model:bundle=not-yet-there",
		"portfolio:bundle=builtin"} {
		if _, err := make([]string{spec}); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
	withONNX(t)
	want, err := models.Open(os.DirFS(bundle), bundles.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "current"} {
		b, err := r.Models.Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b.Fingerprint != want.Fingerprint {
			t.Errorf("%s: another bundle was opened", name)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
