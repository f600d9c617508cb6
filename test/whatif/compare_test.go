package whatif

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A recording is what a run left: what a capture of its first stack was answered, and what
// each stack came to from one instant to another.
type recording struct {
	From, To time.Time
	Match    string // of the series of the first stack
	Tape     *tape
	Real     map[string]figures // by variant
}

// How far what is simulated may be off: the node-hours of the first stack, in the mean of all
// seeds, in parts of what they were (5.0% were measured); of each change, a part of what the bill changed by, or a part of the bill.
const (
	hoursBar  = 0.06
	changeBar = 0.20
	billBar   = 0.02
)

// together is how many pods leave with one node. As evictions come in groups, the
// uncertainty of their number n is twice the root of together times n.
const together = 3

// seeds is how often each change is simulated. One pair of real stacks is one draw of many
// possible ones: Karpenter draws among equal types, zones and nodes. A pair that behaves as
// simulated is outside the range of the simulated ones with a probability of one in
// sixteen.
const seeds = 30

// A prediction is what whatif says.
type prediction struct {
	AsIs     row   `json:"as_is"`
	Variants []row `json:"variants"`
}

type row struct {
	Cost      mean `json:"cost_usd_per_month"`
	ChangePct mean `json:"change_pct"`
	Evictions mean `json:"evictions_per_pod_day"`
	Nodes     mean `json:"nodes"`
}

type mean struct {
	Mean, Median, Min, Max float64
}

// month is that of figures by month, in hours.
const month = 730

// hold captures the first stack from the tape and holds what whatif says of the variants
// against what they did.
func (x *recording) hold(t *testing.T) {
	t.Helper()
	dir, program := t.TempDir(), program(t)
	server := x.Tape.play(t)
	kubeconfig(t, filepath.Join(dir, "kubeconfig"), server)
	file := filepath.Join(dir, "captured.yaml")
	said := x.capture(t, program, dir, file, server.URL)
	t.Logf("%s", said)
	args := []string{"whatif", file, "--format", "json", "--seeds", strconv.Itoa(seeds)}
	for _, v := range variants[1:] {
		args = append(args, "--set", v.set)
	}
	var p prediction
	if err := json.Unmarshal(run(t, program, args...), &p); err != nil {
		t.Fatal(err)
	}
	x.asItWas(t, said, &p)
	x.judge(t, &p)
}

// capture captures the first stack as it is served, and returns what it says.
func (x *recording) capture(t *testing.T, program, dir, file, server string) string {
	t.Helper()
	return string(run(t, program, "capture", "--out", file, "--force", "--kubeconfig", filepath.Join(dir, "kubeconfig"),
		"--from", x.From.UTC().Format(time.RFC3339), "--to", x.To.UTC().Format(time.RFC3339), "--prometheus", server+"/prometheus", "--selector", x.Match))
}

// asItWas holds the simulation as-is against what a capture says that happened. The few
// seeds of a capture may be some percent off in node-hours: those of the prediction are taken.
func (x *recording) asItWas(t *testing.T, said string, p *prediction) {
	t.Helper()
	simulated := func(name string) (is, was float64) {
		m := regexp.MustCompile(`(?m)^  ` + name + ` +([0-9.]+) +([0-9.]+)`).FindStringSubmatch(said)
		if m == nil {
			t.Fatalf("no line has the %s:\n%s", name, said)
		}
		is, _ = strconv.ParseFloat(m[1], 64)
		was, _ = strconv.ParseFloat(m[2], 64)
		return is, was
	}
	check := func(name string, is, was, most float64) {
		if math.Abs(is-was) > most {
			t.Errorf("%s are simulated to be %.1f and were %v, want them within %.1f", name, is, was, most)
		}
	}
	_, hours := simulated("node-hours")
	check("node-hours", p.AsIs.Nodes.Mean*x.To.Sub(x.From).Hours(), hours, hoursBar*hours)
	is, was := simulated("pods evicted")
	check("pods evicted", is, was, 2*math.Sqrt(together*was))
}

// judge holds what is said of the changes against what happened.
func (x *recording) judge(t *testing.T, p *prediction) {
	t.Helper()
	if len(p.Variants) != len(variants)-1 {
		t.Fatalf("%d variants were predicted, want %d", len(p.Variants), len(variants)-1)
	}
	base := x.Real[variants[0].name]
	span := x.To.Sub(x.From).Hours()
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s %18s %38s %33s\n", "", "node-hours", "bill", "evictions/pod-day")
	fmt.Fprintf(&b, "%-9s %8.1f for %6.1f     %7.3f for %7.3f    %.2f for %d in all\n", variants[0].name,
		p.AsIs.Nodes.Mean*span, base.NodeHours, p.AsIs.Cost.Mean/month*span, base.Dollars, p.AsIs.Evictions.Mean, base.Evictions)
	for i, v := range variants[1:] {
		was := x.Real[v.name]
		change := p.Variants[i].ChangePct
		did := 100 * (was.Dollars/base.Dollars - 1)
		fmt.Fprintf(&b, "%-9s %8.1f for %6.1f     %+6.2f %% (%+.1f to %+.1f) for %+6.2f %%    %.2f for %d in all\n", v.name,
			p.Variants[i].Nodes.Mean*span, was.NodeHours,
			change.Median, change.Min, change.Max, did, p.Variants[i].Evictions.Mean, was.Evictions)
		if change.Median*did <= 0 {
			t.Errorf("%s: the bill is said to change by %+.2f %% and changed by %+.2f %%: the sign is wrong", v.name, change.Median, did)
		}
		bar := max(changeBar*math.Abs(did), 100*billBar)
		if did < change.Min-bar || did > change.Max+bar {
			t.Errorf("%s: the bill is said to change by %+.2f %% (%+.2f to %+.2f) and changed by %+.2f %%", v.name,
				change.Median, change.Min, change.Max, did)
		}
	}
	t.Logf("\n%s", b.String())
}

// run runs the program and returns what it printed.
func run(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("spotter %s: %v\n%s", strings.Join(args, " "), err, problems.String())
	}
	return out
}

// program returns the program, built if SPOTTER does not name it.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SPOTTER"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "spotter")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/spotter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestRecorded holds what whatif says against the run that is kept.
func TestRecorded(t *testing.T) {
	var x recording
	read(t, filepath.Join("testdata", "run.json.gz"), &x)
	x.hold(t)
}
