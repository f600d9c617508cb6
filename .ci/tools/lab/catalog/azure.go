package main

import (
	"cmp"
	"log"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// azureName takes a size apart: letters, cores, cores left on (constrained
// sizes), features, the rest.
var azureName = regexp.MustCompile(`^(?:Standard|Basic)_([A-Z]+)(\d+)(?:-(\d+))?([a-z]*)((?:_[A-Za-z0-9]+)*)$`)

// azureMemory are the GiB per core of series that SkyPilot's list lacks, up to
// as many cores as the ratio holds for (Azure documentation of the series).
var azureMemory = []struct {
	pattern     string
	gib, toCore int64
}{
	{`^Standard_D\d+[ad]*[n]?[ad]*l[ad]*s_v6$`, 2, 128},
	{`^Standard_DC?\d+[adn]*s_v6$`, 4, 128},
	{`^Standard_DC\d+ed?s_v5$`, 4, 128},
	{`^Standard_EC?\d+(-\d+)?[adn]*s_v6$`, 8, 64},
	{`^Standard_F\d+al[d]?s_v6$`, 2, 64},
	{`^Standard_F\d+a[d]?s_v6$`, 4, 64},
	{`^Standard_F\d+am[d]?s_v6$`, 8, 64},
	{`^Standard_FX\d+(-\d+)?m[d]?s_v2$`, 21, 64},
	{`^Standard_H(8|16)r?(_Promo)?$`, 7, 64},
	{`^Standard_H(8|16)mr?(_Promo)?$`, 14, 64},
}

// azureSizes are single sizes that SkyPilot's list lacks (Azure documentation).
var azureSizes = map[string]machine{
	"Standard_A8": {vcpu: 8, memoryMiB: 56 << 10}, "Standard_A9": {vcpu: 16, memoryMiB: 112 << 10},
	"Standard_A10": {vcpu: 8, memoryMiB: 56 << 10}, "Standard_A11": {vcpu: 16, memoryMiB: 112 << 10},
	"Standard_D15i_v2": {vcpu: 20, memoryMiB: 140 << 10}, "Standard_DS15i_v2": {vcpu: 20, memoryMiB: 140 << 10},
	"Standard_E96iads_v5": {vcpu: 96, memoryMiB: 672 << 10}, "Standard_E96ias_v5": {vcpu: 96, memoryMiB: 672 << 10},
	"Standard_E96ads_v6": {vcpu: 96, memoryMiB: 672 << 10}, "Standard_E96as_v6": {vcpu: 96, memoryMiB: 672 << 10},
	"Standard_E96ds_v6": {vcpu: 96, memoryMiB: 768 << 10}, "Standard_E96s_v6": {vcpu: 96, memoryMiB: 768 << 10},
	"Standard_E128ds_v6": {vcpu: 128, memoryMiB: 1024 << 10}, "Standard_E128s_v6": {vcpu: 128, memoryMiB: 1024 << 10},
	"Standard_ND96asr_A100_v4": {vcpu: 96, memoryMiB: 900 << 10, gpus: 8, gpuName: "a100", gpuKind: "nvidia"},
	"Standard_ND96ams_A100_v4": {vcpu: 96, memoryMiB: 1900 << 10, gpus: 8, gpuName: "a100-80gb", gpuKind: "nvidia"},
}

// noNode are names of the lists that are not sizes of one virtual machine, or
// whose accelerators the lists do not state.
var noNode = regexp.MustCompile(`Type ?\d| |^Standard_(ND48s_H100_v5|ND40s_v3|NC(8|16|32)ads_A10_v4|NG|PB)`)

// eightH100 have 8 (Azure documentation, "ND H100 v5 series"); SkyPilot's list
// counts 12.
var eightH100 = []string{"Standard_ND96is_H100_v5", "Standard_ND96isr_H100_v5"}

// trial matches regions that are not open to every customer, or not priced in
// dollars.
var trial = regexp.MustCompile(`^(Global|china.*|att.*|.*euap|.*stg|eastusslv|uksouth2|uknorth|sgx.*)$`)

func generateAzure(dir string) {
	t, windows := map[string]*machine{}, map[string]float64{}
	linux := map[string]map[string]float64{} // $/h by type and region
	rows(filepath.Join(dir, "skypilot_azure_vms_2024-06-13.csv"), func(get func(string) string) {
		name := get("InstanceType")
		if noNode.MatchString(name) {
			return
		}
		if t[name] == nil {
			t[name] = azureMachine(name, get)
			linux[name] = map[string]float64{}
		}
		// Promotional sizes are listed at their Spot price.
		if x, err := strconv.ParseFloat(get("Price"), 64); err == nil && !strings.HasSuffix(name, "_Promo") {
			linux[name][get("Region")] = x
		}
	})
	listed := map[string]map[string]float64{}
	rows(filepath.Join(dir, coroot), func(get func(string) string) {
		name, region := get("instance_type"), get("region")
		x, err := strconv.ParseFloat(get("ondemand"), 64)
		if get("cloud") != "azure" || err != nil || x <= 0 || noNode.MatchString(name) || trial.MatchString(region) {
			return
		}
		if t[name] == nil {
			m := unlistedAzure(t, name)
			if m == nil {
				return
			}
			t[name] = m
		}
		if listed[name] == nil {
			listed[name] = map[string]float64{}
		}
		listed[name][region] = x
	})
	for name, m := range t {
		windows[name] = surcharge(m, linux[name], listed[name])
	}
	settle(t, linux, listed, windows)
	write("azure.tsv", t, table{unpriced: true, head: []string{
		"Azure virtual machine sizes and on-demand prices in $/h (Linux). Facts published by Microsoft, as listed by",
		"SkyPilot's catalog of 2024-06-13 (regions of the United States) and Coroot's of 2024-08-09. Coroot's list gives",
		"now the price for Linux and now that for Windows; the lower one is taken where a series shows which it is,",
		"and where it does not the price is left out. A size is listed without any price where it was traded.",
	}})
}

func azureMachine(name string, get func(string) string) *machine {
	m := &machine{name: name, vcpu: cores(name, integer(get("vCPUs"))), price: map[string]string{}}
	m.memoryMiB = int64(math.Round(number(get("MemoryGiB")) * 1024))
	if gpu := get("AcceleratorName"); gpu != "" {
		m.gpuKind, m.gpuName, m.gpus = "nvidia", slug(gpu), integer(get("AcceleratorCount"))
		if strings.HasPrefix(gpu, "Radeon") {
			m.gpuKind = "amd"
		}
	}
	if slices.Contains(eightH100, name) {
		m.gpus = 8
	}
	return m
}

// cores returns the cores that are left on of a constrained size, whose list
// entry has those of the size that it is made from.
func cores(name string, vcpu int64) int64 {
	if parts := azureName.FindStringSubmatch(name); parts != nil && parts[3] != "" {
		return integer(parts[3])
	}
	return vcpu
}

// unlistedAzure returns a type that SkyPilot's list lacks, nil if its size is
// not known.
func unlistedAzure(t map[string]*machine, name string) *machine {
	parts := azureName.FindStringSubmatch(name)
	if m, ok := azureSizes[name]; ok {
		m.name, m.price = name, map[string]string{}
		return &m
	}
	if parts == nil {
		return nil
	}
	if parts[3] != "" {
		whole := strings.Replace(name, "-"+parts[3], "", 1)
		m := t[whole]
		if m == nil {
			m = unlistedAzure(t, whole)
		}
		if m == nil {
			return nil
		}
		return &machine{name: name, vcpu: integer(parts[3]), memoryMiB: m.memoryMiB, price: map[string]string{}}
	}
	vcpu := integer(parts[2])
	for _, rule := range azureMemory {
		if vcpu <= rule.toCore && regexp.MustCompile(rule.pattern).MatchString(name) {
			return &machine{name: name, vcpu: cores(name, vcpu), memoryMiB: vcpu * rule.gib << 10, price: map[string]string{}}
		}
	}
	return nil
}

// surcharge returns what Windows adds to the price of m: the usual difference
// of the lists in the regions that both have, else $0.046 per core.
func surcharge(m *machine, linux, listed map[string]float64) float64 {
	var seen []float64
	for region, x := range linux {
		if d := listed[region] - x; d > 1e-4 {
			seen = append(seen, math.Round(d*1e4)/1e4)
		}
	}
	if len(seen) < 3 {
		return 0.046 * float64(m.vcpu)
	}
	slices.Sort(seen)
	return seen[len(seen)/2]
}

// settle sets the prices of every type in every region: SkyPilot's, unless it
// is Coroot's with the surcharge, and else Coroot's with or without it.
func settle(t map[string]*machine, linux, listed map[string]map[string]float64, windows map[string]float64) {
	base, series := map[string]float64{}, map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for region, x := range linux[name] {
			if c := listed[name][region]; c > 0 && math.Abs(x-c-windows[name]) < 1e-3 {
				x = c
			}
			setAmount(t[name], region, x)
			base[name] = least(base[name], x)
		}
		if base[name] == 0 { // about half of the regions show the price for Linux
			for _, x := range listed[name] {
				base[name] = least(base[name], x)
			}
		}
		series[seriesOf(name)] = append(series[seriesOf(name)], name)
	}
	regions := map[string]bool{}
	for _, l := range listed {
		for r := range l {
			regions[r] = true
		}
	}
	for _, region := range slices.Sorted(maps.Keys(regions)) {
		usual := usualFactor(region, series, base, listed, windows)
		for _, s := range slices.Sorted(maps.Keys(series)) {
			f, sure := factor(series[s], region, base, listed, windows, usual)
			for _, name := range series[s] {
				if x := near(listed[name][region], windows[name], f*base[name]); sure && x > 0 {
					setAmount(t[name], region, x)
				}
			}
		}
	}
}

