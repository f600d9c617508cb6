package catalog

import (
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// A Description is what EC2 reports of an instance type that the catalog does not
// hold.
type Description struct {
	Name            string
	VCPU, MemoryMiB int64

	// GPUs is the number of accelerators, GPUName their model, as "t4", and GPUKind
	// their make: "nvidia", "amd", "neuron" or "gaudi".
	GPUs             int64
	GPUName, GPUKind string

	// ENIs is the most network interfaces and IPv4 the most addresses of each: they
	// bound the pods. Mbps is the baseline bandwidth, 0 if not reported.
	ENIs, IPv4, Mbps int64
}

// FromAWS returns the type that EC2 describes, by the rules by which the types of
// the catalog are made, with ID 0.
func FromAWS(d Description) policy.InstanceType {
	f := make([]string, fixedColumnsAWS)
	f[colName], f[colGPUName], f[colGPUKind] = d.Name, d.GPUName, d.GPUKind
	for _, n := range []struct {
		column int
		value  int64
	}{
		{colVCPU, d.VCPU}, {colMemory, d.MemoryMiB}, {colGPUs, d.GPUs},
		{colENIs, d.ENIs}, {colIPv4, d.IPv4}, {colMbps, d.Mbps},
	} {
		f[n.column] = strconv.FormatInt(n.value, 10)
	}
	return lookup(AWS, f)
}
