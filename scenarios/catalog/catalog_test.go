package catalog

import (
	"bufio"
	"compress/gzip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// What the kubelet leaves of an m5.large, by hand: 2,000 millicores less 6 % of
// the first and 1 % of the second are 1,930. Of 8,192 MiB the kernel sees
// 92.5 %, 614.4 rounded up to 615 less: 7,577 MiB. 3 interfaces of 10 addresses
// give 29 pods, so 255 + 11·29 + 100 = 674 MiB are kept back: 6,903 MiB. Of
// 20 GiB of disk one and a tenth are: 17 GiB.
func TestLookup(t *testing.T) {
	m, ok := Lookup(AWS, "m5.large")
	if !ok {
		t.Fatal("m5.large is missing")
	}
	want := policy.Resources{CPU: 1930, Memory: 6903 * mib, Storage: 17 * gib, Pods: 29}
	if m.Allocatable != want {
		t.Errorf("allocatable %+v, want %+v", m.Allocatable, want)
	}
	if m.Capacity.Memory != 7577*mib || m.VCPU != 2 || m.Family != "m5" || m.Category != "m" || m.Arch != "amd64" {
		t.Errorf("m5.large is %+v", m)
	}
	if v, _ := policy.FindLabel(m.Labels, "karpenter.k8s.aws/instance-memory"); v != "8192" {
		t.Errorf("memory label %q, want that of the machine as sold, 8192", v)
	}
	if _, ok := Lookup(AWS, "m5.larg"); ok {
		t.Error("a type that does not exist was found")
	}
	if _, ok := Lookup("gcp", "m5.large"); ok {
		t.Error("a type of another provider was found")
	}
}

func TestLookupKinds(t *testing.T) {
	for _, c := range []struct {
		name, category, arch, resource, gpu string
		gpus, volumes                       int64
	}{
		{"g4dn.xlarge", "g", "amd64", "nvidia.com/gpu", "t4", 1, 26},
		{"g5g.xlarge", "g", "arm64", "nvidia.com/gpu", "t4g", 1, 26},
		{"g4ad.xlarge", "g", "amd64", "amd.com/gpu", "radeon-pro-v520", 1, 26},
		{"inf2.24xlarge", "inf", "amd64", "aws.amazon.com/neuron", "inferentia", 6, 26},
		{"p3.16xlarge", "p", "amd64", "nvidia.com/gpu", "v100", 8, 39},
		{"cg1.4xlarge", "cg", "amd64", "nvidia.com/gpu", "m2050", 2, 39},
		{"g2.8xlarge", "g", "amd64", "nvidia.com/gpu", "k520", 4, 39},
		{"c7gn.large", "c", "arm64", "", "", 0, 26},
		{"a1.large", "a", "arm64", "", "", 0, 26},
		{"im4gn.large", "im", "arm64", "", "", 0, 26},
		{"r4.large", "r", "amd64", "", "", 0, 39},
		{"u-12tb1.112xlarge", "u", "amd64", "", "", 0, 26},
		{"f1.2xlarge", "f", "amd64", "", "", 0, 39}, // an FPGA is no device for pods
	} {
		m, ok := Lookup(AWS, c.name)
		if !ok {
			t.Errorf("%s is missing", c.name)
			continue
		}
		if m.Category != c.category || m.Arch != c.arch || m.GPUResource != c.resource || m.GPUName != c.gpu ||
			m.Capacity.GPU != c.gpus || int64(m.VolumesMax) != c.volumes {
			t.Errorf("%s: category %q arch %q resource %q gpu %q ×%d volumes %d, want %+v",
				c.name, m.Category, m.Arch, m.GPUResource, m.GPUName, m.Capacity.GPU, m.VolumesMax, c)
		}
	}
}

// Every line of the table gives a type that can be a node.
func TestTable(t *testing.T) {
	names := Types(AWS)
	if len(names) < 900 || !slices.IsSorted(names) {
		t.Fatalf("%d types, sorted %v", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		m, ok := Lookup(AWS, name)
		if !ok {
			t.Fatalf("%s of the list is not found", name)
		}
		a := m.Allocatable
		if a.CPU <= 0 || a.Storage <= 0 || a.Pods <= 0 || a.CPU >= m.Capacity.CPU || m.Category == "" || m.VCPU <= 0 {
			t.Errorf("%s: allocatable %+v of %+v", name, a, m.Capacity)
		}
		if a.Memory <= 0 && m.Capacity.Memory > 2*gib {
			t.Errorf("%s: no memory is left of %d MiB", name, m.Capacity.Memory/mib)
		}
		if (m.GPUResource == "") != (m.Capacity.GPU == 0) {
			t.Errorf("%s: %d of %q", name, m.Capacity.GPU, m.GPUResource)
		}
		if !slices.IsSortedFunc(m.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) }) {
			t.Errorf("%s: labels are not in order: %v", name, m.Labels)
		}
	}
}

