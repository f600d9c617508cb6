package fidelity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/test/testenv"
)

// The environment variables of random days.
const (
	randomDays   = "SPOTTER_FIDELITY_RANDOM"    // how many days are played, from the seed of testenv.SeedVariable on
	randomOf     = "SPOTTER_FIDELITY_KARPENTER" // under which versions of Karpenter, such as 1.14
	randomCommit = "SPOTTER_FIDELITY_COMMIT"    // from which commit
)

// realRuns is how many real runs a random day has: their difference is the least that a
// simulated run can differ from one.
const realRuns = 2

// tries is how often a real run is played at most where the machine is too busy.
const tries = 3

// A drawnDay is a random day as it was played and simulated.
type drawnDay struct {
	Karpenter string `json:"karpenter"`
	Seed      uint64 `json:"seed"`

	// Commit is that from which the day was drawn, simulated and played, and Script the
	// digest of the day.
	Commit string `json:"commit"`
	Script string `json:"script"`

	// Again is the commit that simulated the day again after the simulator had changed; it is
	// empty where none did.
	Again string `json:"again,omitempty"`

	Figures []drawnFigure `json:"figures"`
	Runs    []*record     `json:"runs"`
}

// A drawnFigure is a figure of each real run and of each simulated one.
type drawnFigure struct {
	Name      string    `json:"name"`
	Real      []float64 `json:"real"`
	Simulated []float64 `json:"simulated"`
}

// The names of the figures of random days.
const (
	drawnBill      = "bill"
	drawnHours     = "node-hours"
	drawnEvictions = "evictions"
	drawnReady     = "time to ready"

	// drawnTrajectory is the integral of the difference between the numbers of nodes of two
	// runs over time, in node-hours: of both real runs, and of each simulated run and a real
	// one, in the mean.
	drawnTrajectory = "trajectory"
)

// TestRandom plays random days on the real control plane, twice each, and in the simulator.
func TestRandom(t *testing.T) {
	text := os.Getenv(randomDays)
	if text == "" {
		t.Skipf("random days take minutes: `make fidelity RANDOM=1` plays one, by %s=1", randomDays)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number above 0", randomDays, text)
	}
	versions := strings.Fields(os.Getenv(randomOf))
	if len(versions) == 0 {
		t.Fatalf("%s is empty, want versions of Karpenter, such as 1.14", randomOf)
	}
	first := testenv.Seed(t) % 1_000_000
	for _, text := range versions {
		version, err := scenarios.ParseKarpenterVersion(text)
		if err != nil {
			t.Fatalf("%s: %v", randomOf, err)
		}
		for seed := first; seed < first+uint64(n); seed++ {
			t.Run(fmt.Sprintf("%v-%d", version, seed), func(t *testing.T) {
				t.Parallel() // each day has a cluster of its own, and waits most of the time
				playAndKeep(t, seed, version)
			})
		}
	}
}

// playAndKeep plays a day and writes it to the folder of days, unless it is there.
func playAndKeep(t *testing.T, seed uint64, version scenarios.KarpenterVersion) {
	file := dayFile(os.Getenv(keptIn), version, seed)
	if _, err := os.Stat(file); err == nil {
		t.Skipf("%s is there: the day was played", file)
	}
	d := playDay(t, seed, version)
	if d == nil {
		return
	}
	t.Logf("\n%s", dayTable([]*drawnDay{d}))
	if file == "" {
		return
	}
	if err := d.write(file); err != nil {
		t.Error(err)
	}
}

// dayFile returns where a day is kept in a folder; empty where no folder is named.
func dayFile(folder string, version scenarios.KarpenterVersion, seed uint64) string {
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, version.String(), fmt.Sprintf("%d.json", seed))
}

// loadDrawn returns the script of a random day.
func loadDrawn(t testing.TB, seed uint64, version scenarios.KarpenterVersion) *script {
	t.Helper()
	text, err := drawDay(seed, version)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("random-%d", seed)
	return parse(t, name, name, text)
}

// playDay draws, simulates and plays a day. It returns nil where a run failed.
func playDay(t *testing.T, seed uint64, version scenarios.KarpenterVersion) *drawnDay {
	s := loadDrawn(t, seed, version)
	s.version = version.String()
	d := &drawnDay{Karpenter: version.String(), Seed: seed, Commit: os.Getenv(randomCommit), Script: s.digest}
	for i := 0; i < realRuns*tries && len(d.Runs) < realRuns; i++ {
		t.Run(fmt.Sprintf("run-%d", i+1), func(t *testing.T) {
			r := play(t, s, seed)
			if r.Lag > lagMax {
				t.Logf("the cluster was up to %d ms late: the run does not count", r.Lag)
				return
			}
			d.Runs = append(d.Runs, r)
		})
		if t.Failed() {
			return nil
		}
	}
	if len(d.Runs) < realRuns {
		t.Skipf("the machine was too busy: only %d of %d runs were less than %d ms late", len(d.Runs), realRuns*tries, lagMax)
	}
	d.simulate(t, s)
	return d
}

