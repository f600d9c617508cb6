// Catalog writes the tables of scenarios/catalog from recordings of the providers' public lists. It
// needs the folder of recordings and the output of `aws ec2 describe-instance-types`, which are not
// part of the project. In .ci/tools/lab:
//
//	SPOTTER_DATA=/path/to/data SPOTTER_EC2_TYPES=types.json go run ./catalog
package main

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A machine is one line of the table.
type machine struct {
	name       string
	vcpu       int64
	memoryMiB  int64
	enis, ipv4 int64
	mbps       int64
	gpus       int64
	gpuName    string
	gpuKind    string
	described  *description // nil where EC2 describes the type no longer
	price      map[string]string
}

// A table is the part of a file before the machines: comments, the names of the provider's own
// columns, and the letters of the zones of each region.
type table struct {
	head  []string
	own   []string
	cells func(*machine) []string
	zones map[string]string

	// unpriced keeps machines without a price.
	unpriced bool
}

// coroot is the list of three providers.
const coroot = "aws_gcp_azure_ondemand_coroot_2024-08-09.csv"

func main() {
	log.SetFlags(0)
	dir := cmp.Or(os.Getenv("SPOTTER_DATA"), filepath.Join("..", "..", "..", "..", "shared", "data"))
	generateAWS(filepath.Join(dir, "catalog"))
	generateGCP(filepath.Join(dir, "catalog"))
	generateAzure(filepath.Join(dir, "catalog"))
	generateRackspace(filepath.Join(dir, "prices"))
}

func generateAWS(dir string) {
	t, zones := map[string]*machine{}, map[string]map[string]bool{}
	readSkyPilot(t, zones, filepath.Join(dir, "skypilot_aws_vms_2024-06-13_ondemand_only.csv"))
	readAdvisor(t, filepath.Join(dir, "spot-advisor-data_2025-06-28.json"))
	addRetired(t)
	readPrices(t, filepath.Join(dir, coroot), "cloud")
	readPrices(t, filepath.Join(dir, "karpenter_ondemand_2026-08-21.csv"), "")
	readLimits(t, filepath.Join(dir, "karpenter_vpclimits_2026-08-21.csv"))
	addLimits(t)
	readBandwidth(t, filepath.Join(dir, "karpenter_bandwidth_mbps_2026-08-21.csv"))
	readDescriptions(t, os.Getenv("SPOTTER_EC2_TYPES"))
	for name, m := range t {
		if m.enis == 0 {
			log.Printf("left out: %s (no pod limit)", name)
			delete(t, name)
		}
	}
	write("aws.tsv", t, table{
		head: []string{
			"AWS instance types and on-demand prices in $/h (Linux, shared tenancy). Facts published by AWS, as",
			"listed by SkyPilot's catalog of 2024-06-13, Coroot's of 2024-08-09 and Karpenter's of 2026-08-21; sizes of",
			"newer types from the AWS Spot Instance Advisor of 2025-06-28. The oldest list wins. The columns from cpu to",
			"device are what EC2's DescribeInstanceTypes returns, as listed by Moto 5.2.1 (2026-05), and for p3 by Karpenter's",
			"reference of instance types; they are empty for types that neither lists.",
		},
		own:   append([]string{"enis", "ipv4_per_eni", "mbps"}, describedColumns...),
		cells: cellsAWS,
		zones: numbered(zones),
	})
}

// accelerators maps SkyPilot's names to the extended resource by which their
// device plugin offers them. What is not here is no accelerator for a pod.
var accelerators = map[string]string{
	"A10G": "nvidia", "L4": "nvidia", "T4": "nvidia", "T4g": "nvidia", "M60": "nvidia",
	"K80": "nvidia", "K520": "nvidia", "M2050": "nvidia", "V100": "nvidia", "V100-32GB": "nvidia",
	"A100": "nvidia", "A100-80GB": "nvidia", "H100": "nvidia", "Radeon Pro V520": "amd",
	"Inferentia": "neuron", "Trainium": "neuron", "Gaudi HL-205": "gaudi",
}

