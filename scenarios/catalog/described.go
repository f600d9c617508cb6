package catalog

import (
	"fmt"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// A Description is the EC2 description of an instance type that the catalog does not contain.
type Description struct {
	Name            string
	VCPU, MemoryMiB int64

	// GPUs is the number of accelerators, GPUName their model, such as "t4", and GPUKind their
	// make: "nvidia", "amd", "neuron" or "gaudi".
	GPUs             int64
	GPUName, GPUKind string

	// ENIs is the maximum number of network interfaces and IPv4 the maximum number of addresses per
	// interface; both limit the pods. Mbps is the baseline network bandwidth, 0 if not reported.
	ENIs, IPv4, Mbps int64

	// CPUMaker is the manufacturer of the processor: "intel", "amd" or "aws". ClockMHz is its
	// sustained clock speed.
	CPUMaker string
	ClockMHz int64

	// EBSMbps is the maximum bandwidth to EBS volumes of a type that is EBS-optimised by default,
	// and NVMeGB the size of its instance store; 0 means none. Encrypted reports whether traffic
	// between such instances is encrypted.
	EBSMbps, NVMeGB int64
	Encrypted       bool

	// GPUMiB is the memory of each GPU; 0 for accelerators other than GPUs.
	GPUMiB int64
}

// makers maps GPUKind to the manufacturer of the accelerator as EC2 names it.
var makers = map[string]string{"nvidia": "nvidia", "amd": "amd", "neuron": "aws", "gaudi": "habana"}

// device returns the value of the table column that describes the accelerators.
func (d *Description) device() string {
	switch {
	case d.GPUs == 0:
		return ""
	case d.GPUKind == "neuron":
		return fmt.Sprintf("accelerator aws %s %d", d.GPUName, d.GPUs)
	}
	return fmt.Sprintf("gpu %s %s %d %d", makers[d.GPUKind], d.GPUName, d.GPUs, d.GPUMiB)
}

// FromAWS returns the instance type that EC2 describes, with ID 0. It applies the same rules as the
// catalog.
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
