package eval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// The grounds of a case are what tells whether runs of it can be set against
// runs of the same name that come of other files. All are digests in
// hexadecimal; one that a build does not report is empty.
type grounds struct {
	// file is that of the scenario's file.
	file string

	// conditions is that of what no policy chooses: prices, span, the settings
	// of the market, and faults. With others, other things happened to a run.
	conditions string

	// demand is that of what is asked of the cluster: workloads, how many pods
	// they want when and of which size, and what their outages cost. With
	// another, a dearer run is not a worse one.
	demand string
}

// groundsOf returns those of w.
func groundsOf(w *scenarios.World) grounds {
	return grounds{
		file: hex.EncodeToString(w.Digest[:]),
		conditions: digestOf(struct {
			Trace            [32]byte
			Start            policy.Time
			Duration, WarmUp time.Duration
			Intensity        float64
			Slots            int
			OnDemand         bool
			Reserve          policy.Money
			Faults           []scenarios.Fault
			Truth            *weather.Truth `json:",omitempty"`
		}{w.TraceDigest, w.Start, w.Duration, w.WarmUp, w.Intensity, w.Slots, w.OnDemandShortages, reserveOf(w), w.Faults, truthOf(w)}),
		demand: digestOf(struct {
			ReadyGrace time.Duration
			Workloads  []asked
			PDBs       []protection
		}{w.ReadyGrace, askedOf(w), protectionsOf(w)}),
	}
}

// truthOf returns the truth of w, nil for the model as it is: it then has no part in
// a digest.
func truthOf(w *scenarios.World) *weather.Truth {
	if w.Truth.Modelled() {
		return nil
	}
	return &w.Truth
}

// reserveOf returns the least that a node of an auction is charged.
func reserveOf(w *scenarios.World) policy.Money {
	i := slices.IndexFunc(w.Markets, func(m policy.Market) bool { return m.Auction() })
	if i < 0 {
		return 0
	}
	return w.Markets[i].Reserve
}

// An asked is what a workload asks for.
type asked struct {
	Name        string
	Kind        policy.WorkloadKind
	Schedule    []scenarios.ReplicaStep
	Job         *scenarios.Job
	Requests    policy.Resources
	GPUResource string
	Penalty     float64
	CostPerHour policy.Money
}

func askedOf(w *scenarios.World) []asked {
	out := make([]asked, len(w.Workloads))
	for i := range w.Workloads {
		x, t := &w.Workloads[i], &w.Templates[i]
		out[i] = asked{x.Name, x.Kind, x.Schedule, x.Job, t.Requests, t.GPUResource, x.OutagePenalty, x.OutageCostPerHour}
	}
	slices.SortStableFunc(out, func(a, b asked) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// A protection is what a PDB requires, which says when an outage begins.
type protection struct {
	Name                         string
	Selector                     policy.Selector
	MinAvailable, MaxUnavailable policy.Quantity
}

func protectionsOf(w *scenarios.World) []protection {
	out := make([]protection, len(w.PDBs))
	for i := range w.PDBs {
		x := &w.PDBs[i]
		out[i] = protection{x.Name, x.Selector, x.MinAvailable, x.MaxUnavailable}
	}
	slices.SortStableFunc(out, func(a, b protection) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// digestOf returns that of v, which holds neither maps nor what JSON lacks.
func digestOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("eval: " + err.Error()) // v is made of plain values
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