func TestOnDemand(t *testing.T) {
	for _, c := range []struct {
		region, name string
		want         policy.Money
	}{
		{"us-east-1", "m5.large", 96_000},
		{"us-east-2", "c5.2xlarge", 340_000},
		{"us-east-1", "g2.2xlarge", 650_000},
		{"sa-east-1", "m5.large", 153_000},
	} {
		if got, ok := OnDemand(AWS, c.region, c.name); !ok || got != c.want {
			t.Errorf("%s in %s costs %v, %v; want %v", c.name, c.region, got, ok, c.want)
		}
	}
	for _, c := range [][3]string{{AWS, "us-east-9", "m5.large"}, {AWS, "us-east-1", "m5.huge"}, {"gcp", "us-east-1", "m5.large"}} {
		if p, ok := OnDemand(c[0], c[1], c[2]); ok {
			t.Errorf("%v costs %v, want it unknown", c, p)
		}
	}
}

func TestList(t *testing.T) {
	rows := List(Filter{Region: "us-east-1", Families: []string{"m5", "g4dn"}, MaxVCPU: 8})
	var names []string
	for _, r := range rows {
		names = append(names, r.Type.Name)
		if p, _ := OnDemand(AWS, "us-east-1", r.Type.Name); p != r.OnDemand || r.Region != "us-east-1" {
			t.Errorf("%s is listed at %v in %s", r.Type.Name, r.OnDemand, r.Region)
		}
	}
	if got := strings.Join(names, " "); got != "g4dn.2xlarge g4dn.xlarge m5.2xlarge m5.large m5.xlarge" {
		t.Errorf("listed %s", got)
	}
	for _, r := range List(Filter{MinGPUs: 8, Arch: "amd64"}) {
		if r.Type.Capacity.GPU < 8 {
			t.Errorf("%s has %d accelerators", r.Type.Name, r.Type.Capacity.GPU)
		}
	}
	// Without a region the cheapest counts, the first by name among equals.
	for _, r := range List(Filter{Families: []string{"m5"}}) {
		for _, region := range Regions(AWS) {
			if p, ok := OnDemand(AWS, region, r.Type.Name); ok && (p < r.OnDemand || p == r.OnDemand && region < r.Region) {
				t.Errorf("%s is listed at %v in %s, and costs %v in %s", r.Type.Name, r.OnDemand, r.Region, p, region)
			}
		}
	}
	if rows := List(Filter{Region: "nowhere"}); len(rows) != 0 {
		t.Errorf("%d rows of a region that does not exist", len(rows))
	}
}

// Every type whose prices were recorded can be a node; recordings are not part
// of the project and lie beside it where they are.
func TestRecordedTypes(t *testing.T) {
	for file, column := range map[string]int{
		"aws_bidding_era_us-east-1_2016-02-24_2016-03-25.csv.gz": 2,
		"aws_api_sa-east-1_2019-12-31_2020-03-30.csv.gz":         2,
		"aws_skypilot_us-east-2_2023-11_2024-02.csv.gz":          3,
	} {
		f, err := os.Open(policytest.Recording(t, "prices/"+file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		seen := map[string]bool{}
		lines := bufio.NewScanner(z)
		for lines.Scan() {
			if fields := strings.SplitN(lines.Text(), ",", column+2); len(fields) > column {
				seen[fields[column]] = true
			}
		}
		delete(seen, "instance_type")
		if err := lines.Err(); err != nil || len(seen) < 10 {
			t.Fatalf("%s: %d types, %v", file, len(seen), err)
		}
		for name := range seen {
			if _, ok := Lookup(AWS, name); !ok {
				t.Errorf("%s: %s is not in the catalog", file, name)
			}
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Lookup(AWS, "m5.large"); !ok {
			b.Fatal("missing")
		}
	}
}
