package embedded

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// Drawn returns the configurations that the embedded synthetic traces are drawn with, by their names.
func Drawn() (map[string]generate.Config, error) {
	all := map[string]generate.Config{}
	begin := policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, x := range []struct {
		name, preset string
		days         int
		markets      []generate.Market
	}{
		{"synthetic", "aws-2024", 22, defaultMarkets()},
		{"rackspace", "rackspace-2026", 13 * 7, rackspaceMarkets()}, // a comparison takes twelve weeks
	} {
		p, err := generate.FindPreset(x.preset)
		if err != nil {
			return nil, err
		}
		all[x.name] = generate.Config{Seed: 1, From: begin, To: begin.Add(time.Duration(x.days) * 24 * time.Hour),
			Markets: x.markets, Law: p.Law}
	}
	return all, nil
}

// cross returns a market for each type and zone that has an on-demand price.
func cross(provider string, regions, types []string) []generate.Market {
	var markets []generate.Market
	for _, region := range regions {
		zones := catalog.Zones(provider, region)
		zones = zones[:min(len(zones), 3)]
		for _, kind := range types {
			onDemand, _ := catalog.OnDemandOrModelled(provider, region, kind)
			if onDemand == 0 {
				continue
			}
			for _, zone := range zones {
				markets = append(markets,
					generate.Market{Provider: provider, Region: region, Zone: zone, Type: kind, OnDemand: onDemand})
			}
		}
	}
	return markets
}

// defaultMarkets are types that clusters often run on, in three zones.
func defaultMarkets() []generate.Market {
	var types []string
	for _, family := range []string{
		"c5", "c6i", "c7i", "m5", "m6i", "m7i", "r5", "r6i", "r7i", "m5a", "c6g", "m6g", "r6g",
	} {
		types = append(types, family+".xlarge", family+".2xlarge", family+".4xlarge")
	}
	types = append(types, "c5.large", "m5.large", "r5.large",
		"g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge", "g4dn.12xlarge",
		"g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.12xlarge", "p3.2xlarge")
	return cross(catalog.AWS, []string{"us-east-1"}, types)
}

// rackspaceMarkets are server classes of three regions. A class carries the
// region in its name.
func rackspaceMarkets() []generate.Market {
	var markets []generate.Market
	for _, r := range []struct{ region, suffix string }{
		{"us-east-iad-1", "iad"}, {"us-central-dfw-1", "dfw"}, {"us-central-ord-1", "ord"},
	} {
		var types []string
		for _, class := range []string{
			"gp.vs1.medium", "gp.vs1.large", "gp.vs1.xlarge", "gp.vs1.2xlarge",
			"ch.vs1.medium", "ch.vs1.large", "ch.vs1.xlarge", "ch.vs1.2xlarge",
			"mh.vs1.medium", "mh.vs1.large", "mh.vs1.xlarge", "mh.vs1.2xlarge",
		} {
			types = append(types, class+"-"+r.suffix)
		}
		markets = append(markets, cross(catalog.Rackspace, []string{r.region}, types)...)
	}
	return markets
}
