package try

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/sim"
)

// alone keeps AWS and Azure from being asked.
func alone(t testing.TB) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		"HOME": t.TempDir(), "SPOTTER_AZURE_PRICES_URL": "http://127.0.0.1:1/api/retail/prices",
	} {
		t.Setenv(name, value)
	}
}

// tried runs try on objects as on a cluster, and returns what it prints.
func tried(t testing.TB, l limits, s shelf) (stdout, stderr, dir string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	p := &cli.Program{Version: "test", Stdout: &out, Stderr: &log}
	dir = t.TempDir()
	x := &trial{p: p, f: &call{}, folder: folder{dir: dir}, began: time.Now(), patient: l}
	seen := &sight{context: "shop", server: "https://shop.test"}
	if err = seen.take(t.Context(), s.reader(t.Context())); err != nil {
		return "", "", dir, err
	}
	return printed(t, x, &out, &log, func() (*staged, error) { return x.scenario(t.Context(), seen) })
}

// printed tries what source returns, and prints it.
func printed(t testing.TB, x *trial, out, log *bytes.Buffer, source func() (*staged, error)) (stdout, stderr, dir string, err error) {
	t.Helper()
	s, err := source()
	if err != nil {
		return "", log.String(), x.folder.dir, err
	}
	r, err := x.on(t.Context(), s)
	if err != nil {
		return "", log.String(), x.folder.dir, err
	}
	err = r.answer().Write(out, format.Options{Details: x.f.form.Details()})
	return out.String(), log.String(), x.folder.dir, err
}

// shop is a cluster of 30 nodes of a NodePool that allows no Spot.
func shop() shelf { return shelf{objects: clusterOf(30, 5, 4)} }

// few has a trial take seconds.
func few() limits {
	l := defaultLimits()
	l.seedsMax = 2
	return l
}

