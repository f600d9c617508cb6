package run

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
)

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
		{"logging: {level: debug}\nwrites: {qps: 7, burst: 70}\nstepInterval: 1m\ndiscounts: {1y: 0.5}", 1, 1, 0,
			"fields=\"[stepInterval writes.qps writes.burst discounts.1y logging.level]\"", "debug 1m0s shadow"},
		{"logging: {level: debug}\nwrites: {qps: 7, burst: 70}\nstepInterval: 1m\ndiscounts: {1y: 0.5}", 1, 1, 0, "", "debug 1m0s shadow"},
		{"logging: {level: loud}\nstepInterval: 2m", 1, 0, 0, "level=ERROR", "debug 1m0s shadow"},
		{"logging: {level: loud}\nstepInterval: 2m", 1, 0, 0, "", "debug 1m0s shadow"},
		{"mode: active\nlogging: {format: text}\nstepInterval: 2m", 2, 1, 2,
			"takes a restart\" fields=\"[mode logging.format]\"", "info 2m0s shadow"},
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