// seriesOf returns the name without its number of cores.
func seriesOf(name string) string {
	parts := azureName.FindStringSubmatch(name)
	if parts == nil {
		log.Fatalf("%s is no name of a size", name)
	}
	return parts[1] + parts[4] + parts[5]
}

// near returns x, or x minus the surcharge, whichever is within 4% of want; 0 if neither is.
func near(x, windows, want float64) float64 {
	for _, c := range []float64{x, x - windows} {
		if c > 0 && math.Abs(c/want-1) < 0.04 {
			return c
		}
	}
	return 0
}

// factor returns by how much the sizes of one series are more expensive in region than where they
// are cheapest: the candidate that explains most of them, and among equals the one closest to what
// is usual there. It is sure when it explains at least half, and is not far from the usual.
func factor(names []string, region string, base map[string]float64, listed map[string]map[string]float64,
	windows map[string]float64, usual float64) (float64, bool) {
	var candidates []float64
	total := 0
	for _, name := range names {
		if x := listed[name][region]; x > 0 && base[name] > 0 {
			candidates = append(candidates, x/base[name], (x-windows[name])/base[name])
			total++
		}
	}
	best, bestHits := 0.0, 0
	for _, f := range candidates {
		hits := 0
		for _, name := range names {
			if near(listed[name][region], windows[name], f*base[name]) > 0 {
				hits++
			}
		}
		if hits > bestHits || hits == bestHits && usual > 0 && math.Abs(f-usual) < math.Abs(best-usual) {
			best, bestHits = f, hits
		}
	}
	sure := 2*bestHits >= total && best > 0.7 && (usual == 0 || math.Abs(best/usual-1) < 0.3)
	return best, sure
}

// usualFactor is the median over the series of region that are listed at both
// prices there, so that one candidate explains more than the others; 0 without.
func usualFactor(region string, series map[string][]string, base map[string]float64,
	listed map[string]map[string]float64, windows map[string]float64) float64 {
	var all []float64
	for _, s := range slices.Sorted(maps.Keys(series)) {
		plain, less := map[int]int{}, map[int]int{}
		for _, name := range series[s] {
			if x := listed[name][region]; x > 0 && base[name] > 0 {
				plain[int(math.Round(x/base[name]*50))]++
				less[int(math.Round((x-windows[name])/base[name]*50))]++
			}
		}
		for f, n := range plain {
			if n >= 1 && less[f] >= 1 {
				all = append(all, float64(f)/50)
			}
		}
	}
	slices.SortFunc(all, cmp.Compare[float64])
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

func least(a, b float64) float64 {
	if a == 0 || b < a {
		return b
	}
	return a
}
