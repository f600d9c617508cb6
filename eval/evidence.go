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

// An Evidence shows whether the runs of a case are comparable with runs of the same name that were
// made from other files. All fields are hexadecimal digests, empty if a build does not report them.
type Evidence struct {
	// SHA-256 of the scenario.
	File string `json:"scenario_digest"`

	// SHA-256 of everything that policies do not choose: prices, interval, market settings, and
	// faults.
	//
	// If it differs, the events of two runs are not comparable.
	Conditions string `json:"conditions_digest"`

	// SHA-256 of the workloads: the number of pods over time, their sizes, and the cost of their
	// outages.
	//
	// If it differs, a more expensive run is not necessarily worse.
	Demand string `json:"demand_digest"`
}

// EvidenceOf returns the evidence of w.
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

// truthOf returns the market model of w, nil for the default model, which is not part of a digest.
func truthOf(w *scenarios.BoundScenario) *weather.Truth {
	if w.Truth.Modelled() {
		return nil
	}
	return &w.Truth
}

// reserveOf returns the reserve price of an auction, 0 if no market is one.
func reserveOf(w *scenarios.BoundScenario) policy.Money {
	i := slices.IndexFunc(w.Markets, func(m policy.Market) bool { return m.Auction() })
	if i < 0 {
		return 0
	}
	return w.Markets[i].Reserve
}

// A workloadDemand describes the demand of a workload.
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

// A protection contains the requirements of a PDB, which determine when an outage starts.
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

// digestOf returns the SHA-256 of v as JSON. v must not contain maps or values that JSON cannot
// encode.
func digestOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("eval: " + err.Error()) // v is made of plain values
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
