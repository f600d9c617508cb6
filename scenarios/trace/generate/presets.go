package generate

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// presetFiles contain one law each. They were fitted by .ci/tools/lab/fit, which requires the
// recordings.
//
//go:embed presets
var presetFiles embed.FS

// A Preset is a law fitted to a recording, with defaults for the trace to draw.
type Preset struct {
	Law Law `json:"law"`

	// Source describes the recording that the law was fitted to.
	Source string `json:"source"`

	// Limits describes the statistics of the recording that generated traces do not reproduce, with
	// the reason. It is empty if at least four of five seeds pass `trace check`, both with the
	// numbers of markets and days of the recording and with the defaults below.
	Limits string `json:"limits,omitempty"`

	// Region is the region of the first markets. If it has too few, the others are in other regions
	// of the provider.
	Region string `json:"region"`

	// Families are the families in the recording, whose types are used first: the types and their
	// prices determine how coarse the unit of prices is.
	Families []string `json:"families,omitempty"`

	// Markets and Days are the default numbers of markets and days. From is the default start of
	// the trace, in the format 2006-01-02.
	Markets int    `json:"markets"`
	Days    int    `json:"days"`
	From    string `json:"from"`
}

// ErrPreset is returned for the name of a preset that does not exist.
var ErrPreset = errors.New("no such preset")

// ErrMarkets is returned if more markets are requested than exist.
var ErrMarkets = errors.New("not that many markets")

// Presets returns all presets, ascending by name.
var Presets = sync.OnceValue(func() []Preset {
	entries, err := presetFiles.ReadDir("presets")
	if err != nil {
		panic(fmt.Sprintf("generate: reading the presets: %v", err))
	}
	var all []Preset
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		data, err := presetFiles.ReadFile("presets/" + e.Name())
		var p Preset
		if err == nil {
			err = json.Unmarshal(data, &p)
		}
		if err == nil {
			err = p.Law.Validate()
		}
		if err != nil {
			panic(fmt.Sprintf("generate: reading the preset %s: %v", e.Name(), err))
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Preset) int { return strings.Compare(a.Law.Name, b.Law.Name) })
	return all
})

// FindPreset returns the preset with this name. If there is no such preset, the error lists the
// names of all.
func FindPreset(name string) (*Preset, error) {
	all := Presets()
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].Law.Name; names[i] == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %q; there are %s", ErrPreset, name, strings.Join(names, ", "))
}

// Begin returns the default start of a trace of the preset.
func (p *Preset) Begin() policy.Time {
	t, err := time.Parse(time.DateOnly, p.From)
	if err != nil {
		panic(fmt.Sprintf("generate: preset %s: %v", p.Law.Name, err))
	}
	return policy.TimeOf(t)
}

// Take returns the first n markets of the provider's catalog in the order of the preset: by region,
// then by type in an order that mixes families and sizes, with all zones of each type.
func (p *Preset) Take(n int) ([]Market, error) {
	if n < 1 {
		return nil, fmt.Errorf("%w: %d", ErrMarkets, n)
	}
	return takeMarkets(p.Law.Provider, []string{p.Region}, p.Families, n)
}

// Family returns the part of a type's name before the dot, such as m5 for m5.large.
func Family(kind string) string {
	family, _, _ := strings.Cut(kind, ".")
	return family
}

// takeMarkets returns the first n markets of a provider, starting with those in the regions before,
// and within a region with those of families.
func takeMarkets(provider string, before, families []string, n int) ([]Market, error) {
	types := slices.Clone(catalog.Types(provider))
	later := func(kind string) int {
		if slices.Contains(families, Family(kind)) {
			return 0
		}
		return 1
	}
	slices.SortFunc(types, func(a, b string) int {
		return cmp.Or(
			cmp.Compare(later(a), later(b)), cmp.Compare(portable.HashString(a), portable.HashString(b)), strings.Compare(a, b))
	})
	regions := slices.Clone(before)
	for _, r := range catalog.Regions(provider) {
		if !slices.Contains(before, r) {
			regions = append(regions, r)
		}
	}
	var markets []Market
	for _, region := range regions {
		zones := catalog.Zones(provider, region)
		for _, kind := range types {
			onDemand, _ := catalog.OnDemandOrModelled(provider, region, kind)
			if onDemand == 0 {
				continue
			}
			for _, zone := range zones {
				markets = append(markets, Market{Provider: provider, Region: region, Zone: zone, Type: kind, OnDemand: onDemand})
				if len(markets) == n {
					return markets, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("%w: %d are requested, but the catalog has %d of %s (types × zones of %d regions)",
		ErrMarkets, n, len(markets), provider, len(regions))
}

// CatalogMarkets returns all markets of the provider's catalog, starting with those in the regions
// before.
func CatalogMarkets(provider string, before []string) ([]Market, error) {
	return takeMarkets(provider, before, nil, catalogSize(provider))
}

// catalogSize returns the number of markets with a price in the catalog of a provider.
func catalogSize(provider string) int {
	n := 0
	for _, region := range catalog.Regions(provider) {
		zones := len(catalog.Zones(provider, region))
		for _, kind := range catalog.Types(provider) {
			if price, _ := catalog.OnDemandOrModelled(provider, region, kind); price > 0 {
				n += zones
			}
		}
	}
	return n
}
