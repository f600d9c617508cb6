package sim

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// nodePools returns the embedded scenario of that name, changed: of each pair the first
// text is replaced by the second.
func nodePools(t *testing.T, changes ...string) *Prepared {
	t.Helper()
	data, err := os.ReadFile("../scenarios/library/nodepools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("there is no %q", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return mustPrepare(t, boundText(t, text))
}

// boundText binds the manifests in a text to the synthetic trace.
func boundText(t *testing.T, text string) *scenarios.BoundScenario {
	t.Helper()
	sc, err := scenarios.Parse("manifests.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A nodeEvent is what happened to a node.
type nodeEvent struct {
	at           time.Time
	kind, node   string
	market, zone string // of its launch
	bought       bool   // during the run
}

// ownEvents plays a run under every checker and returns what happened to its nodes.
func ownEvents(t *testing.T, p *Prepared, spec string) (events []nodeEvent, res *Result) {
	t.Helper()
	var log bytes.Buffer
	res = mustRun(t, Config{Prepared: p, Policy: mustPolicy(t, spec), Forecaster: mustForecaster(t), Seed: 1, Log: &log, Check: true})
	launched := map[string]nodeEvent{}
	for line := range strings.Lines(log.String()) {
		f := strings.Fields(line)
		if len(f) < 5 || f[1] != "launch" && f[1] != "draining" && f[1] != "deleted" {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05.000Z", f[0])
		if err != nil {
			t.Fatal(err)
		}
		e := nodeEvent{at: at, kind: f[1], node: f[2], market: f[3]}
		if e.kind == "launch" {
			e.zone, e.bought = strings.Split(f[3], "/")[2], f[4] != "0"
			launched[e.node] = e
		} else {
			e.market, e.zone, e.bought = launched[e.node].market, launched[e.node].zone, launched[e.node].bought
		}
		events = append(events, e)
	}
	return events, res
}

// bought counts events of a kind of the nodes of a pool that were bought during the run.
func bought(events []nodeEvent, kind, pool string) int {
	n := 0
	for _, e := range events {
		if e.kind == kind && e.bought && strings.HasPrefix(e.node, pool+"-") {
			n++
		}
	}
	return n
}

// TestNodePools plays NodePools with all that they state under policies that leave them
// alone and that steer them: a pool stays within its limits, of CPU and of nodes, and is
// disrupted when its budgets allow it.
func TestNodePools(t *testing.T) {
	p := nodePools(t)
	for _, spec := range []string{"as-is", "karpenter", "portfolio"} {
		events, res := ownEvents(t, p, spec)
		if len(res.Violations) > 0 {
			t.Errorf("%s: %q", spec, res.Violations)
		}
		cpu, nodes := int64(0), 0
		for _, e := range events {
			if !strings.HasPrefix(e.node, "steady-") || e.kind == "draining" {
				continue
			}
			d := 1
			if e.kind == "deleted" {
				d = -1
			}
			typ, _ := catalog.Lookup("aws", strings.Split(e.market, "/")[3])
			if cpu, nodes = cpu+int64(d)*typ.VCPU, nodes+d; e.bought && (cpu > 32 || nodes > 6) {
				t.Errorf("%s: at %v steady holds %d vCPU on %d nodes", spec, e.at, cpu, nodes)
			}
			if spec == "as-is" && e.kind == "launch" && strings.HasSuffix(e.market, "/spot") {
				t.Errorf("as-is bought %s for a NodePool of on-demand", e.market)
			}
		}
		if n := bought(events, "launch", "arm"); n == 0 {
			t.Errorf("%s: no node of arm was bought", spec)
		}
		for _, e := range events {
			if spec != "portfolio" && e.kind == "draining" && strings.HasPrefix(e.node, "arm-") && e.at.Hour() < 6 {
				t.Errorf("%s: %s is drained at %v, when a budget allows none", spec, e.node, e.at)
			}
		}
	}
}

// TestNodePoolOrder: the NodePool of the greatest weight is tried first, and among equal
// ones the last by name; one that minValues or a limit of nodes keeps from launching is
// passed over.
func TestNodePoolOrder(t *testing.T) {
	const weight, values, most = "weight: 50\n  limits: {cpu: \"32\", memory: 256Gi, nodes: \"6\"}", "minValues: 4", `nodes: "6"`
	for name, c := range map[string]struct {
		changes         []string
		steady, general bool // whether nodes are bought for them
	}{
		"weight 50 before none":                  {nil, true, true},
		"weight 50 before none, without a limit": {[]string{weight, "weight: 50"}, true, true},
		"steady after general": {[]string{weight, "weight: 1", "name: general}\nspec:\n",
			"name: general}\nspec:\n  weight: 2\n"}, false, true},
		"the last by name":           {[]string{weight, "limits: {cpu: \"32\"}"}, true, true},
		"no type is flexible enough": {[]string{values, "minValues: 11"}, true, false},
		"one node":                   {[]string{most, `nodes: "0"`}, false, true},
	} {
		events, _ := ownEvents(t, nodePools(t, c.changes...), "as-is")
		if steady, general := bought(events, "launch", "steady"), bought(events, "launch",
			"general"); steady > 0 != c.steady || general > 0 != c.general {
			t.Errorf("%s: %d nodes of steady and %d of general are bought", name, steady, general)
		}
	}
	few, res := ownEvents(t, nodePools(t, most, `nodes: "2"`), "as-is")
	if res.Availability < 0.99 {
		t.Errorf("pods wait for a NodePool that has as many nodes as it may: availability %v", res.Availability)
	}
	held := 0
	for _, e := range few {
		if strings.HasPrefix(e.node, "steady-") && e.kind != "draining" {
			held += map[string]int{"launch": 1, "deleted": -1}[e.kind]
			if e.kind == "launch" && e.bought && held > 2 {
				t.Errorf("at %v there are %d nodes of steady, which may have 2", e.at, held)
			}
		}
	}
}

// TestZonalShift: while a shift leads away from a zone Karpenter buys nothing there and
// takes no node down, whoever asks; before and after it does.
func TestZonalShift(t *testing.T) {
	const fault = "{kind: zonal-shift, at: 30h, duration: 6h, zoneNumber: 2}"
	for _, spec := range []string{"as-is", "karpenter", "portfolio"} {
		for _, at := range []string{"6h", "17h"} {
			touched := map[string]int{}
			for name, p := range map[string]*Prepared{
				"shifted": nodePools(t, fault, "{kind: zonal-shift, at: "+at+", duration: 6h, zoneNumber: 2}"),
				"calm":    nodePools(t, "  faults:\n    - "+fault+"\n", ""),
			} {
				hours, _ := time.ParseDuration(at)
				from := p.Scenario().Start.Std().Add(hours)
				events, res := ownEvents(t, p, spec)
				for _, e := range events {
					if e.zone == "us-east-1b" && e.at.After(from) && e.at.Before(from.Add(6*time.Hour)) && (e.kind != "draining" || spec != "portfolio") {
						touched[name]++
					}
				}
				if name == "shifted" && res.Reclaims > 0 && spec == "as-is" {
					t.Errorf("%s: %d nodes were reclaimed", spec, res.Reclaims)
				}
			}
			if touched["shifted"] > 0 {
				t.Errorf("%s, shift at %s: %d launches and deletions in the zone", spec, at, touched["shifted"])
			}
			if touched["calm"] == 0 && spec != "as-is" {
				t.Errorf("%s, at %s: nothing happens in the zone without a shift, so that this says nothing", spec, at)
			}
		}
	}
}

// TestTerminationGracePeriod: nodes that expire under a budget that never allows an
// eviction are gone when their terminationGracePeriod is over, and stay without one.
func TestTerminationGracePeriod(t *testing.T) {
	held := []string{"maxUnavailable: 25%, selector: {matchLabels: {app: api}}",
		"maxUnavailable: 0, selector: {matchLabels: {app: api}}", "expireAfter: 336h", "expireAfter: 4h",
		"  faults:\n    - {kind: zonal-shift, at: 30h, duration: 6h, zoneNumber: 2}\n", ""}
	const grace = "terminationGracePeriod: 1h"
	drains := func(p *Prepared) (drained, deleted []time.Duration) {
		events, _ := ownEvents(t, p, "as-is")
		since := map[string]time.Time{}
		for _, e := range events {
			switch {
			case !strings.HasPrefix(e.node, "general-"):
			case e.kind == "draining":
				since[e.node] = e.at
			case e.kind == "deleted":
				deleted = append(deleted, e.at.Sub(since[e.node]))
				delete(since, e.node)
			}
		}
		for _, at := range since {
			drained = append(drained, p.Scenario().Start.Std().Add(48*time.Hour).Sub(at))
		}
		return drained, deleted
	}
	going, gone := drains(nodePools(t, held...))
	if len(gone) == 0 || slices.Max(gone) < 58*time.Minute || slices.Max(gone) > 61*time.Minute ||
		len(going) > 0 && slices.Max(going) > 61*time.Minute {
		t.Errorf("with a grace of 1 h nodes take %v, and those that are there still %v", gone, going)
	}
	going, _ = drains(nodePools(t, append(held, "      "+grace+"\n", "")...))
	if len(going) == 0 || slices.Max(going) < 4*time.Hour {
		t.Errorf("without a grace nodes are held for %v", going)
	}
}
