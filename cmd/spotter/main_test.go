package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
)

// spotter is the program under test.
var spotter = clitest.Program(commands)

// call runs the program, and wrongCallIs runs it with arguments that it must refuse.
var call, wrongCallIs = spotter.Call, spotter.WrongCallIs

var file, bundle, withONNX, without = clitest.File, clitest.Bundle, clitest.WithONNX, clitest.WithoutONNX

// A priceRow is a row of a trace.
type priceRow struct {
	Time     int64    `parquet:"time,timestamp(millisecond)"`
	Zone     string   `parquet:"zone,dict"`
	Type     string   `parquet:"instance_type,dict"`
	Product  string   `parquet:"product,dict"`
	Spot     *float64 `parquet:"spot_price,optional"`
	OnDemand *float64 `parquet:"on_demand_price,optional"`
}

var day = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// priced returns the price of m5.xlarge at hour hours after day.
func priced(hour int, spot float64) priceRow {
	onDemand := 0.192
	return priceRow{day.Add(time.Duration(hour) * time.Hour).UnixMilli(), "us-east-1a", "m5.xlarge", "Linux/UNIX", &spot, &onDemand}
}

// writeTrace writes rows of any columns as a trace of one day.
func writeTrace[R any](t *testing.T, rows []R) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "trace")
	folder := filepath.Join(dir, "provider=aws", "region=us-east-1", "date=2026-01-01")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(folder, "part-0.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewGenericWriter[R](f, parquet.KeyValueMetadata("spotter.schema", "1"))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// brokenTraces are inputs that cannot be replayed, and what must be said of
// each.
func brokenTraces(t *testing.T) map[string]struct{ path, want string } {
	t.Helper()
	type foreign struct {
		When  int64   `parquet:"when"`
		Price float64 `parquet:"price"`
	}
	type wrongType struct {
		Time  int64  `parquet:"time,timestamp(millisecond)"`
		Zone  string `parquet:"zone"`
		Type  string `parquet:"instance_type"`
		Price string `parquet:"spot_price"`
	}
	good := []priceRow{priced(0, 0.05), priced(1, 0.06)}
	truncated := writeTrace(t, good)
	inside := filepath.Join(truncated, "provider=aws", "region=us-east-1", "date=2026-01-01", "part-0.parquet")
	data, err := os.ReadFile(inside)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inside, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]struct{ path, want string }{
		"missing":         {filepath.Join(t.TempDir(), "none"), "no such file"},
		"empty folder":    {t.TempDir(), "no .parquet file"},
		"no rows":         {writeTrace(t, []priceRow{}), "empty trace"},
		"not parquet":     {file(t, "prices.csv", "t,az,instance_type,price\n"), "prices.csv"},
		"truncated":       {truncated, "part-0.parquet"},
		"wrong column":    {writeTrace(t, []foreign{{1, 2}}), "column time"},
		"wrong type":      {writeTrace(t, []wrongType{{1, "a", "b", "c"}}), "column spot_price"},
		"negative":        {writeTrace(t, []priceRow{priced(0, 0.05), priced(1, -0.05)}), "-0.05"},
		"not a number":    {writeTrace(t, []priceRow{priced(0, math.NaN())}), "NaN"},
		"clock goes back": {writeTrace(t, []priceRow{priced(0, 0.05), priced(5, 0.06), priced(3, 0.07)}), "clock going back"},
	}
}

// tiny is a scenario of four pods for a day on whatever holds them.
const tiny = `# A tiny scenario.
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: tiny}
spec:
  duration: 24h
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {families: [m5], maxVCPU: 8}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: web
          resources: {requests: {cpu: "1", memory: 2Gi}}
`

