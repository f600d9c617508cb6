package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// What the kubelet leaves of an m5.large, by hand: 2,000 millicores less 6% of the first core and
// 1% of the second are 1,930. Of 8,192 MiB the kernel sees 92.5%, 614.4 rounded up to 615 less:
// 7,577 MiB. 3 interfaces of 10 addresses allow 29 pods, so 255 + 11·29 + 100 = 674 MiB are
// reserved: 6,903 MiB. Of 20 GiB of disk 1 GiB and a tenth are reserved: 17 GiB.
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
	if _, ok := Lookup(GCP, "m5.large"); ok {
		t.Error("a type of another provider was found")
	}
}

func TestLookupKinds(t *testing.T) {
	for _, c := range []struct {
		name, category, arch, resource, gpu string
		gpus, volumes                       int64
	}{
		{"g4dn.xlarge", "g", "amd64", "nvidia.com/gpu", "t4", 1, 25},
		{"g5g.xlarge", "g", "arm64", "nvidia.com/gpu", "t4g", 1, 26},
		{"g4ad.xlarge", "g", "amd64", "amd.com/gpu", "radeon-pro-v520", 1, 25},
		{"inf2.24xlarge", "inf", "amd64", "aws.amazon.com/neuron", "inferentia", 6, 26},
		{"p3.16xlarge", "p", "amd64", "nvidia.com/gpu", "v100", 8, 39},
		{"cg1.4xlarge", "cg", "amd64", "nvidia.com/gpu", "m2050", 2, 39},
		{"g2.8xlarge", "g", "amd64", "nvidia.com/gpu", "k520", 4, 39},
		{"c7gn.large", "c", "arm64", "", "", 0, 26},
		{"a1.large", "a", "arm64", "", "", 0, 26},
		{"im4gn.large", "im", "arm64", "", "", 0, 25},
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

// The limits of AWS by hand: 28 attachments less the first interface and the
// root disk are 26, and an m5d.4xlarge has two disks of its own; the seventh
// generation has 32 for volumes alone, of which the root disk is one.
func TestVolumesMax(t *testing.T) {
	for name, want := range map[string]int32{
		"m5.large": 26, "m5d.4xlarge": 24, "m5d.24xlarge": 22, "m5.metal": 29, "i3en.3xlarge": 25, "i3en.24xlarge": 18,
		"g5.xlarge": 25, "g5.48xlarge": 8, "p4d.24xlarge": 18, "inf1.24xlarge": 10, "r4.large": 39, "i3.metal": 21,
		"m7i.large": 31, "m7i-flex.large": 31, "m7a.medium": 31, "c7i.16xlarge": 47, "r7iz.32xlarge": 87,
		"m7i.48xlarge": 127, "m7i.metal-24xl": 38, "m7i.metal-48xl": 78,
		"m7g.large": 26, "c7gd.12xlarge": 24, // not every family of the seventh generation has it
	} {
		if m, ok := Lookup(AWS, name); !ok || m.VolumesMax != want {
			t.Errorf("%s takes %d volumes, %v; want %d", name, m.VolumesMax, ok, want)
		}
	}
}

// Every line of the tables gives a type that can be a node.
func TestTables(t *testing.T) {
	for provider, least := range map[string]int{AWS: 900, GCP: 200, Azure: 1100, Rackspace: 101} {
		names := Types(provider)
		if len(names) < least || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s: %d types, sorted %v", provider, len(names), slices.IsSorted(names))
		}
		if regions := Regions(provider); !slices.IsSorted(regions) || len(regions) < 8 || Date(provider) == "" || Sources(provider) == "" {
			t.Errorf("%s as of %q: %d regions, sorted %v", provider, Date(provider), len(regions), slices.IsSorted(regions))
		}
		for _, name := range names {
			m, ok := Lookup(provider, name)
			if !ok || m.Name != name || m.Provider != provider {
				t.Fatalf("%s of the list is not found: %+v", name, m)
			}
			checkType(t, &m)
		}
	}
	if Types("ibm") != nil || Regions("ibm") != nil || Date("ibm") != "" || Sources("ibm") != "" {
		t.Error("a provider that is not in the catalog has types")
	}
}

func checkType(t *testing.T, m *policy.InstanceType) {
	t.Helper()
	a, c := m.Allocatable, m.Capacity
	if a.CPU <= 0 || a.CPU >= c.CPU || a.Storage <= 0 || a.Storage >= c.Storage || a.Pods <= 0 || a.GPU != c.GPU ||
		a.Memory >= c.Memory || a.Memory <= 0 && (m.Provider != AWS || c.Memory > 2*gib) {
		t.Errorf("%s: allocatable %+v of %+v", m.Name, a, c)
	}
	if m.VCPU <= 0 || m.Family == "" || m.Category == "" || !slices.Contains([]string{"amd64", "arm64"}, m.Arch) || m.VolumesMax <= 0 {
		t.Errorf("%s: %+v", m.Name, m)
	}
	if (m.GPUResource == "") != (c.GPU == 0) || (m.GPUName == "") != (c.GPU == 0) {
		t.Errorf("%s: %d of %q, %q", m.Name, c.GPU, m.GPUResource, m.GPUName)
	}
	if !slices.IsSortedFunc(m.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) }) {
		t.Errorf("%s: labels are not in order: %v", m.Name, m.Labels)
	}
	if v, _ := policy.FindLabel(m.Labels, "node.kubernetes.io/instance-type"); v != m.Name {
		t.Errorf("%s: its label says %q", m.Name, v)
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
	for _, c := range [][3]string{{AWS, "us-east-9", "m5.large"}, {AWS, "us-east-1", "m5.huge"},
		{GCP, "us-east-1", "m5.large"}, {"ibm", "us-east-1", "m5.large"}} {
		if p, ok := OnDemand(c[0], c[1], c[2]); ok {
			t.Errorf("%v costs %v, want it unknown", c, p)
		}
	}
}

func TestList(t *testing.T) {
	rows := List(Filter{Providers: []string{AWS}, Region: "us-east-1", Families: []string{"m5", "g4dn"}, MaxVCPU: 8})
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
	for _, r := range List(Filter{Providers: []string{AWS}, Families: []string{"m5"}}) {
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

func BenchmarkLookup(b *testing.B) {
	for _, c := range [][2]string{{AWS, "m5.large"}, {GCP, "n2-standard-8"}, {Azure, "Standard_D8s_v5"}, {Rackspace, "gp.vs1.medium-iad"}} {
		b.Run(c[0], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := Lookup(c[0], c[1]); !ok {
					b.Fatal("missing")
				}
			}
		})
	}
}

// BenchmarkLoad is what a run pays once for each provider that it meets.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if len(cut(azureText, fixedColumns).names) == 0 {
			b.Fatal("empty")
		}
	}
}
