package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spotter-dev/spotter/policy"
)

// modelledRegion is the AWS region of the substitute prices for Rackspace. It is the same for all
// regions of Rackspace, so that they differ only by their own auctions.
const modelledRegion = "us-east-1"

// modelledRule describes how a price that is not published is derived.
const modelledRule = "the cheapest AWS type of " + modelledRegion + " with at least its vCPU, memory and GPUs"

// OnDemandModelled returns a substitute for the on-demand price of one node per hour where the
// provider publishes no price, and a description of its derivation, which is printed with it.
//
// For a Rackspace class, it is the price of the cheapest AWS type of us-east-1 with the same
// architecture and at least its vCPU, memory and GPUs. Types that have their full CPU performance
// only at times (the T families and -flex) are excluded, since a Rackspace node always has it.
// Rackspace itself only states that its on-demand prices follow the Spot prices of other clouds. A
// machine type of Google Cloud that is sold only as Spot has its share of the price of the whole
// machine. Other types have no modelled price.
func OnDemandModelled(provider, region, name string) (price policy.Money, basis string, ok bool) {
	if provider == GCP {
		return shareOnDemand(region, name)
	}
	if provider != Rackspace {
		return 0, "", false
	}
	t := tableOf(Rackspace)
	f, known := t.line(name)
	r, sold := slices.BinarySearch(t.regions, region)
	if !known || !sold || f[t.fixed+r] == "" {
		return 0, "", false
	}
	i := slices.IndexFunc(standIns(), func(s standIn) bool {
		return s.vcpu >= number(f[colVCPU]) && s.memoryMiB >= number(f[colMemory]) &&
			s.gpus >= number(f[colGPUs]) && (f[colGPUKind] == "" || s.gpuKind == f[colGPUKind])
	})
	if i < 0 {
		return 0, "", false
	}
	s := standIns()[i]
	return s.price, "modelled: " + s.name + ", " + modelledRule, true
}

// OnDemandOrModelled returns the published on-demand price of one node per hour, or else the
// modelled one with a description of its derivation. The price is 0 if neither is known.
func OnDemandOrModelled(provider, region, name string) (price policy.Money, basis string) {
	if price, published := OnDemand(provider, region, name); published {
		return price, ""
	}
	price, basis, _ = OnDemandModelled(provider, region, name)
	return price, basis
}

// A portion is a machine type that is a fraction of a larger one, which is the only one sold on
// demand.
type portion struct {
	of    string
	parts policy.Money

	// also are the regions in which the type was recorded although the larger one has no published
	// price there. They use the price of us-central1.
	also []string
}

// portions are the machine types of Google Cloud that are sold only as Spot and Flex-start (Google
// Cloud documentation, "GPU machine types").
var portions = map[string]portion{"a3-highgpu-1g": {"a3-highgpu-8g", 8, []string{"asia-south2", "europe-west3"}}}

// shareOnDemand returns the fraction of the larger type's price that corresponds to a portion.
func shareOnDemand(region, name string) (price policy.Money, basis string, ok bool) {
	p, ok := portions[name]
	if !ok {
		return 0, "", false
	}
	if slices.Contains(p.also, region) {
		region = "us-central1"
	}
	whole, ok := OnDemand(GCP, region, p.of)
	if !ok {
		return 0, "", false
	}
	return whole / p.parts, fmt.Sprintf("modelled: 1/%d of %s in %s, as it is not sold on demand", p.parts, p.of,
		region), true
}

// A standIn is an instance type whose price may substitute for the price of another provider's
// type.
type standIn struct {
	name                  string
	vcpu, memoryMiB, gpus int64
	gpuKind               string
	price                 policy.Money
}

// standIns returns the substitutes from AWS, the cheapest first.
var standIns = sync.OnceValue(func() []standIn {
	var all []standIn
	t := tableOf(AWS)
	r, _ := slices.BinarySearch(t.regions, modelledRegion)
	for _, name := range t.names {
		f, _ := t.line(name)
		family, _, _ := strings.Cut(name, ".")
		p, sold := price(f[t.fixed+r])
		if !sold || category(family) == "t" || strings.HasSuffix(family, "-flex") || arch(family) != "amd64" {
			continue
		}
		all = append(all, standIn{
			name: name, vcpu: number(f[colVCPU]), memoryMiB: number(f[colMemory]),
			gpus: number(f[colGPUs]), gpuKind: f[colGPUKind], price: p,
		})
	}
	slices.SortFunc(all, func(a, b standIn) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.name, b.name))
	})
	return all
})
