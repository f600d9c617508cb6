package catalog

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// What GKE leaves of an e2-standard-4, by hand: of 4,000 millicores 60, 10 and
// 10 are kept back. The kernel reports 16,384 less a fiftieth, 327, and 64 MiB:
// 15,993. Kept back are a quarter of the first 4 GiB, a fifth of the next and a
// tenth of the next 8, 2,662.4 MiB, and 100. Of a disk of 94.25 GiB Google's
// documentation shows 47,060,071,478 bytes left; the rule gives 150 more.
func TestAllocatableGKE(t *testing.T) {
	m, _ := Lookup(GCP, "e2-standard-4")
	a := m.Allocatable
	if wantMemory := int64(15993*mib) - 26624*mib/10 - 100*mib; a.CPU != 3920 || a.Pods != 110 ||
		a.Memory-wantMemory > 1 || wantMemory-a.Memory > 1 {
		t.Errorf("allocatable %+v, want %d bytes of memory", a, wantMemory)
	}
	if d := a.Storage - 47_060_071_478; d < 0 || d > 200 {
		t.Errorf("%d bytes of disk are left", a.Storage)
	}
	// Of 614 MiB the kernel reports 538; below 1 GiB 255 are kept back, and 100.
	if m, _ := Lookup(GCP, "f1-micro"); m.Allocatable.Memory != 183*mib {
		t.Errorf("f1-micro: %d MiB are left", m.Allocatable.Memory/mib)
	}
	if m, _ := Lookup(GCP, "e2-small"); m.Allocatable.CPU != 940 || m.VolumesMax != 15 {
		t.Errorf("e2-small: %+v, %d volumes", m.Allocatable, m.VolumesMax)
	}
}

// What AKS leaves, by hand. A D2s_v5 has 8,192 MiB, of which the kernel reports
// 7,965; a quarter, 2,048, is less than 50 and 20 for each of 250 pods. Of a
// D16s_v5's 65,536 it reports 64,162, and 5,050 are kept back.
func TestAllocatableAKS(t *testing.T) {
	for name, want := range map[string]policy.Resources{
		"Standard_D2s_v5":  {CPU: 1900, Memory: (7965 - 2048 - 100) * mib, Pods: 250},
		"Standard_D16s_v5": {CPU: 15740, Memory: (64162 - 5050 - 100) * mib, Pods: 250},
		"Standard_D64s_v5": {CPU: 63260, Memory: (262144 - 5242 - 64 - 5050 - 100) * mib, Pods: 250},
	} {
		m, _ := Lookup(Azure, name)
		want.Storage = diskAKS - diskAKS/10
		if m.Allocatable != want {
			t.Errorf("%s: allocatable %+v, want %+v", name, m.Allocatable, want)
		}
	}
}