func TestWrongCalls(t *testing.T) {
	for _, c := range []struct{ want, args string }{
		{`unknown command "evaluate"`, "evaluate"},
		{"unknown flag: --speed; did you mean --seeds?", "eval --speed 3"},
		{`unknown command "import-all"`, "trace import-all"},
		{`unknown command "lst" for "spotter scenario"; did you mean list?`, "scenario lst"},
		{"--seeds", "eval --seeds 0"},
		{"--seeds", "eval --seeds 9-5"},
		{"--seeds", "eval --seeds many"},
		{"--seeds", "eval --seeds 1-18446744073709551615"},
		{"--windows", "eval --windows 0"},
		{"--format", "eval --format xml"},
		{"--gate", "eval --gate bill"},
		{"net_profit", "eval --gate net_profit_improvment_pct.median>=2"},
		{"--from", "eval --from yesterday"},
		{"--intensity", "eval --intensity -1"},
		{"--intensity", "eval --intensity NaN"},
		{"--intensity", "sim web-week --intensity Inf"},
		{"--karpenter-version", "eval --karpenter-version 1.2"},
		{"--discount-1y: 1.5", "eval --discount-1y 1.5 --seeds 1"},
		{"--discount-3y: NaN", "eval --discount-3y NaN --seeds 1"},
		{`unknown command "fsh"`, "completion fsh"},
		{"neither a file nor embedded", "eval no-such-world"},
		{"neither a file nor embedded", "sim no-such-world"},
		{"neither a file nor embedded", "scenario show no-such-world"},
		{"neither a file nor embedded", "scenario validate no-such-world"},
		{"unknown policy", "eval --policies chance"},
		{"on-demand", "eval --policies on-demnd"},
		{"unknown policy", "eval --baseline chance"},
		{"named twice", "eval --policies spot,spot"},
		{"unknown policy", "sim web-week --policy chance"},
		{"share", "sim web-week --policy static:share=2"},
		{"parameter", "sim web-week --policy static:colour=red"},
		{"no such file", "sim web-week --policy spotvortex:runtime=none.json"},
		{"SCENARIO is missing: spotter sim SCENARIO", "sim"},
		{`--seed: "-1" is not a whole number, 0 or more`, "sim web-week --seed -1"},
		{"--out is missing", "trace import prices.csv"},
		{"SRC… is missing", "trace import --out x"},
		{"--region", "catalog --region moon-1"},
		{"--format", "catalog --format xml"},
		{"no instance type fits", "catalog --families m999"},
		{`unexpected argument "now"`, "version now"}, {`unknown command "evl" for "spotter"; did you mean eval?`,
			"help evl"}, {`unknown command "lst"`, "help scenario lst"}, {`unknown command "lst"`, "scenario lst --families m5"}, {`unknown command "evl"`, "evl --seeds 3"}, {"NEW is missing", "eval compare a"}, {`unexpected argument "c"`, "eval compare a b c"},
		{"SCENARIO… is missing", "scenario validate"},
	} {
		t.Run(c.args, func(t *testing.T) { wrongCallIs(t, c.want, strings.Fields(c.args)...) })
	}
}

func TestBrokenTraces(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	for name, c := range brokenTraces(t) {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "report.json")
			wrongCallIs(t, c.want, "eval", scenario, "--trace", c.path, "--out", out, "--format", "json")
			wrongCallIs(t, c.want, "sim", scenario, "--trace", c.path, "--log", out)
			wrongCallIs(t, c.want, "trace", "info", c.path)
			wrongCallIs(t, c.want, "scenario", "validate", scenario, "--trace", c.path)
			empty(t, filepath.Dir(out))
		})
	}
}

// empty checks that nothing was left in a folder, temporary files included.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left behind", e.Name())
	}
}

func TestTraceTooShort(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	dir := writeTrace(t, []priceRow{priced(0, 0.05), priced(7, 0.06)})
	if code, _, stderr := call(t, "trace", "info", dir); code != cli.ExitOK {
		t.Fatalf("a short trace cannot be read: %s", stderr)
	}
	for _, args := range [][]string{
		{"eval", scenario, "--trace", dir, "--windows", "2"},
		{"eval", scenario, "--trace", dir, "--from", "2025-12-01"},
		{"sim", scenario, "--trace", dir, "--from", "2026-01-03"},
		{"eval", "web-week", "--trace", "synthetic", "--windows", "9"},
	} {
		wrongCallIs(t, "too short", args...)
	}
}

