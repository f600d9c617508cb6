package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"strconv"
)

// describedColumns are the columns that hold a description.
var describedColumns = []string{"cpu", "mhz", "ebs_mbps", "nvme_gb", "encrypted", "device"}

// A description is what EC2 reports of a type and Karpenter makes labels of.
type description struct {
	cpu                  string
	mhz, ebsMbps, nvmeGB int64
	encrypted            bool
	device               string // class, maker, model, count and, of a GPU, MiB of each
}

// device is an accelerator as EC2 reports it.
type device struct {
	Name, Manufacturer string
	Count              int64
	MemoryInfo         struct{ SizeInMiB int64 }
}

// readDescriptions reads the output of aws ec2 describe-instance-types.
func readDescriptions(t map[string]*machine, path string) {
	data, err := os.ReadFile(path)
	check(err)
	var doc struct {
		InstanceTypes []struct {
			InstanceType  string
			ProcessorInfo struct {
				Manufacturer             string
				SustainedClockSpeedInGhz float64
			}
			EbsInfo struct {
				EbsOptimizedSupport string
				EbsOptimizedInfo    struct{ MaximumBandwidthInMbps int64 }
			}
			InstanceStorageInfo struct {
				NvmeSupport   string
				TotalSizeInGB int64
			}
			NetworkInfo              struct{ EncryptionInTransitSupported bool }
			GpuInfo                  struct{ Gpus []device }
			InferenceAcceleratorInfo struct{ Accelerators []device }
			NeuronInfo               struct{ NeuronDevices []device }
		}
	}
	check(json.Unmarshal(data, &doc))
	for _, x := range doc.InstanceTypes {
		m := t[x.InstanceType]
		if m == nil {
			continue
		}
		d := &description{
			cpu: slug(x.ProcessorInfo.Manufacturer), mhz: int64(math.Round(x.ProcessorInfo.SustainedClockSpeedInGhz * 1000)),
			encrypted: x.NetworkInfo.EncryptionInTransitSupported,
		}
		if x.EbsInfo.EbsOptimizedSupport == "default" {
			d.ebsMbps = x.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps
		}
		if x.InstanceStorageInfo.NvmeSupport != "unsupported" {
			d.nvmeGB = x.InstanceStorageInfo.TotalSizeInGB
		}
		switch gpus, neuron, others := x.GpuInfo.Gpus, x.NeuronInfo.NeuronDevices, x.InferenceAcceleratorInfo.Accelerators; {
		case len(gpus) == 1:
			d.device = fmt.Sprintf("gpu %s %s %d %d", slug(gpus[0].Manufacturer), slug(gpus[0].Name), gpus[0].Count,
				gpus[0].MemoryInfo.SizeInMiB)
		case len(neuron) == 1:
			d.device = fmt.Sprintf("accelerator aws %s %d", slug(neuron[0].Name), neuron[0].Count)
		case len(others) == 1:
			d.device = fmt.Sprintf("accelerator %s %s %d", slug(others[0].Manufacturer), slug(others[0].Name), others[0].Count)
		}
		m.described = d
	}
	addDescriptions(t)
	for name, m := range t {
		if m.described == nil {
			log.Printf("not described: %s", name)
		}
	}
}

// addDescriptions adds types that EC2 no longer sells in every region, as Karpenter's reference
// of instance types has them.
func addDescriptions(t map[string]*machine) {
	for name, d := range map[string]*description{
		"p3.2xlarge":  {cpu: "intel", mhz: 2700, ebsMbps: 1750, device: "gpu nvidia v100 1 16384"},
		"p3.8xlarge":  {cpu: "intel", mhz: 2700, ebsMbps: 7000, device: "gpu nvidia v100 4 16384"},
		"p3.16xlarge": {cpu: "intel", mhz: 2700, ebsMbps: 14000, device: "gpu nvidia v100 8 16384"},
	} {
		if m := t[name]; m != nil && m.described == nil {
			m.described = d
		}
	}
}

// cellsAWS are the cells of the columns that only AWS has.
func cellsAWS(m *machine) []string {
	cells := []string{strconv.FormatInt(m.enis, 10), strconv.FormatInt(m.ipv4, 10), strconv.FormatInt(m.mbps, 10)}
	d := m.described
	if d == nil {
		return append(cells, make([]string, len(describedColumns))...)
	}
	return append(cells, d.cpu, strconv.FormatInt(d.mhz, 10), strconv.FormatInt(d.ebsMbps, 10),
		strconv.FormatInt(d.nvmeGB, 10),
		strconv.FormatBool(d.encrypted), d.device)
}
