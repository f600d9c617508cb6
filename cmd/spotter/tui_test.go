package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestTUICall checks what is said of a wrong call before there is a screen; the
// output of a test is no terminal, so a right one ends there.
func TestTUICall(t *testing.T) {
	dir := recordedRun(t, "spotvortex")
	wrongCallIs(t, "not a terminal", "tui")
	wrongCallIs(t, "not a terminal", "tui", "squeeze", "--policies", "portfolio,static:share=0.7", "--seed", "7",
		"--color", "16", "--theme", "light")
	wrongCallIs(t, "not a terminal", "tui", "--run", dir)
	wrongCallIs(t, "no such scenario", "tui", "nowhere")
	wrongCallIs(t, "--policies", "tui", "--policies", "")
	wrongCallIs(t, "unknown policy", "tui", "--policies", "chance")
	wrongCallIs(t, "bad parameter", "tui", "--policies", "static:share=7")
	wrongCallIs(t, "7 are more than the 6", "tui", "--policies", "static:share=0.1..0.7/0.1")
	wrongCallIs(t, `"pink" is not one of`, "tui", "--color", "pink")
	wrongCallIs(t, `--theme: unknown choice: "pink" is not one of`, "tui", "--theme", "pink")
	t.Setenv("SPOTTER_THEME", "sea")
	wrongCallIs(t, `SPOTTER_THEME: unknown choice: "sea" is not one of`, "tui")
	t.Setenv("SPOTTER_THEME", "high-contrast")
	wrongCallIs(t, "not a terminal", "tui")
	wrongCallIs(t, "--intensity", "tui", "--intensity", "-1")
	wrongCallIs(t, "--from", "tui", "--from", "yesterday")
	wrongCallIs(t, "no such file", "tui", "--run", dir+"-none")
	wrongCallIs(t, "no recording", "tui", "--run", t.TempDir())
	wrongCallIs(t, "has its own scenario", "tui", "web-week", "--run", dir)
	wrongCallIs(t, "has its own scenario", "tui", "--seed", "2", "--run", dir)
	wrongCallIs(t, "not a terminal", "tui", "--live", dir)
	wrongCallIs(t, "no recording", "tui", "--live", t.TempDir())
	wrongCallIs(t, "no such file", "tui", "--live", dir+"-none")
	wrongCallIs(t, "has its own cluster", "tui", "web-week", "--live", dir)
	wrongCallIs(t, "has its own cluster", "tui", "--run", dir, "--live", dir)
	wrongCallIs(t, "--since: -1h0m0s is negative", "tui", "--live", dir, "--since=-1h")
	wrongCallIs(t, "--since: it is for --live", "tui", "--since", "1h")
	wrongCallIs(t, "aws s3 sync s3://b/p DIR", "tui", "--live", "s3://b/p")
	wrongCallIs(t, "aws s3 sync s3://b/p DIR", "tui", "--run", "s3://b/p")
	wrongCallIs(t, "aws s3 sync s3://b/p DIR", "replay", "s3://b/p")
	wrongCallIs(t, "aws s3 sync s3://b/p DIR", "explain", "--run", "s3://b/p", "--step", "1")
	results := filepath.Join(t.TempDir(), "results.json")
	const empty = `{"schema_version": 2, "cases": [{"scenario": "tiny", "from": "%s"}], "runs": [{"scenario": "tiny", "policy": "spot"}]}`
	write := func(text string) {
		if err := os.WriteFile(results, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(empty, "2026-01-01T00:00:00.000Z"))
	wrongCallIs(t, "not a terminal", "tui", results)
	wrongCallIs(t, "its runs have their own", "tui", results, "--seed", "2")
	write(fmt.Sprintf(empty, "yesterday"))
	wrongCallIs(t, "yesterday", "tui", results)
	write(`{"schema_version": 1}`)
	wrongCallIs(t, "another schema_version", "tui", results)
	write(`{"kind": "Pod"}`)
	wrongCallIs(t, "apiVersion", "tui", results)
	wrongCallIs(t, "no such", "tui", results+"-none.json")
	wrongCallIs(t, "3 recordings", "tui", "--run", dir, "--run", dir, "--run", dir)
}
