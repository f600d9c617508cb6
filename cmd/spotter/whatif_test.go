package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios"
)

// aDay is a small cluster that buys on demand only, for a day.
func aDay(t *testing.T) string {
	t.Helper()
	text, err := scenarios.Source("tiny")
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "cluster.yaml", strings.NewReplacer("duration: 168h", "duration: 24h",
		"metadata: {name: general}", "metadata: {name: general, annotations: {spotter.dev/capacity-types: on-demand}}").Replace(string(text)))
}

// A whatIfReport is what the tests read of it.
type whatIfReport struct {
	Runs     int
	Sweep    string
	AsIs     whatIfVariant `json:"as_is"`
	Variants []whatIfVariant
	Gates    []struct {
		Policy string
		Pass   bool
	}
}

type whatIfVariant struct {
	Name, Policy, Words string
	Changes             []string
	Equal               bool
	Demand              bool                     `json:"other_demand"`
	Cost                struct{ Median float64 } `json:"cost_usd_per_month"`
	Nodes               struct{ Median float64 }
	Change              struct {
		Median   float64
		Interval *[2]float64
	} `json:"change_usd_per_month"`
}

// whatIfOf runs whatif and reads its JSON.
func whatIfOf(t *testing.T, args ...string) *whatIfReport {
	t.Helper()
	code, stdout, stderr := call(t, append([]string{"whatif", "-o", "json"}, args...)...)
	if code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	var r whatIfReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestWhatIf: each kind of change does what it says, in the order of the call.
func TestWhatIf(t *testing.T) {
	const pools = `
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general, annotations: {spotter.dev/capacity-types: on-demand}}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minVCPU: 8, maxVCPU: 8}
---
apiVersion: v1
kind: Namespace
metadata: {name: left-out}
`
	folder := t.TempDir()
	for name, text := range map[string]string{"pools.yaml": pools, "notes.txt": "kind: ["} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := whatIfOf(t, aDay(t), "--trace", "synthetic", "--start", "on-demand", "--seeds", "9", "--savings-plan", "50,25",
		"--nodepools", folder, "--prune", "--policy", "on-demand",
		"--set", "deployment/shop.spec.replicas=30", "--with", "--set", "deployment/shop.metadata.annotations[spotter.dev/startup-time]=null",
		"--karpenter-version", "1.12", "--set", "capacitypool/general.spec.disruption.budget=10%")
	for i, want := range []struct{ name, policy string }{
		{"savings plan 50%", "as-is"}, {"savings plan 25%", "as-is"}, {"nodepools " + folder, "as-is"}, {"on-demand", "on-demand"},
		{"deployment/shop replicas=30 with deployment/shop spotter.dev/startup-time=null", "as-is"}, {"Karpenter 1.12",
			"as-is"}, {"capacitypool/general budget=10%", "as-is"},
	} {
		if i >= len(r.Variants) || r.Variants[i].Name != want.name || r.Variants[i].Policy != want.policy {
			t.Fatalf("variant %d of %+v is not %v", i, r.Variants, want)
		}
	}
	if r.Runs != 8*9 {
		t.Errorf("%d runs, want 72", r.Runs)
	}
	half, quarter := &r.Variants[0], &r.Variants[1]
	if saved := -half.Change.Median / r.AsIs.Cost.Median; saved < 0.140 || saved > 0.146 { // half of it at 29% off, all of it used
		t.Errorf("half of the bill under a plan saves %v of it", saved)
	}
	if ratio := half.Change.Median / quarter.Change.Median; ratio < 1.98 || ratio > 2.02 {
		t.Errorf("half saves %v times what a quarter saves", ratio)
	}
	if half.Change.Interval == nil || !strings.Contains(half.Words, "saves $") {
		t.Errorf("no interval: %+v", half)
	}
	if v := &r.Variants[2]; v.Equal || v.Nodes.Median >= r.AsIs.Nodes.Median {
		t.Errorf("other pools: %+v", v)
	}
	if v := &r.Variants[4]; v.Change.Median <= 0 || !v.Demand {
		t.Errorf("thirty shops cost %+v", v)
	}
	if v := &r.Variants[6]; !v.Equal || len(v.Changes) != 1 {
		t.Errorf("what is so already: %+v", v)
	}
}

// TestWhatIfNodePools: the user's own NodePools are changed as CapacityPools are, by settings, by
// files in their place, and by a sweep whose winner is not what chance explains.
func TestWhatIfNodePools(t *testing.T) {
	text, err := scenarios.Source("nodepools")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	documents := strings.Split(strings.ReplaceAll(string(text), `cpu: "32"`, `cpu: "8"`), "\n---\n")
	if err := os.WriteFile(filepath.Join(folder, "steady.yaml"), []byte(documents[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	const general = "nodepool/general.spec.disruption."
	r := whatIfOf(t, "nodepools", "--trace", "synthetic", "--start", "on-demand", "--seeds", "2", "--set",
		general+"consolidateAfter=Never", "--set", general+"consolidationPolicy=Balanced",
		"--set", general+`budgets[0].nodes="0"`, "--nodepools", folder, "--allow-spot")
	for i, x := range []struct {
		name  string
		means func(*whatIfVariant) bool
	}{
		{"nodepool/general consolidateAfter=Never", func(v *whatIfVariant) bool { return v.Change.Median > 100 }},
		{"nodepool/general consolidationPolicy=Balanced", func(v *whatIfVariant) bool { return !v.Equal }},
		{`nodepool/general 0 nodes="0"`, func(v *whatIfVariant) bool { return v.Change.Median > 0 }},
		{"nodepools " + folder, func(v *whatIfVariant) bool { return v.Change.Median < 0 }}, // less of it is on demand
		{"Spot allowed", func(v *whatIfVariant) bool { return v.Change.Median < -100 }},
	} {
		if v := &r.Variants[i]; v.Name != x.name || !x.means(v) {
			t.Errorf("variant %d, %s, against %+v: %+v", i, x.name, r.AsIs, v)
		}
	}
}

// TestWhatIfGate: a gate fails the call by the names of the variants that break it, and on-demand
// is run for what it measures.
func TestWhatIfGate(t *testing.T) {
	day, md := aDay(t), filepath.Join(t.TempDir(), "a.md")
	args := []string{"whatif", "nodepools", "--trace", "synthetic", "--start", "on-demand", "--seeds", "2",
		"--allow-spot", "--set", "nodepool/general.spec.disruption.consolidateAfter=30m", "--gate", "net_savings_pct.median >= 50", "--out", md}
	code, stdout, stderr := call(t, args...)
	if code != cli.ExitFailed || !strings.HasSuffix(stderr, "1 of 2 failed\n") ||
		strings.Count(stdout, "✗ nodepool/general consolidateAfter=30m: net_savings_pct.median >= 50, is ") != 1 ||
		strings.Contains(stdout, "✓ Spot allowed: net_savings_pct") || !strings.Contains(stdout, "· 8 runs") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(md); err != nil || !bytes.HasPrefix(text, []byte("### ✗ Spotter: ")) ||
		!bytes.Contains(text, []byte("1 of 2 gates failed")) {
		t.Errorf("the comment: %v\n%s", err, text)
	}
	if r := whatIfOf(t, day, "--seeds", "2", "--allow-spot", "--gate", "outage_delta.max <= 1000"); len(r.Gates) != 1 ||
		!r.Gates[0].Pass || r.Gates[0].Policy != "Spot allowed" {
		t.Errorf("gates: %+v", r.Gates)
	}
	// What is paid in advance is no saving: a plan for all of the bill saves what it takes off.
	r := whatIfOf(t, day, "--seeds", "1", "--savings-plan", "100", "--gate", "net_savings_delta_pct.mean <= 29.5",
		"--gate", "net_savings_delta_pct.mean >= 25")
	if len(r.Gates) != 2 || len(r.Variants) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestWhatIfSweep: values become variants, a table with a plot, and a picture.
func TestWhatIfSweep(t *testing.T) {
	dir := t.TempDir()
	svg, md := filepath.Join(dir, "a.svg"), filepath.Join(dir, "a.md")
	code, stdout, stderr := call(t, "whatif", aDay(t), "--seeds", "2", "--allow-spot", "--with", "--sweep",
		"capacitypool/general.spec.disruption.consolidateAfter=1m..1h@3", "--details", "--out", svg, "--out", md)
	if code != cli.ExitOK || !strings.Contains(stdout, "$ saved a month") ||
		!strings.Contains(strings.Join(strings.Fields(stdout), " "), "· 8 runs") || !strings.Contains(stdout, "2  7m30s ") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(svg); err != nil || !bytes.HasPrefix(text, []byte("<svg")) ||
		!bytes.Contains(text, []byte("evictions per pod-day")) {
		t.Errorf("the picture: %v, %.100s", err, text)
	}
	if text, err := os.ReadFile(md); err != nil || !bytes.Contains(text, []byte("### ")) {
		t.Errorf("the comment: %v, %.100s", err, text)
	}
}

// TestWhatIfCalls refuses what cannot be meant before anything is run.
func TestWhatIfCalls(t *testing.T) {
	day := aDay(t)
	folder := t.TempDir()
	broken := file(t, "broken.yaml", "a: [")
	unknown := file(t, "unknown.yaml", "{apiVersion: spotter.dev/v1alpha1, kind: CapacityPool, metadata: {name: new}, spec: {backnd: {}}}")
	for _, c := range []struct{ want, args string }{
		{"nothing is changed", ""},
		{`"on-demand:regret.max <= 1" is of "on-demand", and a gate holds for every variant`, "--allow-spot --gate on-demand:regret.max<=1"},
		{"there is no metric", "--allow-spot --gate nothing.max<=1"},
		{`no capacitypool "genral": there is general; did you mean "general"?`, "--set capacitypool/genral.spec.mode=off"},
		{`no kind "capacitypol"`, "--set capacitypol/general.spec.mode=off"},
		{`capacitypool/general: field "spec.disruption.budgt": unknown key; did you mean "budget"?`,
			"--set capacitypool/general.spec.disruption.budgt=1"},
		{`capacitypool/general: field "spec.mode": `, "--set capacitypool/general.spec.mode=x"},
		{"it changes the weather itself", "--set scenario/tiny.spec.market.intensity=2"},
		{"it changes the weather itself", "--set scenario/tiny.spec.duration=48h"},
		{`"5m" is not a range`, "--sweep capacitypool/general.spec.disruption.consolidateAfter=5m"},
		{"a picture is drawn of a sweep", "--allow-spot --out a.svg"},
		{"is not that of a format", "--allow-spot --out a.pdf"},
		{"--out: " + folder, "--allow-spot --out " + filepath.Join(folder, "nowhere", "a.md")},
		{"no such file or directory", "--nodepools " + filepath.Join(folder, "nowhere")},
		{"there is no NodePool", "--nodepools " + folder},
		{"--as-is-nodepools: " + folder + ": there is no NodePool", "--allow-spot --as-is-nodepools " + folder},
		{broken + ": line 1", "--nodepools " + broken},
		{`capacitypool/new: field "spec.backnd": unknown key; did you mean "backend"?`, "--nodepools " + unknown},
		{`"1.99" is not a version of Karpenter`, "--karpenter-version 1.12,1.99"},
		{`"101" is not a percentage`, "--savings-plan 101"},
		{`"no" is not a percentage`, "--savings-plan no"},
		{"buys too little on demand", "--savings-plan 0.1"},
		{"--karpenter-version: it has several values in addition to those of --sweep",
			"--karpenter-version 1.12,1.13 --with --sweep capacitypool/general.spec.disruption.consolidateAfter=1m..5m"},
		{"--discount-1y: 1 is not a share", "--savings-plan 50 --discount-1y 1"},
		{"portfolo", "--policy portfolo"},
		{"every pool may buy Spot already", "--allow-spot --with --allow-spot"},
		{"is given twice", "--allow-spot --allow-spot"},
		{"--seeds: ", "--allow-spot --seeds none"},
		{"--windows: ", "--allow-spot --windows none"},
	} {
		wrongCallIs(t, c.want, append([]string{"whatif", day}, strings.Fields(c.args)...)...)
	}
	wrongCallIs(t, "SCENARIO is missing", "whatif", "--allow-spot")
	wrongCallIs(t, "is neither a file nor embedded", "whatif", "nowhere", "--allow-spot")
}

// TestWhatIfStopped: a comparison that was stopped before its first run ends with 3 and prints no
// result.
func TestWhatIfStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs bytes.Buffer
	if code := spotter.Run(ctx, []string{"whatif", aDay(t), "--allow-spot"}, &out, &errs); code != cli.ExitError || out.Len() > 0 {
		t.Errorf("exit %d\n%s%s", code, &out, &errs)
	}
}

// TestWhatIfOverridden: replicas that a schedule sets again are called so, and others are not.
func TestWhatIfOverridden(t *testing.T) {
	scheduled := strings.Replace(tiny, "{name: web, namespace: default}",
		`{name: web, namespace: default, annotations: {spotter.dev/replica-schedule: "00:00=2 08:00=5"}}`, 1)
	for text, overridden := range map[string]bool{tiny: false, scheduled: true} {
		args := []string{"whatif", file(t, "tiny.yaml", text), "--seeds", "1", "--windows", "1", "--set", "deployment/web.spec.replicas=9"}
		code, _, stderr := call(t, args...)
		said := strings.Contains(stderr, "its annotation spotter.dev/replica-schedule sets the replicas of Deployment default/web")
		if code != cli.ExitOK || said != overridden {
			t.Errorf("exit code %d, said %v, want %v\n%s", code, said, overridden, stderr)
		}
	}
}
