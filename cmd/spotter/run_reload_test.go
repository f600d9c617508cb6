package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
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

// TestReload: what can change while the program runs is applied, what takes a restart is
// named until the file takes it back, and of a file that cannot be used nothing is.
func TestReload(t *testing.T) {
	const head = "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n"
	text := ""
	read := func() (*config.SpotterConfiguration, error) {
		c, err := config.Parse([]byte(head + text))
		if err == nil {
			err = c.Validate().ToAggregate()
		}
		return c, err
	}
	applied := 0
	var log bytes.Buffer
	r := newReloader(config.Default(), read, func(*config.SpotterConfiguration) { applied++ }, slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		text    string
		applied int
		good    float64
		restart float64
		says    string
		force   string // the level, the step and the mode
	}{
		{"", 0, 1, 0, "", "info 10m0s shadow"},
		{"logging: {level: debug}\nwrites: {qps: 7, burst: 70}\nstepInterval: 1m\ndiscounts: {1y: 0.5}", 1, 1, 0, "fields=\"[stepInterval writes.qps writes.burst discounts.1y logging.level]\"", "debug 1m0s shadow"},
		{"logging: {level: debug}\nwrites: {qps: 7, burst: 70}\nstepInterval: 1m\ndiscounts: {1y: 0.5}", 1, 1, 0, "", "debug 1m0s shadow"},
		{"logging: {level: loud}\nstepInterval: 2m", 1, 0, 0, "level=ERROR", "debug 1m0s shadow"},
		{"logging: {level: loud}\nstepInterval: 2m", 1, 0, 0, "", "debug 1m0s shadow"},
		{"mode: active\nlogging: {format: text}\nstepInterval: 2m", 2, 1, 2, "takes a restart\" fields=\"[mode logging.format]\"", "info 2m0s shadow"},
		{"mode: active\nlogging: {format: text}\nstepInterval: 2m", 2, 1, 2, "", "info 2m0s shadow"},
		{"stepInterval: 2m", 2, 1, 0, "", "info 2m0s shadow"},
		{"leaderElection: {leaseDuration: 20s}\nstepInterval: 2m", 2, 1, 1, "leaderElection.leaseDuration", "info 2m0s shadow"},
	} {
		log.Reset()
		text = c.text
		r.look()
		f := &r.force
		if got := fmt.Sprintf("%s %v %s", f.Logging.Level, f.StepInterval.Duration, f.Mode); got != c.force {
			t.Errorf("%q: in force is %s, not %s", c.text, got, c.force)
		}
		if applied != c.applied || testutil.ToFloat64(r.good) != c.good || testutil.ToFloat64(r.restart) != c.restart {
			t.Errorf("%q: applied %d times, good %v, restart %v", c.text, applied, testutil.ToFloat64(r.good), testutil.ToFloat64(r.restart))
		}
		if said := log.String(); (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%q: it says %q, not %q", c.text, said, c.says)
		}
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
