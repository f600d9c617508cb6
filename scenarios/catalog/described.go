package catalog

import (
	"fmt"
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

	// CPUMaker made the processor: "intel", "amd" or "aws". ClockMHz is its sustained speed.
	CPUMaker string
	ClockMHz int64

	// EBSMbps is the most bandwidth to volumes of a type that is optimised for them by
	// default, NVMeGB the size of its own disks; 0 for none. Encrypted reports whether
	// traffic between such instances is encrypted.
	EBSMbps, NVMeGB int64
	Encrypted       bool

	// GPUMiB is the memory of each GPU; 0 for accelerators other than GPUs.
	GPUMiB int64
}

// makers are the makers of accelerators as EC2 names them, by GPUKind.
var makers = map[string]string{"nvidia": "nvidia", "amd": "amd", "neuron": "aws", "gaudi": "habana"}

// device returns the column that describes the accelerators.
func (d *Description) device() string {
	switch {
	case d.GPUs == 0:
		return ""
	case d.GPUKind == "neuron":
		return fmt.Sprintf("accelerator aws %s %d", d.GPUName, d.GPUs)
	}
	return fmt.Sprintf("gpu %s %s %d %d", makers[d.GPUKind], d.GPUName, d.GPUs, d.GPUMiB)
}

// FromAWS returns the type that EC2 describes, by the rules by which the types of
// the catalog are made, with ID 0.
func FromAWS(d Description) policy.InstanceType {
	f := make([]string, fixedColumnsAWS)
	f[colName], f[colGPUName], f[colGPUKind] = d.Name, d.GPUName, d.GPUKind
	f[colCPU], f[colEncrypted], f[colDevice] = d.CPUMaker, strconv.FormatBool(d.Encrypted), d.device()
	for _, n := range []struct {
		column int
		value  int64
	}{
		{colVCPU, d.VCPU}, {colMemory, d.MemoryMiB}, {colGPUs, d.GPUs},
		{colENIs, d.ENIs}, {colIPv4, d.IPv4}, {colMbps, d.Mbps},
		{colMHz, d.ClockMHz}, {colEBSMbps, d.EBSMbps}, {colNVMeGB, d.NVMeGB},
	} {
		f[n.column] = strconv.FormatInt(n.value, 10)
	}
	return lookup(AWS, f)
}