// simulate plays the day in the simulator and sets its figures.
func (d *drawnDay) simulate(t testing.TB, s *script) {
	t.Helper()
	all := s.simulateAll(t, d.Seed)
	if err := d.compare(s, all); err != nil {
		t.Fatal(err)
	}
	x := &result{script: s, real: d.Runs, simulated: slices.Repeat([][]*record{all}, len(d.Runs))}
	t.Log(x.course())
}

// simulateAll plays the script in the simulator, draws times.
func (s *script) simulateAll(t testing.TB, seed uint64) []*record {
	t.Helper()
	var all []*record
	for i := range uint64(draws) {
		all = append(all, s.simulate(t, seed, 1000*seed+i))
	}
	return all
}

// compare sets the figures of the day.
func (d *drawnDay) compare(s *script, simulated []*record) error {
	end := s.bound.Duration.Milliseconds()
	figures := []drawnFigure{{Name: drawnBill}, {Name: drawnHours}, {Name: drawnEvictions}, {Name: drawnReady}}
	add := func(r *record, into func(*drawnFigure) *[]float64) error {
		bill, err := s.bill(r)
		if err != nil {
			return err
		}
		for i, x := range []float64{float64(bill) / 1e6, r.nodeHours(end), float64(len(r.Evictions)), r.meanReady(end)} {
			list := into(&figures[i])
			*list = append(*list, rounded(x))
		}
		return nil
	}
	for _, r := range d.Runs {
		if err := add(r, func(f *drawnFigure) *[]float64 { return &f.Real }); err != nil {
			return err
		}
	}
	apart := drawnFigure{Name: drawnTrajectory}
	for i, r := range d.Runs {
		for _, other := range d.Runs[i+1:] {
			apart.Real = append(apart.Real, rounded(trajectory(r, other, end)))
		}
	}
	for _, r := range simulated {
		if err := add(r, func(f *drawnFigure) *[]float64 { return &f.Simulated }); err != nil {
			return err
		}
		sum := 0.0
		for _, real := range d.Runs {
			sum += trajectory(r, real, end)
		}
		apart.Simulated = append(apart.Simulated, rounded(sum/float64(len(d.Runs))))
	}
	figures = append(figures, apart)
	d.Figures = figures
	return nil
}

// rounded keeps six digits after the point: billionths of a node-hour say nothing.
func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// nodeHours returns for how many hours nodes are paid.
func (r *record) nodeHours(end int64) float64 {
	sum := int64(0)
	for i := range r.Nodes {
		until := end
		if u := r.Nodes[i].Until; u != 0 {
			until = u
		}
		sum += until - r.Nodes[i].From
	}
	return float64(sum) / 3.6e6
}

// meanReady returns how long pods wait to be ready in the mean, in seconds. A pod that waits
// at the end counts with its time until then, and one that ended before it was ready does not.
func (r *record) meanReady(end int64) float64 {
	sum, n := int64(0), 0
	for _, p := range r.Pods {
		switch {
		case p.Ready != 0:
			sum += p.Ready - p.Created
		case p.Gone == 0:
			sum += end - p.Created
		default:
			continue
		}
		n++
	}
	return float64(sum) / 1000 / float64(max(n, 1))
}

// trajectory returns the integral over time of the difference between the numbers of nodes
// of two runs, in node-hours.
func trajectory(a, b *record, end int64) float64 {
	type step struct {
		at, by int64
	}
	var steps []step
	for _, x := range []struct {
		of   *record
		sign int64
	}{{a, 1}, {b, -1}} {
		for _, n := range x.of.Nodes {
			steps = append(steps, step{n.From, x.sign})
			if n.Until != 0 {
				steps = append(steps, step{n.Until, -x.sign})
			}
		}
	}
	slices.SortFunc(steps, func(x, y step) int { return int(x.at - y.at) })
	sum, differ, last := int64(0), int64(0), int64(0)
	for _, x := range append(steps, step{at: end}) {
		sum += max(differ, -differ) * (x.at - last)
		differ, last = differ+x.by, x.at
	}
	return float64(sum) / 3.6e6
}

// write keeps the day in a file.
func (d *drawnDay) write(file string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if err := e.Encode(d); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	next := file + ".next" // a day is kept whole or not at all
	return errors.Join(os.WriteFile(next, b.Bytes(), 0o644), os.Rename(next, file))
}

// randomKept is where the published days are.
var randomKept = filepath.Join("testdata", "random")

// keptDays reads the days of a version that are kept, in the order of their seeds.
func keptDays(t testing.TB, version scenarios.KarpenterVersion) []*drawnDay {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(randomKept, version.String()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var all []*drawnDay
	for _, e := range entries {
		file := filepath.Join(randomKept, version.String(), e.Name())
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := &drawnDay{}
		if err := json.Unmarshal(text, d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if want := dayFile(randomKept, version, d.Seed); file != want || d.Karpenter != version.String() {
			t.Fatalf("%s is day %d of Karpenter %s, want it in %s", file, d.Seed, d.Karpenter, want)
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *drawnDay) int { return int(a.Seed) - int(b.Seed) })
	return all
}
