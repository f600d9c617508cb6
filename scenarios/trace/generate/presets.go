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

// presetFiles hold one law each. They were fitted by .ci/tools/lab/fit, which
// needs the recordings.
//
//go:embed presets
var presetFiles embed.FS

// A Preset is a law with the name of what it imitates, and the defaults for what to draw.
type Preset struct {
	Law Law `json:"law"`

	// Source says which recording the law was fitted to.
	Source string `json:"source"`

	// Limits says which figures of the recording draws miss, and why; it is
	// empty where at least four of five seeds pass `trace check`, both of as many
	// markets and days as the recording has and of the numbers below.
	Limits string `json:"limits,omitempty"`

	// Region is the region of the first markets; those that do not fit there are in the other
	// regions of the provider.
	Region string `json:"region"`

	// Families are those of the recording, whose types come before others: what
	// is sold, and at which prices, decides how coarse the unit of prices is.
	Families []string `json:"families,omitempty"`

	// Markets and Days are the default numbers of markets and days, and From is the default start
	// of the trace, as 2006-01-02.
	Markets int    `json:"markets"`
	Days    int    `json:"days"`
	From    string `json:"from"`
}

// ErrPreset is returned for a name that no preset has.
var ErrPreset = errors.New("no such preset")

// ErrMarkets is returned if more markets are requested than exist.
var ErrMarkets = errors.New("not that many markets")

// Presets returns all presets by name.
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

// FindPreset returns the preset of that name. The error of one that does not
// exist names those that do.
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

// Take returns the first n markets of the provider's catalog in the order of
// the preset: the regions one after the other, within a region the types in an
// order that mixes families and sizes, and of each type all zones.
func (p *Preset) Take(n int) ([]Market, error) {
	if n < 1 {
		return nil, fmt.Errorf("%w: %d", ErrMarkets, n)
	}
	return takeMarkets(p.Law.Provider, []string{p.Region}, p.Families, n)
}

// Family returns the part of the name of a type that many types have in common,
// as m5 of m5.large.
func Family(kind string) string {
	family, _, _ := strings.Cut(kind, ".")
	return family
}

// takeMarkets returns the first n markets of a provider, those of some regions
// first and within these those of some families.
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

// CatalogMarkets returns all markets of the provider's catalog, those of the
// regions before first.
func CatalogMarkets(provider string, before []string) ([]Market, error) {
	return takeMarkets(provider, before, nil, catalogSize(provider))
}

// catalogSize returns how many markets the catalog of a provider has.
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
