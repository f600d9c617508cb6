package catalog

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Filter selects instance types. The zero Filter selects all.
type Filter struct {
	// Providers are the providers to list, in this order; empty means all.
	Providers []string

	// Region is the region whose prices to show; empty means the cheapest region of each provider.
	// A type without a price there is omitted.
	Region string

	// Families, Categories and Arch restrict the types; empty means any.
	Families   []string
	Categories []string
	Arch       string

	// MinVCPU, MaxVCPU and MinGPUs bound the size; 0 means no bound.
	MinVCPU, MaxVCPU, MinGPUs int64
}

// A Row is an instance type with its price.
type Row struct {
	Type policy.InstanceType

	// MemoryMiB is the nominal memory of the type. Type.Capacity has the memory that its kernel
	// reports.
	MemoryMiB int64

	// Region is the region of OnDemand, the price per node-hour.
	Region   string
	OnDemand policy.Money

	// Basis describes the derivation of OnDemand if the provider publishes no price; empty for a
	// published price.
	Basis string
}

// List returns the instance types that f selects, by provider and ascending by name.
func List(f Filter) []Row {
	providers := f.Providers
	if len(providers) == 0 {
		providers = Providers()
	}
	var rows []Row
	for _, provider := range providers {
		t := tableOf(provider)
		if t == nil {
			continue
		}
		for _, name := range t.names {
			fields, _ := t.line(name)
			kind := lookup(provider, fields)
			if !f.takes(&kind) {
				continue
			}
			if r, ok := f.priced(t, kind, fields); ok {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

func (f *Filter) takes(t *policy.InstanceType) bool {
	return (len(f.Families) == 0 || slices.Contains(f.Families, t.Family)) &&
		(len(f.Categories) == 0 || slices.Contains(f.Categories, t.Category)) &&
		(f.Arch == "" || f.Arch == t.Arch) &&
		t.VCPU >= f.MinVCPU && (f.MaxVCPU == 0 || t.VCPU <= f.MaxVCPU) &&
		t.Capacity.GPU >= f.MinGPUs
}

// priced returns the row for kind in the requested region, or in the cheapest region, the first by
// name among equals. It reports false if there is no price.
func (f *Filter) priced(t *table, kind policy.InstanceType, fields []string) (Row, bool) {
	best, found := Row{Type: kind, MemoryMiB: number(fields[colMemory])}, false
	for i, region := range t.regions {
		if f.Region != "" && f.Region != region {
			continue
		}
		p, ok := price(fields[t.fixed+i])
		basis := ""
		if !ok {
			p, basis, ok = OnDemandModelled(kind.Provider, region, kind.Name)
		}
		if ok && (!found || p < best.OnDemand) {
			best.Region, best.OnDemand, best.Basis, found = region, p, basis, true
		}
	}
	return best, found
}
