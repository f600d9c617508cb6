package main

import (
	"bytes"
	"encoding/csv"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// folder returns the names of the files in dir.
func folder(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Every picture of a scenario is drawn, says where its numbers come from, and has
// the same bytes again.
func TestPlotScenario(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	draw := func() (string, string) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		code, stdout, stderr := call(t, "plot", scenario, "--trace", "synthetic", "--policies", "spot,static:share=0.5",
			"--intensity", "20", "--format", "svg",
			"--what", "prices,fleet,savings,reclaims,workloads", "--out", dir)
		if code != cli.ExitOK || stderr != "" {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
		return dir, stdout
	}
	dir, stdout := draw()
	want := []string{"fleet-spot.svg", "fleet-static-share=0.5.svg", "prices.svg", "reclaims-spot.svg", "reclaims-static-share=0.5.svg",
		"savings.svg", "workloads-spot.svg", "workloads-static-share=0.5.svg"}
	if got := folder(t, dir); !slices.Equal(got, want) || strings.Count(stdout, "\n") != len(want) {
		t.Errorf("there are %v\n%s", got, stdout)
	}
	again, _ := draw()
	for _, name := range want {
		a, errA := os.ReadFile(filepath.Join(dir, name))
		b, errB := os.ReadFile(filepath.Join(again, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s has other bytes when it is drawn again, %v %v", name, errA, errB)
		}
		if !bytes.Contains(a, []byte("seed 1; prices synthetic, reclaims modelled")) {
			t.Errorf("%s does not say where its numbers come from", name)
		}
	}
	savings, err := os.ReadFile(filepath.Join(dir, "savings.svg"))
	if err != nil || !bytes.Contains(savings, []byte("spot: ")) || !bytes.Contains(savings, []byte("static:share=0.5: ")) {
		t.Errorf("savings of two policies are not told apart, %v", err)
	}
}

// figure returns a figure of a policy's run from the output of eval, to a tenth.
func figure(t *testing.T, text, policy, column string) string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%v in %q", err, text)
	}
	at := slices.Index(rows[0], column)
	for _, row := range rows {
		if row[slices.Index(rows[0], "policy")] == policy {
			x, err := strconv.ParseFloat(row[at], 64)
			if err != nil {
				t.Fatal(err)
			}
			return strconv.FormatFloat(x, 'f', 1, 64)
		}
	}
	t.Fatalf("no row of %s in %q", policy, text)
	return ""
}

// The savings that the picture names are those that the figures of both runs give.
func TestPlotSavings(t *testing.T) {
	scenario, out := file(t, "tiny.yaml", tiny), filepath.Join(t.TempDir(), "s.svg")
	if code, _, stderr := call(t, "plot", scenario, "--trace", "synthetic", "--policies", "spot", "--intensity", "20",
		"--what", "savings", "--out", out); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	_, table, _ := call(t, "eval", scenario, "--trace", "synthetic", "--policies", "spot", "--baseline", "on-demand",
		"--seeds", "1", "--intensity", "20", "--format", "csv")
	percent := figure(t, table, "spot", "net_savings_pct")
	svg, err := os.ReadFile(out)
	if err != nil || !bytes.Contains(svg, []byte(", "+percent+"%")) {
		t.Errorf("the picture does not say %s%%, %v\n%s", percent, err, title(svg))
	}
}

// title returns the title of an SVG.
func title(svg []byte) string {
	_, rest, _ := strings.Cut(string(svg), "<title")
	text, _, _ := strings.Cut(rest, "</title>")
	return text
}

// A recording is drawn as what it is, whole or cut.
func TestPlotRecording(t *testing.T) {
	dir, out := recordedRun(t, "spotvortex"), t.TempDir()
	code, stdout, stderr := call(t, "plot", dir, "--out", out, "--what", "prices,fleet,savings,reclaims,workloads")
	if code != cli.ExitOK || len(folder(t, out)) != 5 {
		t.Fatalf("exit code %d, %v\n%s%s", code, folder(t, out), stdout, stderr)
	}
	data, err := os.ReadFile(filepath.Join(out, "fleet.png"))
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(data)); err != nil || img.Bounds().Dx() != 1440 {
		t.Errorf("the picture is not of twice 720 pixels, %v", err)
	}
	one := filepath.Join(out, "cut.svg")
	if code, _, stderr := call(t, "plot", dir, "--out", one, "--what", "fleet", "--since", "3h", "--until", "9h",
		"--width", "500", "--height", "300"); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	svg, err := os.ReadFile(one)
	if err != nil || !bytes.Contains(svg, []byte("recorded decisions of tiny.yaml under spotvortex, seed 5")) ||
		!bytes.Contains(svg, []byte("seen at the steps")) {
		t.Errorf("the picture does not say that it is of a recording, %v", err)
	}
}

// What cannot be drawn is refused with the flag at fault, and nothing is written.
func TestPlotRefuses(t *testing.T) {
	scenario, dir, out := file(t, "tiny.yaml", tiny), recordedRun(t, "static"), t.TempDir()
	plain := file(t, "plain.txt", "x")
	for _, x := range []struct {
		want string
		args []string
	}{
		{`no picture "hazard"`, []string{scenario, "--what", "hazard"}},
		{"--policies", []string{scenario, "--policies", "chance"}},
		{"--since", []string{scenario, "--since", "yesterday"}},
		{"--since", []string{scenario, "--since", "4000h"}},
		{"--until", []string{scenario, "--until", "2019-01-01"}},
		{"--since", []string{scenario, "--since", "5h", "--until", "4h"}},
		{"--format", []string{scenario, "--format", "jpeg"}},
		{"--format", []string{scenario, "--what", "fleet", "--format", "svg", "--out", filepath.Join(out, "x.png")}},
		{"--out", []string{scenario, "--out", filepath.Join(out, "x.png")}},
		{"--out", []string{scenario, "--what", "fleet", "--out", filepath.Join(out, "none", "x.png")}},
		{"--out", []string{scenario, "--out", plain}},
		{"x.xyz: .xyz is the ending of no picture", []string{scenario, "--out", filepath.Join(out, "x.xyz")}},
		{"pixels", []string{scenario, "--width", "3", "--out", out}},
		{"--seed", []string{dir, "--seed", "2"}},
		{"--policies", []string{dir, "--policies", "spot"}},
		{"no recording", []string{t.TempDir()}},
		{"none-such", []string{"none-such"}},
	} {
		args := append([]string{"plot"}, x.args...)
		if !slices.Contains(args, "--out") {
			args = append(args, "--out", filepath.Join(out, "sub"))
		}
		wrongCallIs(t, x.want, args...)
	}
	if got := folder(t, out); len(got) != 0 {
		t.Errorf("%v was written", got)
	}
}
