package catalog

import (
	"reflect"
	"testing"
)

// A type that EC2 describes comes out as the catalog has it.
func TestFromAWSAgreesWithTheCatalog(t *testing.T) {
	for _, d := range []Description{
		{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, ENIs: 3, IPv4: 10, Mbps: 750, CPUMaker: "intel", ClockMHz: 3100, EBSMbps: 4750},
		{
			Name: "g4dn.xlarge", VCPU: 4, MemoryMiB: 16384, GPUs: 1, GPUName: "t4", GPUKind: "nvidia", ENIs: 3, IPv4: 10, Mbps: 5000,
			CPUMaker: "intel", ClockMHz: 2500, EBSMbps: 3500, NVMeGB: 125, Encrypted: true, GPUMiB: 16384,
		},
		{
			Name: "trn1.2xlarge", VCPU: 8, MemoryMiB: 32768, GPUs: 1, GPUName: "trainium", GPUKind: "neuron", ENIs: 4, IPv4: 15, Mbps: 3125,
			CPUMaker: "intel", ClockMHz: 3500, EBSMbps: 20000, NVMeGB: 474, Encrypted: true,
		},
	} {
		want, ok := Lookup(AWS, d.Name)
		if !ok {
			t.Fatalf("the catalog has no %s", d.Name)
		}
		if got := FromAWS(d); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", d.Name, got, want)
		}
	}
}
