package eval

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
)

// A CaseReport is one window of one scenario. Reports with equal digests can be compared.
type CaseReport struct {
	// Name or path as given.
	Scenario string `json:"scenario"`
	// Windows of a scenario count from 0.
	Window int `json:"window"`
	// Start of the metered window.
	From Instant `json:"from"`
	// Its end.
	To Instant `json:"to"`
	// Seconds simulated before it and not metered.
	WarmUp float64 `json:"warm_up_s"`
	// Seconds after which growth of a workload counts.
	ReadyGrace float64 `json:"ready_grace_s"`
	// Multiplies reclaim rates and how often capacity runs short.
	Intensity float64 `json:"intensity"`
	// Nodes that a market can give; 0 is drawn for each market.
	Slots int `json:"slots"`
	// Version of Karpenter whose rules were followed, where one was named.
	Karpenter string `json:"karpenter_version,omitempty"`
	// The cluster in which the warm-up starts: empty, on-demand, or nodes for those of spec.nodes.
	Start string `json:"start"`
	// What every node costs per hour on top of its price, in dollars, where that is stated.
	NodeFee string `json:"node_fee,omitempty"`
	// What the weather was drawn under, as --truth names it.
	Truth string `json:"truth"`
	Evidence
	// Name of its trace.
	Trace string `json:"trace"`
	// SHA-256 of the trace's content in the window.
	TraceDigest string `json:"trace_digest"`
	// Lower bound on bill and outage cost over every policy and every weather.
	Oracle Value `json:"oracle_usd,omitzero"`
	// The same over policies that buy on demand only.
	OracleOnDemand Value `json:"oracle_on_demand_usd,omitzero"`
	// The least bound of a seed where a market has no more nodes at once than its slots and shortages
	// allow.
	OracleSlots Value `json:"oracle_slots_usd,omitzero"`
	// One of the bounds reached its limit of work: it holds, and is lower than it could be.
	OracleCutShort bool `json:"oracle_cut_short"`
	// What was left out, and why.
	Warnings []string `json:"warnings"`
}

// CaseReports returns the cases of r in their order.
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

// dollars returns one of the bounds, unknown where it is open.
func dollars(b *oracle.Bound, m policy.Money) Value { return Value{m.Float(), !b.Open} }

// CaseOf returns the case of a window, nil without it.
func CaseOf(cases []CaseReport, scenario string, window int) *CaseReport {
	for i := range cases {
		if k := &cases[i]; k.Scenario == scenario && k.Window == window {
			return k
		}
	}
	return nil
}

// Duration returns the length of the window.
func (k *CaseReport) Duration() time.Duration { return policy.Time(k.To).Sub(policy.Time(k.From)) }

// An Instant is a time that JSON has in RFC 3339.
type Instant policy.Time

// String returns the time in RFC 3339.
func (t Instant) String() string { return policy.Time(t).String() }

// MarshalText writes RFC 3339.
func (t Instant) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads RFC 3339.
func (t *Instant) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a time in RFC 3339", text)
	}
	*t = Instant(policy.TimeOf(at))
	return nil
}
