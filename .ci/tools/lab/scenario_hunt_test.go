package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestHunt: what is found is an ordinary scenario. That equal calls find the same is tested where it
// is searched.
func TestHunt(t *testing.T) {
	out := filepath.Join(t.TempDir(), "found")
	code, stdout, stderr := call(t, "scenario", "hunt", "--policy", "static", "--length", "12h", "--tries", "2", "--keep", "1", "--out", out)
	if code != cli.ExitOK || !strings.Contains(stdout, "points of the on-demand bill behind") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, err := scenarios.Load(filepath.Join(out, "static-1.yaml")); err != nil {
		t.Error(err)
	}
	for want, flags := range map[string]string{
		"--tries: 0 is not 1 or more":                 "--tries 0",
		"--goal: fame is not savings or outage":       "--goal fame",
		"--length: 1h0m0s is not 12h to 744h":         "--length 1h",
		"--objective: 1 is not a share":               "--objective 1",
		`--policy: "static,spot" is 2 policies, want`: "--policy static,spot",
		`--policy: unknown policy "portfoli"`:         "--policy portfoli",
		"--least: 0 is not above 0":                   "--least 0",
	} {
		wrongCallIs(t, want, append([]string{"scenario", "hunt"}, strings.Fields(flags)...)...)
	}
}
