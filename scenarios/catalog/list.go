package catalog

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A Filter chooses types to list. The zero Filter chooses all.
type Filter struct {
	// Region whose prices to show; empty shows the cheapest of all regions. A
	// type without a price there is left out.
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
	// what is left of it below a hypervisor.
	MemoryMiB int64

	// Region is where OnDemand is the price of one node-hour.
	Region   string
	OnDemand policy.Money
}

// List returns the types that f chooses, ascending by name.
func List(f Filter) []Row {
	var rows []Row
	for _, name := range load().names {
		if family, _, _ := strings.Cut(name, "."); len(f.Families) > 0 && !slices.Contains(f.Families, family) {
			continue
		}
		t, _ := Lookup(AWS, name)
		if !f.takes(&t) {
			continue
		}
		if r, ok := f.priced(t); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

func (f *Filter) takes(t *policy.InstanceType) bool {
	return (len(f.Categories) == 0 || slices.Contains(f.Categories, t.Category)) &&
		(f.Arch == "" || f.Arch == t.Arch) &&
		t.VCPU >= f.MinVCPU && (f.MaxVCPU == 0 || t.VCPU <= f.MaxVCPU) &&
		t.Capacity.GPU >= f.MinGPUs
}

// priced returns the row of t at the wanted region, or at the cheapest, the
// first by name among equals.
func (f *Filter) priced(t policy.InstanceType) (Row, bool) {
	fields, _ := line(AWS, t.Name)
	best, found := Row{Type: t, MemoryMiB: number(fields[colMemory])}, false
	for i, region := range load().regions {
		p, ok := price(fields[fixedColumns+i])
		if !ok || f.Region != "" && f.Region != region || found && p >= best.OnDemand {
			continue
		}
		best.Region, best.OnDemand, found = region, p, true
	}
	return best, found
}
