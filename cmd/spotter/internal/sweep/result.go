package sweep

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/eval/sweep"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// The outcomes of the chosen candidate on fresh seeds.
const (
	outcomeKeep      = "nothing beats the present values"
	outcomeBetter    = "better"
	outcomeUndecided = "not better beyond chance"
	outcomeWorse     = "worse"
)

// A result is a sweep in the form of its JSON.
type result struct {
	Sweep    string   `json:"sweep"`
	Scenario string   `json:"scenario"`
	Method   string   `json:"method"`
	Seed     uint64   `json:"seed"`
	Runs     int      `json:"runs"`
	Files    []string `json:"files"`
	Races    []race   `json:"races"`
}

type race struct {
	Conditions []setting   `json:"conditions"`
	Seeds      []uint64    `json:"seeds"`
	FreshSeeds []uint64    `json:"fresh_seeds"`
	Candidates []candidate `json:"candidates"`
	Chosen     chosen      `json:"chosen"`

	of *sweep.Race
}

type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type candidate struct {
	Name      string    `json:"name"`
	Policy    string    `json:"policy"`
	Settings  []setting `json:"settings"`
	Rungs     int       `json:"rungs"`
	Dropped   bool      `json:"dropped"`
	Front     bool      `json:"front"`
	Saved     float64   `json:"net_savings_pct_median"`
	Change    float64   `json:"net_savings_delta_pct_median"`
	Outage    float64   `json:"outage_minutes_mean"`
	OutageMax float64   `json:"outage_minutes_max"`
	Evictions float64   `json:"evictions_per_pod_day_median"`
}

// A chosen is the chosen candidate, with its figures on the selection seeds and on fresh seeds.
type chosen struct {
	Name      string   `json:"name"`
	Selection float64  `json:"selection_net_savings_delta_pct"`
	Fresh     float64  `json:"fresh_net_savings_delta_pct"`
	Low       *float64 `json:"fresh_low"`
	High      *float64 `json:"fresh_high"`
	Saved     float64  `json:"fresh_net_savings_pct"`
	AsItIs    float64  `json:"fresh_net_savings_pct_as_it_is"`
	Outage    float64  `json:"fresh_outage_minutes_mean"`
	AsItIsOut float64  `json:"fresh_outage_minutes_mean_as_it_is"`
	Outcome   string   `json:"outcome"`
	Scenario  string   `json:"scenario"`
	Command   string   `json:"command"`
}

func newResult(f *call, r *sweep.Result) *result {
	s := &r.Plan.Spec
	out := &result{Sweep: r.Plan.Name, Scenario: r.Scenario, Method: string(s.Method), Seed: *s.Seed, Runs: len(r.Runs)}
	for i := range r.Races {
		x := &r.Races[i]
		one := race{Conditions: settingsOf(x.Conditions), Seeds: x.Seeds, FreshSeeds: x.FreshSeeds, of: x}
		for k := range x.Candidates {
			one.Candidates = append(one.Candidates, newCandidate(&x.Candidates[k]))
		}
		one.Chosen = f.chosen(x, f.fileOf(r, "chosen", ".yaml", i))
		out.Races = append(out.Races, one)
	}
	return out
}

// fileOf returns the path of a file of race i. It has a number only if there are several races.
func (f *call) fileOf(r *sweep.Result, name, ext string, i int) string {
	if len(r.Races) > 1 {
		name += fmt.Sprintf("-%d", i+1)
	}
	return filepath.Join(f.out, name+ext)
}

func settingsOf(all []sweep.Setting) []setting {
	out := []setting{}
	for _, s := range all {
		out = append(out, setting{s.Parameter + s.Set, s.Value})
	}
	return out
}

func newCandidate(x *sweep.Row) candidate {
	return candidate{
		Name: x.Name, Policy: x.Policy, Settings: settingsOf(x.Settings), Rungs: x.Rungs, Dropped: x.Dropped, Front: x.Front,
		Saved: x.Saved.Median, Change: x.Change.Median, Outage: x.Outage.Mean, OutageMax: x.Outage.Max, Evictions: x.Evictions.Median,
	}
}

// chosen returns the chosen candidate of a race, and the command that runs it again from file.
func (f *call) chosen(x *sweep.Race, file string) chosen {
	best := &x.Candidates[x.Chosen]
	out := chosen{
		Name: best.Name, Selection: best.Change.Median, Fresh: x.Fresh.Change.Median, Saved: x.Fresh.Saved.Median, AsItIs: x.FreshAsItIs.Saved.Median,
		Outage: x.Fresh.Outage.Mean, AsItIsOut: x.FreshAsItIs.Outage.Mean, Scenario: file, Command: f.command(x, file),
	}
	interval := x.Fresh.Change.MedianInterval
	if interval != nil {
		out.Low, out.High = &interval.Low, &interval.High
	}
	out.Outcome = outcomeOf(x.Chosen == 0, interval)
	return out
}

func outcomeOf(asItIs bool, i *stats.Interval) string {
	switch {
	case asItIs:
		return outcomeKeep
	case i != nil && i.Low > 0:
		return outcomeBetter
	case i != nil && i.High < 0:
		return outcomeWorse
	}
	return outcomeUndecided
}

// command returns the command that runs the chosen candidate on the fresh seeds.
func (f *call) command(x *sweep.Race, file string) string {
	best := &x.Candidates[x.Chosen]
	words := []string{"spotter", "eval", file, "--policies", best.Policy}
	if base := x.Candidates[0].Policy; base != best.Policy {
		words = append(words, "--baseline", base)
	}
	words = append(words, "--seeds", ranges.Text(x.FreshSeeds))
	if name := x.Cases[0].Bound.Trace.Name; name != trace.Recorded && f.Trace == "" {
		words = append(words, "--trace", name)
	}
	f.Flags.Visit(func(g *pflag.Flag) { // ascending by name
		switch g.Name {
		case "trace", "from", "windows", "every", "truth", "intensity", "node-fee":
			words = append(words, "--"+g.Name, g.Value.String())
		}
	})
	return cli.Shell(words)
}

// points returns the savings of candidates and the given price, for a frontier.
func points(x *sweep.Race, price func(*sweep.Row) float64) []eval.Tradeoff {
	out := make([]eval.Tradeoff, len(x.Candidates))
	for i := range x.Candidates {
		out[i] = eval.Tradeoff{Gain: x.Candidates[i].Saved.Median, Price: price(&x.Candidates[i])}
	}
	return out
}

// prices are what savings may cost.
var prices = []struct {
	name, label string
	of          func(*sweep.Row) float64
}{
	{"outage", "outage minutes (mean)", func(x *sweep.Row) float64 { return x.Outage.Mean }},
	{"evictions", "evictions per pod-day", func(x *sweep.Row) float64 { return x.Evictions.Median }},
}
