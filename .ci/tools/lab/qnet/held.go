package qnet

import (
	"context"
	"fmt"

	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
)

// The ways in which held-out scenarios are played: as the network would, and with
// one action always.
var plays = []struct {
	name   string
	always int8
}{{"", -1}, {"all_spot", 4}, {"on_demand", 5}}

// hold plays scenarios that were not learned from and returns what the network
// saves there, and what all on spot saves, in percent of the bill on demand:
// medians, means and the number of scenarios.
func hold(ctx context.Context, c *Config, s *source, net *Net) (map[string]float64, error) {
	results := make([]*sim.Result, c.Held*len(plays))
	err := c.each(len(results), func(k int) error {
		i, p := k/len(plays), plays[k%len(plays)]
		w, err := s.scenario(chance.Stream(c.Seed, "held"), i)
		if err == nil {
			a := &agent{net: net, key: chance.Stream(c.Seed, "held weather").At1(uint64(i))}
			if p.always >= 0 {
				a.always, a.fixed = p.always, true
			}
			_, results[k], err = play(ctx, w, a)
		}
		if err != nil {
			return fmt.Errorf("held-out world %d: %w", i, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	saved := make([][]float64, len(plays)-1)
	over := make([]float64, 0, c.Held)
	for i := range c.Held {
		bare := results[i*len(plays)+len(plays)-1]
		bill := max(bare.Bill.Float(), 1e-6)
		cost := func(k int) float64 {
			r := results[i*len(plays)+k]
			return (bare.Bill + bare.OutageCost - r.Bill - r.OutageCost).Float() / bill * 100
		}
		for k := range saved {
			saved[k] = append(saved[k], cost(k))
		}
		over = append(over, cost(0)-cost(1))
	}
	return map[string]float64{
		"held_out_worlds":                   float64(c.Held),
		"held_out_saved_pct_median":         stats.Median(saved[0]),
		"held_out_saved_pct_mean":           stats.Mean(saved[0]),
		"held_out_all_spot_pct_median":      stats.Median(saved[1]),
		"held_out_all_spot_pct_mean":        stats.Mean(saved[1]),
		"held_out_over_all_spot_pct_mean":   stats.Mean(over),
		"held_out_over_all_spot_pct_median": stats.Median(over),
	}, nil
}
