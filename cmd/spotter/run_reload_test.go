package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/test/testenv"
)

// rewritten replaces a file as a kubelet does that of a ConfigMap: by a link.
func rewritten(t *testing.T, path, text string) {
	t.Helper()
	dir := filepath.Dir(path)
	whole, err := os.MkdirTemp(dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	data, next := filepath.Join(whole, filepath.Base(path)), filepath.Join(dir, "..next")
	if err := errors.Join(os.WriteFile(data, []byte(text), 0o600), os.Symlink(data, next), os.Rename(next, path)); err != nil {
		t.Fatal(err)
	}
}

// TestRunReloads changes the file of a controller as a kubelet does: what can be applied
// is, a file that is broken leaves all as it was, and metrics say so.
func TestRunReloads(t *testing.T) {
	s := newStage(t, shadowRules)
	r := s.start(t, "stepInterval: 1h")
	s.leads(t, r)
	path := r.Cmd.Args[len(r.Cmd.Args)-1]
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	metrics := func(good, restart string) {
		t.Helper()
		testenv.Eventually(t, "the metrics say what became of the file", func() error {
			body := get(t, r.metric)
			for _, want := range []string{"spotter_config_last_reload_successful " + good, "spotter_config_restart_required " + restart} {
				if !strings.Contains(body, want+"\n") {
					return fmt.Errorf("they lack %s", want)
				}
			}
			return nil
		})
	}
	metrics("1", "0")
	changed := strings.Replace(string(before), "stepInterval: 1h", "stepInterval: 1s", 1)
	rewritten(t, path, changed+"mode: active\n")
	metrics("1", "1")
	testenv.Eventually(t, "it steps every second", func() error {
		if n := strings.Count(r.Said(), "msg=step"); n < 5 {
			return fmt.Errorf("%d steps", n)
		}
		return nil
	})
	rewritten(t, path, changed+"writes: {qps: none}\n")
	metrics("0", "1")
	if !strings.Contains(r.Said(), "writes.qps: Invalid value") {
		t.Errorf("it does not say what is wrong:\n%s", r.Said())
	}
	rewritten(t, path, strings.Replace(changed, "format: text", "format: text, level: error", 1))
	metrics("1", "0")
	testenv.Eventually(t, "it logs errors only", func() error { // what says so was logged before
		if !strings.Contains(r.Said(), "fields=[logging.level]") {
			return errors.New("it does not say that the level has changed")
		}
		return nil
	})
}
