package fit

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

//go:generate go run gen_presets.go

// More returns n markets: first those fitted and, if n is larger, others from the
// provider's catalog.
func (f *Fitted) More(n int) ([]generate.Market, error) {
	if n < 1 {
		return nil, fmt.Errorf("%w: %d", generate.ErrMarkets, n)
	}
	if n <= len(f.Markets) {
		return f.Markets[:n:n], nil
	}
	known := map[string]bool{}
	var regions []string
	for i := range f.Markets {
		m := &f.Markets[i]
		known[m.Name()] = true
		if m.Provider == f.Law.Provider && !slices.Contains(regions, m.Region) &&
			slices.Contains(catalog.Regions(m.Provider), m.Region) {
			regions = append(regions, m.Region)
		}
	}
	all, err := generate.CatalogMarkets(f.Law.Provider, regions)
	if err != nil {
		return nil, err
	}
	markets := slices.Clone(f.Markets)
	for i := range all {
		if len(markets) == n {
			break
		}
		if !known[all[i].Name()] {
			markets = append(markets, all[i])
		}
	}
	if len(markets) < n {
		return nil, fmt.Errorf("%w: %d are asked for, and the trace and the catalog of %s have %d", generate.ErrMarkets, n,
			f.Law.Provider, len(markets))
	}
	return markets, nil
}
