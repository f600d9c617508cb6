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

// An Evidence of a case shows whether its runs can be compared with runs of the same name that were
// made from other files. All are digests in hexadecimal; one that a build does not report is empty.
type Evidence struct {
	// SHA-256 of the scenario.
	File string `json:"scenario_digest"`

	// SHA-256 of what no policy chooses: prices, span, settings of the market, and faults.
	//
	// With others, other things happened to a run.
	Conditions string `json:"conditions_digest"`

	// SHA-256 of the workloads: how many pods of which size when, and what their outages cost.
	//
	// With another, a more expensive run is not a worse one.
	Demand string `json:"demand_digest"`
}

// EvidenceOf returns that of w.
func EvidenceOf(w *scenarios.BoundScenario) Evidence {
	return Evidence{
		File: hex.EncodeToString(w.Digest[:]),
		Conditions: digestOf(struct {
			Trace            [32]byte
			Start            policy.Time
			StartCluster     scenarios.StartCluster
			Duration, WarmUp time.Duration
			Intensity        float64
			Slots            int
			OnDemand         bool
			Reserve          policy.Money
			Faults           []scenarios.Fault
			Truth            *weather.Truth `json:",omitempty"`
			Azure            bool           `json:",omitempty"`
		}{w.TraceDigest, w.Start, w.StartCluster, w.Duration, w.WarmUp, w.Intensity, w.Slots, w.OnDemandShortages,
			reserveOf(w), w.Faults, truthOf(w), w.AzureAllocationFailures}),
		Demand: digestOf(struct {
			ReadyGrace time.Duration
			Workloads  []workloadDemand
			PDBs       []protection
		}{w.ReadyGrace, demandOf(w), protectionsOf(w)}),
	}
}

// truthOf returns the truth of w, nil for the model as it is: it then has no part in
// a digest.
func truthOf(w *scenarios.BoundScenario) *weather.Truth {
	if w.Truth.Modelled() {
		return nil
	}
	return &w.Truth
}

// reserveOf returns the least that a node of an auction is charged.
func reserveOf(w *scenarios.BoundScenario) policy.Money {
	i := slices.IndexFunc(w.Markets, func(m policy.Market) bool { return m.Auction() })
	if i < 0 {
		return 0
	}
	return w.Markets[i].Reserve
}

// A workloadDemand is what a workload requests.
type workloadDemand struct {
	Name        string
	Kind        policy.WorkloadKind
	Schedule    []scenarios.ReplicaStep
	Job         *scenarios.Job
	Requests    policy.Resources
	GPUResource string
	Penalty     float64
	CostPerHour policy.Money
}

func demandOf(w *scenarios.BoundScenario) []workloadDemand {
	out := make([]workloadDemand, len(w.Workloads))
	for i := range w.Workloads {
		x, t := &w.Workloads[i], &w.Templates[i]
		out[i] = workloadDemand{x.Name, x.Kind, x.Schedule, x.Job, t.Requests, t.GPUResource, x.OutagePenalty,
			x.OutageCostPerHour}
	}
	slices.SortStableFunc(out, func(a, b workloadDemand) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// A protection is what a PDB requires, which determines when an outage starts.
type protection struct {
	Name                         string
	Selector                     policy.Selector
	MinAvailable, MaxUnavailable policy.Quantity
}

func protectionsOf(w *scenarios.BoundScenario) []protection {
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
