package eval

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
)

// A CaseReport describes one window of one scenario. Reports with equal digests can be compared.
type CaseReport struct {
	// Name or path of the scenario, as passed.
	Scenario string `json:"scenario"`
	// Index of the window among the windows of its scenario, from 0.
	Window int `json:"window"`
	// Start of the metered window.
	From Instant `json:"from"`
	// End of the metered window.
	To Instant `json:"to"`
	// Seconds that are simulated before the window and not metered.
	WarmUp float64 `json:"warm_up_s"`
	// Seconds after which new pods of a growing workload must be ready.
	ReadyGrace float64 `json:"ready_grace_s"`
	// Factor on reclaim rates and on the frequency of capacity shortages.
	Intensity float64 `json:"intensity"`
	// Maximum number of nodes of a market; 0 means that it is drawn for each market.
	Slots int `json:"slots"`
	// Version of Karpenter whose rules were simulated, if one was specified.
	Karpenter string `json:"karpenter_version,omitempty"`
	// Cluster at the start of the warm-up: empty, on-demand, or nodes for the nodes in spec.nodes.
	Start string `json:"start"`
	// Cost per node-hour on top of a node's price, in dollars, if specified.
	NodeFee string `json:"node_fee,omitempty"`
	// Market model that the weather was drawn from, as --truth names it.
	Truth string `json:"truth"`
	Evidence
	// Name of the scenario's trace.
	Trace string `json:"trace"`
	// SHA-256 of the trace's content in the window.
	TraceDigest string `json:"trace_digest"`
	// Lower bound of bill plus outage cost over all policies and all weathers.
	Oracle Value `json:"oracle_usd,omitzero"`
	// The same bound over policies that only launch on-demand nodes.
	OracleOnDemand Value `json:"oracle_on_demand_usd,omitzero"`
	// Lowest of the seeds' bounds that also respect the limits on the number of nodes of a market
	// from its slots and shortages.
	OracleSlots Value `json:"oracle_slots_usd,omitzero"`
	// Whether the computation of a bound was stopped at its work limit. The bound is still valid,
	// but could be higher.
	OracleCutShort bool `json:"oracle_cut_short"`
	// What was omitted from the simulation, with reasons.
	Warnings []string `json:"warnings"`
}

// CaseReports returns a report of each case of r, in their order.
func (r *Report) CaseReports() []CaseReport {
	out := make([]CaseReport, len(r.Config.Cases))
	for i := range out {
		k, w, bound := &r.Config.Cases[i], r.Config.Cases[i].Bound, &r.Oracles[i]
		out[i] = CaseReport{
			Scenario: k.Scenario, Window: k.Window, From: Instant(w.Start), To: Instant(k.End()),
			WarmUp: w.WarmUp.Seconds(), ReadyGrace: w.ReadyGrace.Seconds(), Intensity: w.Intensity, Slots: w.Slots,
			Start: w.StartCluster.String(), Truth: w.Truth.String(), Evidence: EvidenceOf(w),
			Trace: w.Trace.Name, TraceDigest: hex.EncodeToString(w.TraceDigest[:]),
			Oracle: dollars(bound, bound.Cost), OracleOnDemand: dollars(bound, bound.OnDemand),
			OracleSlots: dollars(bound, bound.Slots), OracleCutShort: bound.Short > 0,
			Warnings: append([]string{}, w.Warnings...),
		}
		if w.Karpenter != 0 {
			out[i].Karpenter = w.Karpenter.String()
		}
		if w.NodeFee != 0 {
			out[i].NodeFee = strconv.FormatFloat(w.NodeFee.Float(), 'f', -1, 64)
		}
	}
	return out
}

// dollars returns amount m of bound b, unknown if b is open.
func dollars(b *oracle.Bound, m policy.Money) Value { return Value{m.Float(), !b.Open} }

// CaseOf returns the case of a window of a scenario, nil if there is no such case.
func CaseOf(cases []CaseReport, scenario string, window int) *CaseReport {
	for i := range cases {
		if k := &cases[i]; k.Scenario == scenario && k.Window == window {
			return k
		}
	}
	return nil
}

// Duration returns the length of the metered window.
func (k *CaseReport) Duration() time.Duration { return policy.Time(k.To).Sub(policy.Time(k.From)) }

// An Instant is a time that is encoded in RFC 3339.
type Instant policy.Time

// String formats the time in RFC 3339.
func (t Instant) String() string { return policy.Time(t).String() }

// MarshalText formats the time in RFC 3339.
func (t Instant) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses a time in RFC 3339.
func (t *Instant) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time in RFC 3339", text)
	}
	*t = Instant(policy.TimeOf(at))
	return nil
}
