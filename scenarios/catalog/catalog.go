// Package catalog knows instance types: their size, what of it is left for
// pods, their pod limit and accelerators, and their on-demand price by region.
//
// It holds facts that AWS publishes, as of [Date], in a table that is read in
// place: looking one type up parses one line.
package catalog

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spotter-dev/spotter/policy"
)

//go:generate go run gen.go

//go:embed catalog.tsv
var text string

// AWS is the provider whose types the catalog holds.
const AWS = "aws"

// Date returns the date of the newest list that the table was made from.
func Date() string { return "2026-08-21" }

// Sources says in one line where the facts come from.
func Sources() string {
	return "AWS public pricing as listed by SkyPilot (2024-06-13), Coroot (2024-08-09) and Karpenter (2026-08-21)"
}

// The columns of the table before the prices.
const (
	colName = iota
	colVCPU
	colMemory
	colENIs
	colIPv4
	colMbps
	colGPUs
	colGPUName
	colGPUKind
	fixedColumns
)

// A table is the text cut into lines, ascending by name.
type table struct {
	names   []string
	lines   []string
	regions []string
}

var load = sync.OnceValue(func() *table {
	t := &table{names: make([]string, 0, 1024), lines: make([]string, 0, 1024)}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, _, _ := strings.Cut(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case name == "type":
			t.regions = strings.Split(line, "\t")[fixedColumns:]
		default:
			t.names, t.lines = append(t.names, name), append(t.lines, line)
		}
	}
	return t
})

// line returns the fields of a type's line.
func line(provider, name string) ([]string, bool) {
	if provider != AWS {
		return nil, false
	}
	t := load()
	i, ok := slices.BinarySearch(t.names, name)
	if !ok {
		return nil, false
	}
	return strings.Split(t.lines[i], "\t"), true
}

// Types returns the names of the types of provider in order; none for a
// provider that is not in the catalog.
func Types(provider string) []string {
	if provider != AWS {
		return nil
	}
	return slices.Clone(load().names)
}

// Regions returns the regions of provider for which there are prices, in order.
func Regions(provider string) []string {
	if provider != AWS {
		return nil
	}
	return slices.Clone(load().regions)
}

// OnDemand returns the price of one node for one hour on demand, and whether
// it is known.
func OnDemand(provider, region, name string) (policy.Money, bool) {
	f, ok := line(provider, name)
	if !ok {
		return 0, false
	}
	r, ok := slices.BinarySearch(load().regions, region)
	if !ok {
		return 0, false
	}
	return price(f[fixedColumns+r])
}

func price(field string) (policy.Money, bool) {
	x, err := strconv.ParseFloat(field, 64)
	if err != nil || x <= 0 {
		return 0, false
	}
	return policy.Dollars(x), true
}

// Lookup returns the type of provider called name, with ID 0, and whether the
// catalog holds it. Each call returns slices of its own.
func Lookup(provider, name string) (policy.InstanceType, bool) {
	f, ok := line(provider, name)
	if !ok {
		return policy.InstanceType{}, false
	}
	family, _, _ := strings.Cut(name, ".")
	t := policy.InstanceType{
		Provider:    AWS,
		Name:        name,
		Family:      family,
		Category:    category(family),
		Arch:        arch(family),
		VCPU:        number(f[colVCPU]),
		GPUResource: resourceOf[f[colGPUKind]],
		GPUName:     f[colGPUName],
		VolumesMax:  volumesMax(family, name),
		NetworkMbps: number(f[colMbps]),
	}
	memoryMiB := number(f[colMemory])
	t.Capacity = policy.Resources{
		CPU:     t.VCPU * 1000,
		Memory:  seenByKernel(memoryMiB * mib),
		Storage: rootVolume,
		GPU:     number(f[colGPUs]),
		Pods:    podsMax(number(f[colENIs]), number(f[colIPv4])),
	}
	t.Allocatable = allocatable(t.Capacity)
	t.Labels = labels(&t, memoryMiB)
	return t, true
}

// resourceOf names the extended resource by which a kind of accelerator is
// offered to pods.
var resourceOf = map[string]string{
	"nvidia": "nvidia.com/gpu",
	"amd":    "amd.com/gpu",
	"neuron": "aws.amazon.com/neuron",
	"gaudi":  "habana.ai/gaudi",
}

func number(field string) int64 {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		panic("catalog: field " + strconv.Quote(field) + " of the embedded table is not a number")
	}
	return n
}