// Two nodes of Rackspace were seen in August 2026, with 2 and 4 cores: they
// reported 3,810,024 and 30,795,724 KiB of memory and left to pods 1.5 and 3.5
// cores, and 2,659,048 and 29,644,748 KiB.
func TestAllocatableRackspace(t *testing.T) {
	for _, c := range []struct {
		name        string
		cpu, memory int64
		capacityKiB int64
	}{
		{"ch.vs1.medium-ord", 1500, 2_659_048, 3_810_024},
		{"mh.vs1.large-ord", 3500, 29_644_748, 30_795_724},
	} {
		m, _ := Lookup(Rackspace, c.name)
		within := func(what string, got, want int64) {
			if d := float64(got)/float64(want) - 1; d < -0.015 || d > 0.015 {
				t.Errorf("%s: %s %d, seen %d", c.name, what, got, want)
			}
		}
		within("capacity", m.Capacity.Memory>>10, c.capacityKiB)
		within("allocatable", m.Allocatable.Memory>>10, c.memory)
		if m.Allocatable.CPU != c.cpu || m.Capacity.Memory-m.Allocatable.Memory != 1_150_976<<10 {
			t.Errorf("%s: allocatable %+v of %+v", c.name, m.Allocatable, m.Capacity)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		provider, name, family, category, arch, gpu string
		vcpu, memoryGiB, gpus, volumes              int64
	}{
		{GCP, "n2-standard-8", "n2", "n", "amd64", "", 8, 32, 0, 127},
		{GCP, "t2a-standard-4", "t2a", "t", "arm64", "", 4, 16, 0, 127},
		{GCP, "a2-megagpu-16g", "a2", "a", "amd64", "a100", 96, 1360, 16, 127},
		{GCP, "g2-standard-24", "g2", "g", "amd64", "l4", 24, 96, 2, 127},
		{GCP, "m2-ultramem-416", "m2", "m", "amd64", "", 416, 11776, 0, 127},
		{Azure, "Standard_D8s_v5", "Dsv5", "D", "amd64", "", 8, 32, 0, 16},
		{Azure, "Standard_D8ps_v5", "Dpsv5", "D", "arm64", "", 8, 32, 0, 16},
		{Azure, "Standard_E16-4ads_v5", "Eadsv5", "E", "amd64", "", 4, 128, 0, 32},
		{Azure, "Standard_DS13-2_v2", "DSv2", "D", "amd64", "", 2, 56, 0, 4},
		{Azure, "Standard_D16als_v6", "Dalsv6", "D", "amd64", "", 16, 32, 0, 32},
		{Azure, "Standard_E8s_v6", "Esv6", "E", "amd64", "", 8, 64, 0, 16},
		{Azure, "Standard_NC24ads_A100_v4", "NCadsA100v4", "NC", "amd64", "a100-80gb", 24, 220, 1, 32},
		{Azure, "Standard_ND96isr_H100_v5", "NDisrH100v5", "ND", "amd64", "h100", 96, 1900, 8, 32},
		{Azure, "Standard_NV4as_v4", "NVasv4", "NV", "amd64", "radeon-mi25", 4, 14, 1, 8},
		{Azure, "Standard_M96ds_2_v3", "Mdsv3", "M", "amd64", "", 96, 1946, 0, 32},
		{Azure, "Standard_D11_v2_Promo", "Dv2", "D", "amd64", "", 2, 14, 0, 4},
		{Azure, "Basic_A2", "BasicA", "A", "amd64", "", 2, 3, 0, 4},
		{Rackspace, "gp.vs1.medium-iad", "gp.vs1", "gp", "amd64", "", 2, 3, 0, 25},
		{Rackspace, "mh.vs2.xlarge-dfw2", "mh.vs2", "mh", "amd64", "", 8, 64, 0, 25},
		{Rackspace, "gp.bm2.small-lon", "gp.bm2", "bm", "amd64", "", 12, 32, 0, 25},
		{Rackspace, "io.bm2-iad", "io.bm2", "bm", "amd64", "", 40, 128, 0, 25},
		{Rackspace, "gpu.vs2.xlargeplusplus-sjc", "gpu.vs2", "gpu", "amd64", "a30", 24, 64, 1, 25},
	} {
		m, ok := Lookup(c.provider, c.name)
		f, _ := tableOf(c.provider).line(c.name)
		if !ok || m.Family != c.family || m.Category != c.category || m.Arch != c.arch || m.GPUName != c.gpu || m.VCPU != c.vcpu ||
			m.Capacity.GPU != c.gpus || int64(m.VolumesMax) != c.volumes || number(f[colMemory])/1024 != c.memoryGiB {
			t.Errorf("%s: %+v, want %+v", c.name, m, c)
		}
	}
}

// Prices that the providers publish for Linux.
func TestPublishedPrices(t *testing.T) {
	for _, c := range []struct {
		provider, region, name string
		want                   policy.Money
	}{
		{GCP, "us-central1", "n1-standard-8", 379_998},
		{GCP, "us-central1", "e2-micro", 8_376},
		{GCP, "us-central1", "a2-highgpu-1g", 3_673_385}, // the machine and one A100
		{GCP, "us-central1", "g2-standard-8", 853_624},
		{Azure, "eastus", "Standard_D8s_v5", 384_000},
		{Azure, "westeurope", "Standard_D8s_v5", 460_000},
		{Azure, "brazilsouth", "Standard_D8s_v5", 612_000}, // listed at 0.98, with Windows
		{Azure, "japaneast", "Standard_D8s_v5", 496_000},
	} {
		if got, ok := OnDemand(c.provider, c.region, c.name); !ok || got != c.want {
			t.Errorf("%s in %s costs %v, %v; want %v", c.name, c.region, got, ok, c.want)
		}
	}
	if p, ok := OnDemand(Rackspace, "us-east-iad-1", "gp.vs1.medium-iad"); ok {
		t.Errorf("Rackspace publishes no on-demand price, and got %v", p)
	}
}

// Of AWS in us-east-1 nothing that has all of its processors at all times, of
// that architecture and at least that size, is cheaper than the stand-in.
func TestOnDemandModelled(t *testing.T) {
	sellers := List(Filter{Providers: []string{AWS}, Region: "us-east-1"})
	for _, region := range Regions(Rackspace) {
		sold := 0
		for _, name := range Types(Rackspace) {
			price, basis, ok := OnDemandModelled(Rackspace, region, name)
			if !ok {
				continue
			}
			sold++
			m, _ := Lookup(Rackspace, name)
			if price <= 0 || !strings.HasPrefix(basis, "modelled: ") || !strings.Contains(basis, modelledRule) {
				t.Fatalf("%s: %v, %q", name, price, basis)
			}
			checkStandIn(t, sellers, &m, price, strings.Fields(strings.TrimPrefix(basis, "modelled: "))[0])
		}
		if sold < 10 || sold > 20 {
			t.Errorf("%d classes are sold in %s", sold, region)
		}
	}
	if i := slices.IndexFunc(standIns(), func(s standIn) bool { return strings.Contains(s.name, "-flex.") }); i >= 0 {
		t.Errorf("%s, which has all of its processors only at times, can stand in", standIns()[i].name)
	}
	for _, c := range [][3]string{
		{Rackspace, "us-west-sjc-1", "gp.vs1.medium-iad"}, {Rackspace, "us-east-iad-1", "gp.vs9.medium-iad"},
		{AWS, "us-east-1", "m5.large"}, {GCP, "us-central1", "n2-standard-8"},
	} {
		if price, basis, ok := OnDemandModelled(c[0], c[1], c[2]); ok || price != 0 || basis != "" {
			t.Errorf("%v costs %v by %q, want it unknown", c, price, basis)
		}
	}
}

func checkStandIn(t *testing.T, sellers []Row, m *policy.InstanceType, price policy.Money, name string) {
	t.Helper()
	f, _ := tableOf(Rackspace).line(m.Name)
	name = strings.TrimSuffix(name, ",")
	for i := range sellers {
		o, p := &sellers[i].Type, sellers[i].OnDemand
		fits := o.Arch == m.Arch && o.Category != "t" && !strings.HasSuffix(o.Family, "-flex") &&
			o.VCPU >= m.VCPU && sellers[i].MemoryMiB >= number(f[colMemory]) &&
			o.Capacity.GPU >= m.Capacity.GPU && (m.GPUResource == "" || o.GPUResource == m.GPUResource)
		if o.Name == name && (!fits || p != price) {
			t.Errorf("%s stands in for %s at %v: it costs %v", name, m.Name, price, p)
		}
		if fits && p < price {
			t.Errorf("%s at %v fits %s, and the stand-in costs %v", o.Name, p, m.Name, price)
		}
	}
}

func TestZones(t *testing.T) {
	for _, c := range []struct{ provider, region, want string }{
		{AWS, "us-east-1", "us-east-1a us-east-1b us-east-1c us-east-1d us-east-1e us-east-1f"},
		{AWS, "us-west-1", "us-west-1a us-west-1b"},
		{AWS, "us-gov-west-1", "us-gov-west-1a us-gov-west-1b us-gov-west-1c"},
		{GCP, "us-central1", "us-central1-a us-central1-b us-central1-c us-central1-f"},
		{GCP, "europe-west1", "europe-west1-b europe-west1-c europe-west1-d"},
		{Azure, "westeurope", "westeurope-1 westeurope-2 westeurope-3"},
		{Azure, "westus", "westus"},
		{Rackspace, "uk-lon-1", "uk-lon-1"},
		{AWS, "nowhere", ""},
		{"ibm", "us-east-1", ""},
	} {
		if got := strings.Join(Zones(c.provider, c.region), " "); got != c.want {
			t.Errorf("%s %s has the zones %q, want %q", c.provider, c.region, got, c.want)
		}
	}
	if !slices.IsSorted(azureZonal) {
		t.Error("the regions of Azure with zones are not in order")
	}
	for _, region := range azureZonal {
		if !slices.Contains(Regions(Azure), region) {
			t.Errorf("%s has zones and no prices", region)
		}
	}
}

// A list of several providers names modelled prices as such, and only those.
func TestListProviders(t *testing.T) {
	seen := map[string]int{}
	for _, r := range List(Filter{}) {
		seen[r.Type.Provider]++
		spotOnly := r.Type.Name == "a3-highgpu-1g"
		if (r.Basis != "") != (r.Type.Provider == Rackspace || spotOnly) ||
			spotOnly && r.OnDemand*8 > policy.Dollars(87.833) || r.OnDemand <= 0 || r.Region == "" {
			t.Errorf("%s is listed at %v in %q by %q", r.Type.Name, r.OnDemand, r.Region, r.Basis)
		}
	}
	if seen[AWS] < 900 || seen[GCP] < 200 || seen[Azure] < 1000 || seen[Rackspace] != 101 {
		t.Errorf("listed %v", seen)
	}
	if rows := List(Filter{Providers: []string{Rackspace}, Region: "us-west-sjc-1", Categories: []string{"gpu"}}); len(rows) != 1 {
		t.Errorf("%d GPU classes in San Jose", len(rows))
	}
}

// notNodes are the recorded markets that no catalog can turn into a node. An
// accelerator of Google is priced apart from the machine that it is put into,
// and the host of a TPU is not sold without it. Names of Azure with "Type" are
// dedicated hosts, those with a blank are earlier spellings of names with an
// underscore, recorded with them; of a few Azure sizes neither list nor
// documentation states the size or the accelerators.
var notNodes = map[string]*regexp.Regexp{
	AWS: regexp.MustCompile(`^mac|^c6gn\.metal$`),
	GCP: regexp.MustCompile(`^acc:|-tpu$|^$`),
	Azure: regexp.MustCompile(`Type ?\d| |^Standard_(ND40s_v2|NC(8|16|32)ads_A10_v4|NG.*|PB.*|NV\d+ads_V710_v5|NV[1-4]?[048]adm?s_A10_v5` +
		`|NCC40ads_H100_v5|D96pl?d?s_v5|E(48|64|96)pd?s_v5|E(96|128)nd?s_v6|E192id?s_v6|EC96[ae]d?s_v[56]|F72.*_v6|FX96md?s_v2` +
		`|L88is_v2|M(16|32)s|M416is_v2)$`),
	Rackspace: regexp.MustCompile(`^$`),
}

// Every type with recorded prices can be a node. Recordings are not part of the project; they are
// read from a folder next to it, if there is one.
func TestRecordedTypes(t *testing.T) {
	for file, provider := range map[string]string{
		"aws_bidding_era_us-east-1_2016-02-24_2016-03-25.csv.gz":   AWS,
		"aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz":           AWS,
		"aws_api_us-east-1_2021-03-02_2021-04-30.csv.gz":           AWS,
		"aws_skypilot_us-east-1_2022-12_2023-10.csv.gz":            AWS,
		"aws_skypilot_us-east-2_2023-11_2024-02.csv.gz":            AWS,
		"gcp_skypilot_us-central1_us-east1_2022-11_2024-06.csv.gz": GCP,
		"azure_coroot_eastus_westeurope_2023-02_2024-08.csv.gz":    Azure,
		"rackspace_weekly_2026-05-26_2026-07-13.csv":               Rackspace,
	} {
		missing, known := 0, 0
		for _, name := range recordedTypes(t, file) {
			_, ok := Lookup(provider, name)
			switch left := notNodes[provider].MatchString(name); {
			case ok:
				known++
			case left:
				missing++
			default:
				t.Errorf("%s: %s is not in the catalog", file, name)
			}
		}
		if known < 20 {
			t.Errorf("%s: %d types are known", file, known)
		}
		t.Logf("%s: %d types are known, %d cannot be nodes", file, known, missing)
	}
}

// recordedTypes returns the names in the column of instance types of a
// recording.
func recordedTypes(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(policytest.Recording(t, "prices/"+file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	r := csv.NewReader(in)
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	column := slices.IndexFunc(head, func(h string) bool { return h == "instance_type" || h == "serverclass" })
	seen := map[string]bool{}
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !seen[row[column]] {
			seen[strings.Clone(row[column])] = true
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