// TestTry tries a cluster that pays on demand for nodes that could be Spot: what it costs,
// what it would cost, that prices are not its own, and one step that leads there.
func TestTry(t *testing.T) {
	alone(t)
	out, log, dir, err := tried(t, few(), shop())
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	const month = 30 * (0.384*eval.MonthHours + 24*0.08) // the list price of m5.2xlarge, and its volumes of gp3
	for _, want := range []string{
		"You pay about " + figures.Dollars(month) + " a month for 30 nodes, all on demand.\n", "Simulated on synthetic Spot prices",
		" of when Spot nodes are taken", "no AWS credentials were found", "\nNext: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	for _, title := range []string{"what you pay today", "your own NodePools, consolidated (as-is)", "on demand only",
		"Spot allowed (karpenter)", "Spotter (portfolio)"} {
		if !strings.Contains(out, "\n"+title) {
			t.Errorf("there is no row %s:\n%s", title, out)
		}
	}
	if n := strings.Count(out, "\n"); n > 27 {
		t.Errorf("%d lines:\n%s", n, out)
	}
	if !strings.Contains(log, "now: you pay about "+figures.Dollars(month)) {
		t.Errorf("the first figure is not said at once:\n%s", log)
	}
	for _, name := range []string{scenarioFile, pricesFile, reportFile, poolsFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := read(t, dir, scenarioFile); !strings.Contains(text, "# Assumed: Spot prices are synthetic") ||
		!strings.Contains(text, "trace: cluster.prices.parquet") {
		t.Errorf("the scenario does not say what was assumed, or not its prices:\n%.1500s", text)
	}
}

// TestRecorded: with credentials that may read them prices are those of the account, and
// nothing is said to be synthetic.
func TestRecorded(t *testing.T) {
	alone(t)
	now := time.Now().UTC().Truncate(time.Hour)
	server := httptest.NewServer(fake.New(fake.Draw(fake.Shape{
		Seed: 1, Regions: []string{"us-east-1"}, Zones: 3, Types: []string{"m5.2xlarge", "m6i.2xlarge", "m5a.2xlarge"},
		From: now.Add(-9 * day), Until: now.Add(time.Hour), PerDay: 3,
	}), fake.Faults{}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	out, log, _, err := tried(t, few(), shop())
	if err != nil || !strings.Contains(out, "Simulated on recorded Spot prices") || strings.Contains(out, "synthetic") {
		t.Errorf("%v\n%s%s", err, log, out)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNext chooses the one step by what it saves.
func TestNext(t *testing.T) {
	allows, forbids := nodePoolOf("default", "spot", "on-demand"), nodePoolOf("default", "on-demand")
	pools := &poolPlan{pools: []*v1alpha1.CapacityPool{{}}, backends: []string{"karpenter"}, regions: "us-east-1"}
	for name, x := range map[string]struct {
		own, karpenter, portfolio float64 // changes against what is paid
		outage                    int64   // of karpenter
		now                       float64 // what is paid
		pool                      *karpv1.NodePool
		plan                      *poolPlan
		installed                 bool
		do, command               string
	}{
		"nothing to gain": {karpenter: -1, portfolio: -2, pool: allows, plan: pools, do: "nothing to gain"},
		"Spot is forbidden": {karpenter: -60, portfolio: -61, pool: forbids, plan: pools,
			do: "allow Spot in NodePool default", command: "kubectl edit nodepool default"},
		"Spotter saves more": {karpenter: -50, portfolio: -60, pool: forbids, plan: pools,
			do: "to pay 60.0% less than today", command: "helm install spotter oci://"},
		"Spotter fails less": {karpenter: -60, portfolio: -60, outage: 5, pool: forbids, plan: pools,
			do: "to pay 60.0% less than today", command: "kubectl apply -f"},
		"Spotter is installed": {karpenter: -50, portfolio: -60, pool: forbids, plan: pools, installed: true,
			do: "touches no node", command: "spotter run --leader-elect=false --backends karpenter --region us-east-1"},
		"idle nodes": {own: -50, karpenter: -50, portfolio: -60, now: 200, pool: allows, plan: pools,
			do: "$100 a month in place of $200", command: "reason=Unconsolidatable"},
		"Spotter adds nothing": {own: -70, karpenter: -70, portfolio: -71, pool: allows, plan: pools, do: "nothing to gain"},
		"nothing to steer":     {karpenter: -50, portfolio: -60, pool: allows, plan: &poolPlan{}, do: "it cannot steer these nodes"},
	} {
		seen := &sight{Cluster: &capture.Cluster{Installed: x.installed}, options: capture.Options{NodePools: []karpv1.NodePool{*x.pool}}}
		r := &result{Now: cost{Month: x.now}, Policies: []row{{Policy: asIs, Month: 100, Change: x.own},
			{Policy: karpenter, Change: x.karpenter, Worst: worst{Minutes: x.outage}}, {Policy: portfolio, Change: x.portfolio}}}
		got := (&trial{folder: folder{dir: "spotter-try"}}).next(seen, r, x.plan)
		if !strings.Contains(got.Do, x.do) || !strings.Contains(strings.Join(got.Commands, "\n"), x.command) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestJSON: programs read the same.
func TestJSON(t *testing.T) {
	r := &result{Prices: "recorded", Now: cost{Nodes: 3, Month: 12}, Policies: []row{{Policy: asIs, Month: 12}}}
	var out bytes.Buffer
	p := &cli.Program{Stdout: &out}
	var form cli.Form
	form.Register(&cobra.Command{})
	if err := form.Set(cli.FormJSON); err != nil {
		t.Fatal(err)
	}
	if err := p.Print(&form, r, nil); err != nil || !strings.Contains(out.String(), `"usd_month": 12`) ||
		!strings.Contains(out.String(), `"worst_run"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestWords writes what a person reads.
func TestWords(t *testing.T) {
	once, often := worst{Incidents: 1, Minutes: 3, Longest: 180, Workload: "a/b"}, worst{Incidents: 2, Minutes: 4,
		Longest: 200, Workload: "a/b", cause: sim.CauseMove}
	for want, x := range map[string]worst{
		"never": {}, "once, 3m: a/b (Spot nodes taken)": once, "2 times, 4 min; longest 3m20s: a/b (nodes moved)": often,
	} {
		if got := x.sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	mixed := cost{Of: paidToday, Nodes: 3, Spot: 1, Month: 300, OnSpot: 50, OnDemand: 250}
	if got := mixed.sentence("synthetic"); got != "you pay about $300 a month for 3 nodes: $250 for 2 on demand, $50.00 for 1 on Spot (Spot at synthetic prices)" {
		t.Error(got)
	}
}

// BenchmarkLarge tries 5,000 nodes with 50,000 pods, and reports when the first figure is
// there and the most memory that the process had.
func BenchmarkLarge(b *testing.B) {
	alone(b)
	s := shelf{objects: clusterOf(5000, 200, 10)}
	for b.Loop() {
		out, log, _, err := tried(b, defaultLimits(), s)
		if err != nil {
			b.Fatalf("%v\n%s", err, log)
		}
		b.Logf("%s%s", log, out)
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(used.Maxrss)/1024, "MB")
	b.ReportMetric(time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds(), "cpu-s")
}
