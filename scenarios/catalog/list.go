package catalog

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Filter chooses types to list. The zero Filter chooses all.
type Filter struct {
	// Providers whose types to list, in the order given; empty means all.
	Providers []string

	// Region whose prices to show; empty shows the cheapest of all regions of a
	// provider. A type without a price there is left out.
	Region string

	// Families, Categories and Arch restrict the types; empty means any.
	Families   []string
	Categories []string
	Arch       string

	// MinVCPU, MaxVCPU and MinGPUs bound the size; 0 means no bound.
	MinVCPU, MaxVCPU, MinGPUs int64
}

// A Row is one type with its price.
type Row struct {
	Type policy.InstanceType

	// MemoryMiB is the memory that the type is sold with; Type.Capacity has
	// what is left of it below a hypervisor and a kernel.
	MemoryMiB int64

	// Region is where OnDemand is the price of one node-hour.
	Region   string
	OnDemand policy.Money

	// Basis says in words what OnDemand was derived from where the provider
	// publishes none; empty for a published price.
	Basis string
}

// List returns the types that f chooses, ascending by name within a provider.
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

// priced returns the row of kind at the wanted region, or at the cheapest, the
// first by name among equals.
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