func readSkyPilot(t map[string]*machine, zones map[string]map[string]bool, path string) {
	rows(path, func(get func(string) string) {
		name := get("InstanceType")
		if region := get("Region"); zones[region] == nil {
			zones[region] = map[string]bool{}
		}
		zones[get("Region")][get("AvailabilityZone")] = true
		if !linux(name) {
			return
		}
		m := t[name]
		if m == nil {
			m = &machine{name: name, vcpu: integer(get("vCPUs")), price: map[string]string{}}
			m.memoryMiB = int64(math.Round(number(get("MemoryGiB")) * 1024))
			if kind, ok := accelerators[get("AcceleratorName")]; ok && number(get("AcceleratorCount")) >= 1 {
				m.gpuKind, m.gpuName, m.gpus = kind, slug(get("AcceleratorName")), integer(get("AcceleratorCount"))
			}
			t[name] = m
		}
		setPrice(m, get("Region"), get("Price"))
	})
}

// readAdvisor adds the sizes of newer types without accelerators.
func readAdvisor(t map[string]*machine, path string) {
	data, err := os.ReadFile(path)
	check(err)
	var doc struct {
		Types map[string]struct {
			Cores int64   `json:"cores"`
			RAM   float64 `json:"ram_gb"`
		} `json:"instance_types"`
	}
	check(json.Unmarshal(data, &doc))
	for name, x := range doc.Types {
		if t[name] != nil || !linux(name) || strings.ContainsAny(name[:1], "gpft") && name[:1] != "t" {
			continue
		}
		if strings.HasPrefix(name, "trn") || strings.HasPrefix(name, "inf") || strings.HasPrefix(name, "dl") {
			continue
		}
		t[name] = &machine{name: name, vcpu: x.Cores, memoryMiB: int64(x.RAM * 1024), price: map[string]string{}}
	}
}

// addRetired adds types that were traded in 2016 and have left every price
// list since, with the sizes and us-east-1 prices that AWS published then.
func addRetired(t map[string]*machine) {
	for _, m := range []*machine{
		{name: "cg1.4xlarge", vcpu: 16, memoryMiB: 23040, gpus: 2, gpuName: "m2050", gpuKind: "nvidia",
			price: map[string]string{"us-east-1": "2.1"}},
		{name: "cr1.8xlarge", vcpu: 32, memoryMiB: 249856, price: map[string]string{"us-east-1": "3.5"}},
		{name: "hi1.4xlarge", vcpu: 16, memoryMiB: 61952, price: map[string]string{"us-east-1": "3.1"}},
		{name: "g2.2xlarge", vcpu: 8, memoryMiB: 15360, gpus: 1, gpuName: "k520", gpuKind: "nvidia",
			price: map[string]string{"us-east-1": "0.65"}},
		{name: "g2.8xlarge", vcpu: 32, memoryMiB: 61440, gpus: 4, gpuName: "k520", gpuKind: "nvidia",
			price: map[string]string{"us-east-1": "2.6"}},
	} {
		if t[m.name] == nil {
			t[m.name] = m
		}
	}
}

// readPrices adds the prices that the older lists lack.
func readPrices(t map[string]*machine, path, cloud string) {
	rows(path, func(get func(string) string) {
		if m := t[get("instance_type")]; m != nil && (cloud == "" || get(cloud) == "aws") {
			setPrice(m, get("region"), get("ondemand"))
		}
	})
}

func readLimits(t map[string]*machine, path string) {
	rows(path, func(get func(string) string) {
		if m := t[get("instance_type")]; m != nil {
			m.enis, m.ipv4 = integer(get("enis")), integer(get("ipv4_per_eni"))
		}
	})
}

// addLimits fills in network interfaces and addresses of types that have left
// Karpenter's table, from AWS's documentation of network interfaces.
func addLimits(t map[string]*machine) {
	for name, l := range map[string][2]int64{
		"cg1.4xlarge": {8, 30}, "cr1.8xlarge": {8, 30}, "hi1.4xlarge": {8, 30},
		"g2.2xlarge": {4, 15}, "g2.8xlarge": {8, 30},
		"g3s.xlarge": {4, 15}, "g3.4xlarge": {8, 30}, "g3.8xlarge": {8, 30}, "g3.16xlarge": {15, 50},
		"p2.xlarge": {4, 15}, "p2.8xlarge": {8, 30}, "p2.16xlarge": {8, 30},
		"u-9tb1.112xlarge": {15, 50}, "u-12tb1.112xlarge": {15, 50},
		"u-18tb1.112xlarge": {15, 50}, "u-24tb1.112xlarge": {15, 50},
		"hpc6a.48xlarge": {2, 50}, "hpc6id.32xlarge": {2, 50},
		"hpc7a.12xlarge": {4, 50}, "hpc7a.24xlarge": {4, 50}, "hpc7a.48xlarge": {4, 50}, "hpc7a.96xlarge": {4, 50},
	} {
		if m := t[name]; m != nil && m.enis == 0 {
			m.enis, m.ipv4 = l[0], l[1]
		}
	}
}

