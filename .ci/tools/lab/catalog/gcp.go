package main

import (
	"log"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// A part is an accelerator that a machine of GCP carries. Its price is listed
// apart from the machine's in SkyPilot's list.
type part struct {
	name  string
	count string // as the list writes it
}

// carried are the accelerators of the machine types that cannot be had
// without (Google Cloud documentation, "GPU machine types").
var carried = map[string]part{
	"a2-highgpu-1g": {"A100", "1.0"}, "a2-highgpu-2g": {"A100", "2.0"}, "a2-highgpu-4g": {"A100", "4.0"},
	"a2-highgpu-8g": {"A100", "8.0"}, "a2-megagpu-16g": {"A100", "16.0"},
	"a2-ultragpu-1g": {"A100-80GB", "1.0"}, "a2-ultragpu-2g": {"A100-80GB", "2.0"},
	"a2-ultragpu-4g": {"A100-80GB", "4.0"}, "a2-ultragpu-8g": {"A100-80GB", "8.0"},
	"a3-highgpu-1g": {"H100", "1.0"}, "a3-highgpu-8g": {"H100", "8.0"}, "a3-megagpu-8g": {"H100", "8.0"},
	"g2-standard-4": {"L4", "1.0"}, "g2-standard-8": {"L4", "1.0"}, "g2-standard-12": {"L4", "1.0"},
	"g2-standard-16": {"L4", "1.0"}, "g2-standard-32": {"L4", "1.0"}, "g2-standard-24": {"L4", "2.0"},
	"g2-standard-48": {"L4", "4.0"}, "g2-standard-96": {"L4", "8.0"},
}

// unlistedGCP are the sizes of types that only Coroot prices (Google Cloud
// documentation, "Memory-optimized machine family"), and of one that is sold as
// Spot and Flex-start only and has no price on demand ("GPU machine types").
var unlistedGCP = map[string]machine{
	"a3-highgpu-1g":   {vcpu: 26, memoryMiB: 234 * 1024},
	"m2-ultramem-208": {vcpu: 208, memoryMiB: 5888 * 1024},
	"m2-ultramem-416": {vcpu: 416, memoryMiB: 11776 * 1024},
	"m2-megamem-416":  {vcpu: 416, memoryMiB: 5888 * 1024},
	"m2-hypermem-416": {vcpu: 416, memoryMiB: 8832 * 1024},
}

func generateGCP(dir string) {
	t, zones, parts := map[string]*machine{}, map[string]map[string]bool{}, map[string]map[part]float64{}
	list := filepath.Join(dir, "skypilot_gcp_vms_2024-06-13_ondemand_only.csv")
	rows(list, func(get func(string) string) {
		region, zone := get("Region"), get("AvailabilityZone")
		if zones[region] == nil {
			zones[region], parts[region] = map[string]bool{}, map[part]float64{}
		}
		if letter, ok := strings.CutPrefix(zone, region+"-"); ok {
			zones[region][letter] = true
		}
		if get("InstanceType") == "" {
			parts[region][part{get("AcceleratorName"), get("AcceleratorCount")}] = number(get("Price"))
		}
	})
	rows(list, func(get func(string) string) {
		if name := get("InstanceType"); t[name] == nil && node(name) {
			t[name] = gcpMachine(name, integer(get("vCPUs")), number(get("MemoryGiB")))
		}
	})
	for name, size := range unlistedGCP {
		t[name] = gcpMachine(name, size.vcpu, float64(size.memoryMiB)/1024)
	}
	rows(filepath.Join(dir, coroot), func(get func(string) string) {
		if m := t[get("instance_type")]; m != nil && get("cloud") == "gcp" && zones[get("region")] != nil {
			setPrice(m, get("region"), get("ondemand"))
		}
	})
	rows(list, func(get func(string) string) {
		name, region := get("InstanceType"), get("Region")
		if !node(name) || slices.Contains(sharedCores, name) {
			return
		}
		price := number(get("Price"))
		if p, ok := carried[name]; ok {
			accelerator, known := parts[region][p]
			if !known {
				return
			}
			price += accelerator
		}
		setAmount(t[name], region, price)
	})
	write("gcp.tsv", t, table{
		head: []string{
			"Google Cloud machine types and on-demand prices in $/h (Linux), accelerators included. Facts published",
			"by Google, as listed by SkyPilot's catalog of 2024-06-13 and Coroot's of 2024-08-09; Coroot's wins.",
			"A type that carries accelerators costs the machine and the accelerators, which are priced apart.",
		},
		zones:    letters(zones),
		unpriced: true,
	})
}

// node reports whether a name is that of a machine: not of an accelerator, and
// not of the host of a TPU, which is not sold without it.
func node(name string) bool { return name != "" && !strings.HasSuffix(name, "-tpu") }

// sharedCores are priced by SkyPilot's list as if they had whole cores.
var sharedCores = []string{"e2-micro", "e2-small", "e2-medium"}

func gcpMachine(name string, vcpu int64, memoryGiB float64) *machine {
	m := &machine{name: name, vcpu: vcpu, memoryMiB: int64(math.Round(memoryGiB * 1024)), price: map[string]string{}}
	if p, ok := carried[name]; ok {
		m.gpuKind, m.gpuName, m.gpus = "nvidia", slug(p.name), integer(p.count)
	}
	if m.vcpu == 0 || m.memoryMiB == 0 {
		log.Fatalf("%s: no size", name)
	}
	return m
}
