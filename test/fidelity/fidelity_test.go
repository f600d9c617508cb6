package fidelity

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/test/testenv"
)

// The environment variables of real runs.
const (
	wanted     = "SPOTTER_FIDELITY"      // real runs are played only where it is set
	daysWanted = "SPOTTER_FIDELITY_DAYS" // names of days and cases; none means all days
	runs       = "SPOTTER_FIDELITY_N"    // how many of each, run in parallel
	keptIn     = "SPOTTER_FIDELITY_KEEP" // a folder for the records of real runs
)

// TestRecorded holds the simulator against the real runs that are kept.
func TestRecorded(t *testing.T) {
	bars := readBars(t)
	for _, name := range slices.Concat(days, cases) {
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			real := recorded(t, s)
			if len(real) == 0 {
				t.Skipf("no real run of %s is kept in testdata: make fidelity plays them", name)
			}
			x := compare(t, s, real)
			t.Logf("\n%s\n%s", x.course(), x.table(bars))
			bars.hold(t, x)
		})
	}
}

// TestReal plays scripted days on the real control plane and holds the simulator against
// them.
func TestReal(t *testing.T) {
	if os.Getenv(wanted) == "" {
		t.Skipf("scripted days take minutes: `make fidelity` plays them, by %s=1", wanted)
	}
	bars := readBars(t)
	for _, name := range chosen(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each run has a cluster of its own, and waits most of the time
			s := load(t, name)
			all := make([]*record, count(t))
			seed := testenv.Seed(t) % 1_000_000
			t.Run("runs", func(t *testing.T) {
				for i := range all {
					t.Run(strconv.Itoa(i+1), func(t *testing.T) {
						t.Parallel()
						all[i] = play(t, s, seed+uint64(i))
						if folder := os.Getenv(keptIn); folder != "" && all[i].Lag <= lagMax {
							if err := keep(folder, s, all[i]); err != nil {
								t.Error(err)
							}
						}
					})
				}
			})
			if t.Failed() {
				return
			}
			for i, r := range all {
				t.Logf("run %d, seed %d: the cluster was up to %d ms late", i+1, r.Seed, r.Lag)
			}
			all = slices.DeleteFunc(all, func(r *record) bool { return r.Lag > lagMax })
			if len(all) == 0 {
				t.Skipf("the machine was too busy: no run was less than %d ms late", lagMax)
			}
			x := compare(t, s, all)
			t.Logf("\n%s\n%s", x.course(), x.table(bars))
			bars.hold(t, x)
		})
	}
}

// chosen returns the days to play.
func chosen(t *testing.T) []string {
	t.Helper()
	text := os.Getenv(daysWanted)
	if text == "" {
		return days
	}
	var all []string
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		all = append(all, name)
	}
	return all
}

// count returns how many runs of each day are played.
func count(t *testing.T) int {
	t.Helper()
	text := os.Getenv(runs)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number above 0", runs, text)
	}
	return n
}

// TestSimulatedAlone: the records of one simulated run are those of another with equal
// draws, all pods run in the end, and what is drawn makes a difference.
func TestSimulatedAlone(t *testing.T) {
	for _, name := range slices.Concat(days, cases) {
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			a, b := s.simulate(t, 1, 1), s.simulate(t, 1, 1)
			if len(a.Nodes) == 0 || len(a.Pods) == 0 || len(a.Nodes) != len(b.Nodes) || a.placement() != b.placement() {
				t.Errorf("two runs with equal draws: %d and %d nodes\n%s\n%s", len(a.Nodes), len(b.Nodes), a.placement(), b.placement())
			}
			begin := time.Now()
			if c := s.simulate(t, 1, 2); slices.Equal(c.timesToReady(), a.timesToReady()) {
				t.Error("all pods are as soon ready with other draws")
			}
			t.Logf("a simulated run takes %v", time.Since(begin))
		})
	}
}

// TestLowestPrice: the first pods of the day may run anywhere, and so their nodes are
// launched where their type is cheapest, as the kwok provider does.
func TestLowestPrice(t *testing.T) {
	s := load(t, "reclaims")
	seen := 0
	for _, n := range s.simulate(t, 1, 1).Nodes {
		typ, rest, _ := strings.Cut(n.Market, "/")
		if n.From > 15_000 {
			continue
		}
		seen++
		for _, zone := range s.bound.Zones {
			if m, sold := s.market(typ, zone, "spot"); sold && s.priceAt(s.marketName(m), n.From) < s.priceAt(n.Market, n.From) {
				t.Errorf("a node was launched in %s for %v, and %s is cheaper", rest, s.priceAt(n.Market, n.From), s.marketName(m))
			}
		}
	}
	if seen == 0 {
		t.Error("no node was launched within 15 s")
	}
}

// TestTies: on demand a type costs the same in all zones, and nodes come up in any.
func TestTies(t *testing.T) {
	s := load(t, "growth")
	zones := map[string]int{}
	for draw := range uint64(draws) {
		zones[strings.Split(s.simulate(t, 1, draw).Nodes[0].Market, "/")[1]]++
	}
	for _, zone := range s.bound.Zones {
		if zones[zone] == 0 {
			t.Errorf("in %d draws the first node is never in %s: %v", draws, zone, zones)
		}
	}
}