func TestBrokenScenarios(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":       {"  duration: 24h", "  duraton: 24h", "tiny.yaml:6"},
		"negative duration": {"duration: 24h", "duration: -24h", "duration"},
		"wrong type":        {"replicas: 4", "replicas: four", "tiny.yaml:19"},
		"unknown kind":      {"kind: Deployment", "kind: Deploymint", "Deploymint"},
		"not YAML":          {"spec:\n  duration", "spec:\n\t duration", "tiny.yaml"},
		"no market":         {"families: [m5]", "families: [z99]", ""},
		"no pool":           {"kind: CapacityPool", "kind: Nothing", "Nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(tiny, c.old, c.new, 1)
			if text == tiny {
				t.Fatalf("%q does not stand in the scenario", c.old)
			}
			path := file(t, "tiny.yaml", text)
			out := filepath.Join(t.TempDir(), "report.md")
			wrongCallIs(t, c.want, "eval", path, "--out", out)
			wrongCallIs(t, c.want, "sim", path)
			empty(t, filepath.Dir(out))
			if name != "no market" { // which only a trace can tell
				wrongCallIs(t, c.want, "scenario", "validate", path)
			}
		})
	}
	wrongCallIs(t, "no object", "scenario", "validate", file(t, "empty.yaml", ""))
}

func TestBrokenImports(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty file":     {"", "empty"},
		"unknown format": {"hello,world\n1,2\n", "understood"},
		"wrong column":   {"t,az,instance_type,cost\n1,us-east-1a,m5.large,0.1\n", "understood"},
		"not JSON":       {`{"SpotPriceHistory": [`, "history"},
		"no good row":    {"t,az,instance_type,price\n1614643200,us-east-1a,m5.large,-1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			wrongCallIs(t, c.want, "trace", "import", file(t, "history", c.text), "--out", filepath.Join(parent, "out"))
			empty(t, parent)
		})
	}
	parent := t.TempDir()
	wrongCallIs(t, "no such file", "trace", "import", filepath.Join(parent, "none.csv"), "--out", filepath.Join(parent, "out"))
	empty(t, parent)
	good := file(t, "good.csv", "t,az,instance_type,price\n1614643200,us-east-1a,m5.large,0.04\n")
	busy := t.TempDir()
	if err := os.WriteFile(filepath.Join(busy, "letter.txt"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, "letter.txt", "trace", "import", good, "--out", busy)
	below := filepath.Join(good, "out")
	wrongCallIs(t, below, "trace", "import", good, "--out", below)
	locked := filepath.Join("/proc", "spotter-trace") // where not even root writes
	wrongCallIs(t, locked, "trace", "import", good, "--out", locked)
	if entries, err := os.ReadDir(busy); err != nil || len(entries) != 1 {
		t.Errorf("the folder that was refused holds %v, %v", entries, err)
	}
}

func TestImport(t *testing.T) {
	csv := "t,az,instance_type,price\n" +
		"1614643200,us-east-1a,m5.large,0.04\n" +
		"1614646800,us-east-1a,m5.large,-0.04\n" +
		"1614650400,us-east-1a,m5.large,0.05\n"
	src, dir := file(t, "prices.csv", csv), filepath.Join(t.TempDir(), "prices")
	code, stdout, stderr := call(t, "trace", "import", src, "--out", dir)
	if code != cli.ExitOK || !strings.Contains(stdout, "1 could not be used") || !strings.Contains(stdout, "prices.csv:3") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, "trace", "info", dir)
	if code != cli.ExitOK || !strings.Contains(stdout, "us-east-1") || !strings.Contains(stdout, "recorded") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	wrongCallIs(t, "prices.csv:3", "trace", "import", src, "--out", dir, "--strict")
}

func TestListings(t *testing.T) {
	for want, args := range map[string][]string{
		"spotter unknown (go":         {"version"},
		"web-week":                    {"scenario", "list"},
		"kind: CapacityPool":          {"scenario", "show", "web-week"},
		"good, runs 24 h after 24":    {"scenario", "validate", file(t, "tiny.yaml", tiny)},
		"catalog fetcher of SkyPilot": {"trace", "info"},
		"0.192":                       {"catalog", "--region", "us-east-1", "--families", "m5"},
		`"instance_type": "m5.la`:     {"catalog", "--format", "json", "--families", "m5"},
		"m5.large,amd64,2,8,1.93,":    {"catalog", "--format", "csv", "--families", "m5"},
		"bash completion V2":          {"completion", "bash"},
		"Compare policies by net":     {"--help"},
		"[POLICY:]METRIC.STAT OP V":   {"eval", "--help"},
	} {
		if code, stdout, stderr := call(t, args...); code != cli.ExitOK || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("spotter %s: exit code %d, %q is missing in\n%s%s", cli.Shell(args), code, want, stdout, stderr)
		}
	}
}
