package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// prices is a recording of markets whose price moves each few hours for days,
// as CSV.
func prices(days, hours int, factor float64) string {
	var b strings.Builder
	b.WriteString("t,region,az,instance_type,spot,ondemand\n")
	for z := range 3 {
		for k, kind := range []string{"c5.large", "m5.large", "r5.large", "c5.xlarge", "m5.xlarge", "r5.xlarge", "c6i.large"} {
			for h := 0; h < 24*days; h += hours {
				wave := 40 + (h*7+z*3+k*11)%17 + (h/24+k)%5
				fmt.Fprintf(&b, "%d,us-east-1,us-east-1%c,%s,%.4f,0.2\n", 1614643200+h*3600+k*61+z*1009, 'a'+z, kind, float64(wave)*factor/1000)
			}
		}
	}
	return b.String()
}

func TestTraceCheck(t *testing.T) {
	a, dear := file(t, "a.csv", prices(20, 5, 1)), file(t, "dear.csv", prices(20, 5, 1.4))
	for _, c := range []struct {
		args []string
		code int
		out  []string
		err  string
	}{
		{[]string{"synthetic"}, cli.ExitOK, []string{"change-rate-p50", "synthetic (synthetic)", "implausible"}, ""},
		{[]string{a}, cli.ExitOK, []string{"a.csv (recorded): 21 markets"}, ""},
		{[]string{a, "--against", a}, cli.ExitOK, []string{"passed: all", "Tolerances"}, ""},
		{[]string{dear, "--against", a}, cli.ExitFailed, []string{"MISSED", "ratio-p50"}, "a check failed: missed: 3 of"},
		{[]string{dear, "--against", a, "--tolerance", "ratio=0.5"}, cli.ExitOK, []string{"passed"}, ""},
		{[]string{a, "--against", a, "--output", "markdown"}, cli.ExitOK, []string{"| `ratio-p50` |"}, ""},
		{[]string{a, "-o", "yaml"}, cli.ExitOK, []string{"findings: []"}, ""},
		{[]string{a, "--output", "json"}, cli.ExitOK, []string{`"change-rate-p50"`, `"findings": []`}, ""},
		{[]string{dear, "--against", a, "--output", "json"}, cli.ExitFailed, []string{`"passed": false`}, "ratio-p95"},
		{[]string{file(t, "cents.csv", strings.Replace(prices(3, 5, 1), ",0.0440,", ",44,", 1))}, cli.ExitFailed,
			[]string{"FAILURE  price-impossible: 1 of 21"}, "price-impossible"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			code, stdout, stderr := call(t, append([]string{"trace", "check"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.err) {
				t.Errorf("exit code %d instead of %d: %s", code, c.code, stderr)
			}
			for _, want := range c.out {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %q in\n%s", want, stdout)
				}
			}
			if len(c.args) > 2 && c.args[len(c.args)-1] == "json" && !json.Valid([]byte(stdout)) {
				t.Errorf("no JSON: %s", stdout)
			}
		})
	}
}

func TestTraceCheckWrongCalls(t *testing.T) {
	a := file(t, "a.csv", prices(3, 5, 1))
	for want, args := range map[string][]string{
		" is missing":           {},
		"nosuch":                {"nosuch"},
		"nosuch: no such file":  {a, "--against", "nosuch: no such file"},
		"there are change-rate": {a, "--against", a, "--tolerance", "ratios=1"},
		"is not NAME=VALUE":     {a, "--against", a, "--tolerance", "ratio"},
		"from 0 up":             {a, "--against", a, "--tolerance", "ratio=-1"},
		"without --against":     {a, "--tolerance", "ratio=1"},
		"give one of table, wide, json, yaml, markdown": {a, "--output", "xml"},
		"use svg or png":                    {a, "--plot", t.TempDir(), "--pictures", "gif"},
		"format not understood":             {file(t, "prose.txt", "Dear all,\n")},
		"a.csv is a file, and not a folder": {a, "--plot", filepath.Join(a, "below")},
		"the folder holds no .parqu":        {t.TempDir()},
	} {
		wrongCallIs(t, want, append([]string{"trace", "check"}, args...)...)
	}
}

// Pictures of all that both traces have are drawn, and a folder of recordings
// is one trace.
func TestTraceCheckPlots(t *testing.T) {
	folder := t.TempDir()
	samples := strings.TrimSuffix(strings.Repeat("1,1,1,1,0,0,1,0,", 300), ",")
	for _, zone := range []string{"us-east-1a", "us-east-1b"} {
		text := `{"metadata":{"gap_seconds":600},"data":[` + samples + `]}`
		if err := os.WriteFile(filepath.Join(folder, zone+"_v100_1.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	availability := filepath.Join(t.TempDir(), "aws-02-15-2023")
	if err := os.Rename(folder, availability); err != nil {
		t.Fatal(err)
	}
	a, out := file(t, "a.csv", prices(20, 5, 1)), filepath.Join(t.TempDir(), "new", "folder")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{a, "--plot", out}, "gaps.svg prices.svg ratio.svg steps.svg"},
		{[]string{a, "--against", a, "--plot", out, "--dark"}, "gaps.svg prices-a.svg prices-b.svg ratio.svg steps.svg"},
		{[]string{availability, "--plot", out, "--pictures", "png"}, "availability.png down.png hazard.png up.png"},
		{[]string{availability, "--against", availability, "--plot", out}, "availability-a.svg availability-b.svg down.svg hazard.svg up.svg"},
	} {
		if code, _, stderr := call(t, append([]string{"trace", "check"}, c.args...)...); code != cli.ExitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: %s", c.args, got)
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
}
