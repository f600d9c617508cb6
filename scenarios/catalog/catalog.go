// Package catalog knows instance types: their size, the part of it that is left for pods, their pod
// limit and accelerators, and their on-demand price by region.
//
// It holds facts that AWS, Google, Microsoft and Rackspace publish, each as of [Date], in one table
// per provider. A table is cut into lines when its provider is first used, and read in place:
// looking up a type parses one line. Where a provider publishes no figure, the rule that replaces
// it is marked as modelled. The tables are written by .ci/tools/lab/catalog.
package catalog

import (
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// The providers whose types the catalog holds.
const (
	AWS       = policy.AWS
	GCP       = policy.GCP
	Azure     = policy.Azure
	Rackspace = policy.Rackspace
)

// A source is what the catalog has of a provider.
type source struct {
	provider string

	// date is that of the newest list that the table was made from, and facts says in one line where
	// its facts come from.
	date, facts string

	table    func() *table
	describe func(t *policy.InstanceType, f []string, memoryMiB int64)
}

// sources are in the order in which providers are listed.
var sources = []source{
	{AWS, "2026-08-21",
		"AWS public pricing as listed by SkyPilot (2024-06-13), Coroot (2024-08-09) and Karpenter (2026-08-21); labels of types by EC2's descriptions (2026-05)",
		lazily(awsText, fixedColumnsAWS), describeAWS},
	{GCP, "2024-08-09", "Google Cloud public pricing as listed by SkyPilot (2024-06-13) and Coroot (2024-08-09)",
		lazily(gcpText, fixedColumns), describeGCP},
	{Azure, "2024-08-09", "Azure public pricing as listed by SkyPilot (2024-06-13) and Coroot (2024-08-09), Linux",
		lazily(azureText, fixedColumns), describeAzure},
	{Rackspace, "2026-07-13",
		"Rackspace Spot's public feed (2026-05-26 to 2026-07-13); on-demand prices are modelled: " + modelledRule,
		lazily(rackspaceText, fixedColumns), describeRackspace},
}

// sourceOf returns the source of a provider, an empty one for a provider that is not in the catalog.
func sourceOf(provider string) source {
	i := slices.IndexFunc(sources, func(s source) bool { return s.provider == provider })
	if i < 0 {
		return source{table: func() *table { return nil }}
	}
	return sources[i]
}

// tableOf returns the table of provider, nil for one that has none.
func tableOf(provider string) *table { return sourceOf(provider).table() }

// Providers returns the providers in the order in which they are listed.
func Providers() []string { return []string{AWS, GCP, Azure, Rackspace} }

// Date returns the date of the newest list that the table of provider was made
// from; empty for a provider that is not in the catalog.
func Date(provider string) string { return sourceOf(provider).date }

// Sources says in one line where the facts about provider come from; empty for
// a provider that is not in the catalog.
func Sources(provider string) string { return sourceOf(provider).facts }

// Types returns the names of the types of provider in order; none for a
// provider that is not in the catalog.
func Types(provider string) []string {
	if t := tableOf(provider); t != nil {
		return slices.Clone(t.names)
	}
	return nil
}

// Regions returns the regions in which provider sells types of the catalog, in
// order.
func Regions(provider string) []string {
	if t := tableOf(provider); t != nil {
		return slices.Clone(t.regions)
	}
	return nil
}

// OnDemand returns the published price of one node for one hour on demand, and
// whether it is known. Rackspace publishes none: see [OnDemandModelled].
func OnDemand(provider, region, name string) (policy.Money, bool) {
	t := tableOf(provider)
	if t == nil {
		return 0, false
	}
	f, ok := t.line(name)
	if !ok {
		return 0, false
	}
	r, ok := slices.BinarySearch(t.regions, region)
	if !ok {
		return 0, false
	}
	return price(f[t.fixed+r])
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
	t := tableOf(provider)
	if t == nil {
		return policy.InstanceType{}, false
	}
	f, ok := t.line(name)
	if !ok {
		return policy.InstanceType{}, false
	}
	return lookup(provider, f), true
}

// lookup reads the line of a type.
func lookup(provider string, f []string) policy.InstanceType {
	t := policy.InstanceType{
		Provider:    provider,
		Name:        f[colName],
		VCPU:        number(f[colVCPU]),
		GPUResource: resourceOf[f[colGPUKind]],
		GPUName:     f[colGPUName],
	}
	memoryMiB := number(f[colMemory])
	t.Capacity = policy.Resources{CPU: t.VCPU * 1000, GPU: number(f[colGPUs])}
	sourceOf(provider).describe(&t, f, memoryMiB)
	return t
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