func readBandwidth(t map[string]*machine, path string) {
	rows(path, func(get func(string) string) {
		if m := t[get("instance_type")]; m != nil {
			m.mbps = integer(get("mbps"))
		}
	})
}

// write writes the machines ascending by name.
func write(path string, t map[string]*machine, shape table) {
	var names []string
	regions := map[string]bool{}
	for name, m := range t {
		if len(m.price) == 0 && !shape.unpriced {
			log.Printf("left out of %s: %s (no price)", path, name)
			continue
		}
		names = append(names, name)
		for r := range m.price {
			regions[r] = true
		}
	}
	slices.Sort(names)
	columns := slices.Sorted(maps.Keys(regions))
	f, err := os.Create(filepath.Join("..", "..", "..", "scenarios", "catalog", path))
	check(err)
	w := bufio.NewWriter(f)
	for _, line := range append(shape.head, "Written by .ci/tools/lab/catalog.") {
		fmt.Fprintln(w, "# "+line)
	}
	fixed := append([]string{"type", "vcpu", "memory_mib", "gpus", "gpu", "kind"}, shape.own...)
	fmt.Fprintln(w, strings.Join(append(slices.Clone(fixed), columns...), "\t"))
	if shape.zones != nil {
		fmt.Fprint(w, "zones", strings.Repeat("\t", len(fixed)-1))
		for _, r := range columns {
			fmt.Fprint(w, "\t", shape.zones[r])
		}
		fmt.Fprintln(w)
	}
	for _, name := range names {
		m := t[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s", m.name, m.vcpu, m.memoryMiB, m.gpus, m.gpuName, m.gpuKind)
		if shape.cells != nil {
			fmt.Fprint(w, "\t", strings.Join(shape.cells(m), "\t"))
		}
		for _, r := range columns {
			fmt.Fprint(w, "\t", m.price[r])
		}
		fmt.Fprintln(w)
	}
	check(w.Flush())
	check(f.Close())
	log.Printf("%s: %d types, %d regions", path, len(names), len(columns))
}

// letters joins the letters of each region's zones, ascending.
func letters(zones map[string]map[string]bool) map[string]string {
	all := map[string]string{}
	for region, z := range zones {
		all[region] = strings.Join(slices.Sorted(maps.Keys(z)), "")
	}
	return all
}

// numbered gives as many letters as a region has zones, from a on: which zone
// of AWS an account calls a differs by account.
func numbered(zones map[string]map[string]bool) map[string]string {
	all := map[string]string{}
	for region, z := range zones {
		all[region] = "abcdefghij"[:len(z)]
	}
	return all
}

// linux reports whether name is a type that can be a Linux node.
func linux(name string) bool { return strings.Contains(name, ".") && !strings.HasPrefix(name, "mac") }

func setPrice(m *machine, region, price string) {
	if x, err := strconv.ParseFloat(price, 64); err == nil {
		setAmount(m, region, x)
	}
}

// setAmount sets the price of m in region unless it is known.
func setAmount(m *machine, region string, x float64) {
	if _, known := m.price[region]; known || x <= 0 {
		return
	}
	m.price[region] = strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64)
}

func slug(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

func integer(s string) int64 { return int64(number(s)) }

func number(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	check(err)
	return x
}

func rows(path string, row func(get func(string) string)) {
	f, err := os.Open(path)
	check(err)
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	check(err)
	column := map[string]int{}
	for i, h := range head {
		column[h] = i
	}
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return
		}
		check(err)
		row(func(name string) string { return rec[column[name]] })
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
