package format

import "github.com/spotter-dev/spotter/eval"

type jsonWhatIf struct {
	Scenario   string          `json:"scenario"`
	Windows    int             `json:"windows"`
	Seeds      []uint64        `json:"seeds"`
	Runs       int             `json:"runs"`
	Confidence float64         `json:"confidence"`
	Incomplete bool            `json:"incomplete,omitempty"`
	Headline   string          `json:"headline"`
	Quiet      bool            `json:"within_noise"`
	Sweep      string          `json:"sweep,omitempty"`
	Knee       string          `json:"knee,omitempty"`
	AsIs       jsonWhatIfRow   `json:"as_is"`
	Variants   []jsonWhatIfRow `json:"variants"`
	Version    string          `json:"version,omitempty"`
	Invocation string          `json:"invocation,omitempty"`
}

type jsonWhatIfRow struct {
	Name         string          `json:"name"`
	Changes      []string        `json:"changes,omitempty"`
	Policy       string          `json:"policy"`
	Words        string          `json:"words,omitempty"`
	Missing      int             `json:"missing,omitempty"`
	Demand       bool            `json:"other_demand,omitempty"`
	Equal        bool            `json:"equal,omitempty"`
	Cost         *jsonWhatIfData `json:"cost_usd_per_month"`
	Change       *jsonWhatIfData `json:"change_usd_per_month,omitempty"`
	ChangePct    *jsonWhatIfData `json:"change_pct,omitempty"`
	OutageCost   *jsonWhatIfData `json:"outage_cost_usd_per_month"`
	OutageChange *jsonWhatIfData `json:"outage_cost_change_usd_per_month,omitempty"`
	Incidents    *jsonWhatIfData `json:"outage_incidents"`
	Minutes      *jsonWhatIfData `json:"outage_minutes"`
	Evictions    *jsonWhatIfData `json:"evictions_per_pod_day"`
	MoreEvicted  *jsonWhatIfData `json:"evictions_change_per_pod_day,omitempty"`
	Nodes        *jsonWhatIfData `json:"nodes"`
	SpotShare    *jsonWhatIfData `json:"spot_share"`
}

// A jsonWhatIfData is a figure over runs; Interval is that of the median.
type jsonWhatIfData struct {
	Mean     float64     `json:"mean"`
	Median   float64     `json:"median"`
	Min      float64     `json:"min"`
	Max      float64     `json:"max"`
	Interval *[2]float64 `json:"interval,omitempty"`
	Need     int         `json:"need,omitempty"`
}

// WhatIf returns r as it is written in JSON and YAML.
func WhatIf(r *eval.WhatIf) any {
	out := jsonWhatIf{
		Scenario: r.Config.Cases[0].Scenario, Windows: len(r.Config.Cases), Seeds: r.Config.Seeds, Runs: len(r.Runs), Confidence: r.Level,
		Incomplete: r.Stopped, Headline: whatIfHeadline(r), Quiet: whatIfQuiet(r), Sweep: r.Sweep,
		AsIs: newWhatIfRow(&r.AsIs), Variants: []jsonWhatIfRow{}, Version: r.Config.Version, Invocation: r.Config.Invocation,
	}
	switch knee, ok := r.Knee(); {
	case ok && knee < 0:
		out.Knee = r.AsIs.Name
	case ok:
		out.Knee = r.Variants[knee].Name
	}
	for i := range r.Variants {
		x := &r.Variants[i]
		row := newWhatIfRow(x)
		row.Words, row.Equal = whatIfSentence(r, x), x.Equal
		row.Change, row.ChangePct = newWhatIfData(&x.Change), newWhatIfData(&x.ChangePct)
		row.OutageChange, row.MoreEvicted = newWhatIfData(&x.OutageChange), newWhatIfData(&x.EvictionChange)
		out.Variants = append(out.Variants, row)
	}
	return out
}

func newWhatIfRow(x *eval.WhatIfRow) jsonWhatIfRow {
	return jsonWhatIfRow{
		Name: x.Name, Changes: x.Changes, Policy: x.Policy, Missing: x.Missing, Demand: x.Demand,
		Cost: newWhatIfData(&x.Cost), OutageCost: newWhatIfData(&x.OutageCost), Incidents: newWhatIfData(&x.Incidents),
		Minutes: newWhatIfData(&x.OutageMinutes), Evictions: newWhatIfData(&x.Evictions), Nodes: newWhatIfData(&x.Nodes), SpotShare: newWhatIfData(&x.SpotShare),
	}
}

// newWhatIfData returns s, nil where it has nothing.
func newWhatIfData(s *eval.Summary) *jsonWhatIfData {
	if s.N == 0 {
		return nil
	}
	out := &jsonWhatIfData{Mean: s.Mean, Median: s.Median, Min: s.Min, Max: s.Max, Need: s.Need}
	if i := s.MedianInterval; i != nil {
		out.Interval = &[2]float64{i.Low, i.High}
	}
	return out
}
