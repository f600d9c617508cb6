package fidelity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A record is what became of a scripted day. Times are milliseconds since its begin, and
// 0 is never.
type record struct {
	// Script is the digest of the day, and Seed that of its weather.
	Script string `json:"script"`
	Seed   uint64 `json:"seed"`

	// Lag is how long the cluster took at most to make pods, or in the mean to initialize
	// a node that has joined, if that is longer; 0 where it is simulated.
	Lag int64 `json:"lag,omitempty"`

	Nodes     []nodeLife `json:"nodes"`
	Pods      []podLife  `json:"pods"`
	Evictions []eviction `json:"evictions"`
}

// A nodeLife is one node, from its launch to when it is paid for no longer.
type nodeLife struct {
	Market string `json:"market"` // type/zone/capacity type
	From   int64  `json:"from"`
	Until  int64  `json:"until,omitempty"` // 0 while it runs at the end
	Ended  cause  `json:"ended,omitempty"`
}

// A podLife is one pod. Node is an index into the nodes, -1 while it is on none.
type podLife struct {
	Workload string `json:"workload"`
	Created  int64  `json:"created"`
	Ready    int64  `json:"ready,omitempty"`
	Gone     int64  `json:"gone,omitempty"` // when it was asked to end, or was gone
	Node     int    `json:"node"`
}

// An eviction is one pod asked to leave its node.
type eviction struct {
	At    int64 `json:"at"`
	Cause cause `json:"cause"`
}

// A cause is why a node ended or a pod was evicted.
type cause string

// The causes.
const (
	byConsolidation cause = "consolidation" // of an underutilized or an empty node
	byReclaim       cause = "reclaim"       // the provider took the node, or said that it would
	byOther         cause = "other"
)

// settle puts a record in the order of time.
func (r *record) settle() {
	slices.SortFunc(r.Evictions, func(a, b eviction) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Cause, b.Cause)) })
	slices.SortFunc(r.Pods, func(a, b podLife) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Ready, b.Ready),
			cmp.Compare(a.Node, b.Node))
	})
}

// bill returns what the nodes cost, by the meter of the project and the prices of the
// script: the same for both kinds of runs.
func (s *script) bill(r *record) (policy.Money, error) {
	total := policy.Money(0)
	curves := map[string]*billing.Curve{}
	for m := range s.bound.Markets {
		p := s.stage.Prices(policy.MarketID(m))
		curves[s.marketName(policy.MarketID(m))] = billing.NewCurve(p.At, p.Price)
	}
	_, window := s.stage.Span()
	for _, n := range r.Nodes {
		c := curves[n.Market]
		if c == nil {
			return 0, fmt.Errorf("a node is of market %s, which the script does not sell", n.Market)
		}
		life := billing.Span{From: window.From + policy.Time(n.From), To: window.To}
		if n.Until != 0 {
			life.To = window.From + policy.Time(n.Until)
		}
		total += c.Bill(life, window)
	}
	return total, nil
}

// recorded reads the real runs of a script that are kept. It says which belong to another
// state of the script.
func recorded(t testing.TB, s *script) []*record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", s.name+"-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*record
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := &record{}
		if err := json.Unmarshal(text, r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if r.Script != s.digest {
			t.Errorf("%s is a run of another state of %s (%s, now %s): play it anew by make fidelity DAYS=%s", f, s.name, r.Script, s.digest, s.name)
			continue
		}
		all = append(all, r)
	}
	return all
}

// lagMax is the greatest lag of a run that is kept, in milliseconds. On an idle machine it
// is one second; where it is more, the machine was too busy for its clock to mean
// anything.
const lagMax = 2000

// keep writes a real run to a folder.
func keep(folder string, s *script, r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d.json", s.name, r.Seed)), append(text, '\n'), 0o644)
}
