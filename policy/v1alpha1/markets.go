package v1alpha1

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// Take reports whether a node of type t in the region and zone may be bought
// as far as its place and size go. m has its defaults.
func (m *Markets) Take(region, zone string, t *policy.InstanceType) bool {
	return allows(m.Regions, region) && allows(m.Zones, zone) && m.TakeType(t)
}

// TakeType reports whether a node of type t may be bought.
func (m *Markets) TakeType(t *policy.InstanceType) bool {
	switch {
	case !allows(m.InstanceTypes, t.Name), !allows(m.Families, t.Family),
		!allowsCategory(m.Categories, t.Category), !allows(m.Architectures, t.Arch):
		return false
	case m.MinVCPU != nil && t.VCPU < int64(*m.MinVCPU), m.MaxVCPU != nil && t.VCPU > int64(*m.MaxVCPU):
		return false
	case m.MinMemory != nil && nominal(t) < m.MinMemory.Value():
		return false
	case m.MinGPUs != nil && t.Capacity.GPU < int64(*m.MinGPUs):
		return false
	}
	return m.asksFor(t)
}

// asksFor reports whether an exotic type was asked for. What is not exotic
// always was.
func (m *Markets) asksFor(t *policy.InstanceType) bool {
	if len(m.InstanceTypes) > 0 {
		return true
	}
	if strings.Contains(t.Name, ".metal") {
		return false
	}
	if t.Provider == policy.Rackspace && t.Category == "bm" && len(m.Families)+len(m.Categories) == 0 {
		return false
	}
	return t.Capacity.GPU == 0 || len(m.Families) > 0 || len(m.Categories) > 0 || m.MinGPUs != nil && *m.MinGPUs > 0
}

// nominal is the memory as sold. A type of the catalog states it in a label,
// since Capacity is what the kernel sees of it.
func nominal(t *policy.InstanceType) int64 {
	const mib = 1 << 20
	if v, ok := policy.FindLabel(t.Labels, "karpenter.k8s.aws/instance-memory"); ok {
		n := int64(0)
		for _, c := range v {
			n = n*10 + int64(c-'0')
		}
		return n * mib
	}
	return t.Capacity.Memory
}

// allows reports whether list holds v or restricts nothing.
func allows(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

// allowsCategory is allows for categories, those of Rackspace Spot in the words of
// its feed as well.
func allowsCategory(list []string, v string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(c string) bool { return c == v || Category(c) == v })
}

// Category returns the short name of what Rackspace Spot calls a category in its
// feed, such as "gp" for "General Purpose"; any other word comes back as it is.
func Category(word string) string {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "gp", "general purpose":
		return "gp"
	case "ch", "compute heavy":
		return "ch"
	case "mh", "memory heavy":
		return "mh"
	case "bm", "bare metal":
		return "bm"
	case "gpu", "gpu accelerated":
		return "gpu"
	}
	return word
}
