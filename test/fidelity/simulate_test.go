package fidelity

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// simulate plays a script in the simulator: the weather is that of seed, and the rest is
// drawn by draw.
func (s *script) simulate(t testing.TB, seed, draw uint64) *record {
	t.Helper()
	weather, err := s.stage.DrawWeather(seed)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{script: s, record: &record{Script: s.digest, Seed: seed}, nodes: map[string]int{},
		pods: map[string]int{}, noticed: map[string]bool{}}
	result, err := sim.Run(t.Context(), sim.Config{
		Prepared: s.stage, Policy: s.policy(t), Seed: draw, Weather: weather, Observer: w, Delays: delays(), LowestPrice: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.record.settle()
	sum, err := s.bill(w.record)
	if err != nil {
		t.Fatal(err)
	}
	if sum != result.Bill {
		t.Errorf("%s: the nodes of the event log cost %v, and the run was billed %v", s.name, sum, result.Bill)
	}
	return w.record
}

// A watcher makes a record of the event log of a simulated run.
type watcher struct {
	script      *script
	record      *record
	nodes, pods map[string]int  // by name
	noticed     map[string]bool // nodes
}

// Settled implements sim.RunObserver.
func (*watcher) Settled(*sim.Moment) {}

// Happened implements sim.RunObserver.
func (w *watcher) Happened(e sim.Entry) {
	at := max(1, int64(e.At-w.script.bound.Start))
	switch e.Kind {
	case "launch":
		parts := strings.Split(e.Object, "/") // provider, region, zone, type, capacity type
		w.nodes[e.Subject] = len(w.record.Nodes)
		w.record.Nodes = append(w.record.Nodes, nodeLife{Market: parts[3] + "/" + parts[2] + "/" + parts[4], From: at})
	case "notice":
		w.noticed[e.Subject] = true
	case "deleted", "reclaimed":
		n := &w.record.Nodes[w.nodes[e.Subject]]
		if n.Until != 0 {
			return // taken before it was found to be gone
		}
		n.Until, n.Ended = at, byConsolidation
		if e.Kind == "reclaimed" || w.noticed[e.Subject] {
			n.Ended = byReclaim
		}
	case "created":
		workload, _, _ := cutLast(e.Subject, "-")
		w.pods[e.Subject] = len(w.record.Pods)
		w.record.Pods = append(w.record.Pods, podLife{Workload: workloadOf(workload), Created: at, Node: -1})
	case "bound":
		w.record.Pods[w.pods[e.Subject]].Node = w.nodes[e.Object]
	case "ready":
		w.record.Pods[w.pods[e.Subject]].Ready = at
	case "evicted", "lost", "ended":
		w.leave(&e, at)
	}
}

// leave notes that a pod has to go.
func (w *watcher) leave(e *sim.Entry, at int64) {
	if p := &w.record.Pods[w.pods[e.Subject]]; p.Gone == 0 {
		p.Gone = at
	}
	if e.Kind != "evicted" {
		return
	}
	x := eviction{At: at, Cause: byConsolidation}
	if w.noticed[e.Object] {
		x.Cause = byReclaim
	}
	w.record.Evictions = append(w.record.Evictions, x)
}

// cutLast cuts a text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

var _ sim.RunObserver = (*watcher)(nil)

// instant returns the time of the simulated clock ms milliseconds after the start.
func (s *script) instant(ms int64) policy.Time { return s.bound.Start + policy.Time(ms) }
