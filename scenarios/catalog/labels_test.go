package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestLabelsOfTypes compares labels with those in Karpenter's reference of instance types; "-" is a
// label that nodes of the type do not have.
func TestLabelsOfTypes(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"m8gd.metal-24xl": {"local-nvme": "5700", "ebs-bandwidth": "30000", "hypervisor": "", "cpu-manufacturer": "aws", "gpu-memory": "-"},
		"m7i-flex.2xlarge": {"capability-flex": "true", "cpu-sustained-clock-speed-mhz": "3200", "network-bandwidth": "1562",
			"encryption-in-transit-supported": "true", "tenancy": "default"},
		"c3.xlarge": {"ebs-bandwidth": "-", "local-nvme": "-", "network-bandwidth": "-", "hypervisor": "xen",
			"encryption-in-transit-supported": "false"},
		"c1.medium":     {"cpu-sustained-clock-speed-mhz": "0", "ebs-bandwidth": "-"},
		"p3.8xlarge":    {"gpu-count": "4", "gpu-name": "v100", "gpu-memory": "16384", "ebs-bandwidth": "7000", "accelerator-count": "-"},
		"p3dn.24xlarge": {"gpu-name": "v100", "gpu-memory": "32768", "local-nvme": "1800"},
		"p4de.24xlarge": {"gpu-name": "a100", "gpu-memory": "81920", "gpu-manufacturer": "nvidia"},
		"dl1.24xlarge":  {"gpu-manufacturer": "habana", "gpu-name": "gaudi-hl-205", "gpu-count": "8"},
		"inf2.24xlarge": {"accelerator-count": "6", "accelerator-name": "inferentia2", "accelerator-manufacturer": "aws",
			"gpu-count": "-", "gpu-name": "-"},
		"dl2q.24xlarge": {"accelerator-name": "qualcomm-ai100", "accelerator-manufacturer": "qualcomm"},
		"g2.2xlarge":    {"gpu-count": "1", "gpu-name": "k520", "cpu-manufacturer": "-"},
	} {
		x, ok := Lookup(AWS, name)
		if !ok {
			t.Fatalf("the catalog has no %s", name)
		}
		for key, value := range want {
			got, there := policy.FindLabel(x.Labels, labelAWS+key)
			if !there {
				got = "-"
			}
			if got != value {
				t.Errorf("%s: %s is %q, want %q", name, key, got, value)
			}
		}
	}
}

// TestLabelsOfGoogle: the labels that Karpenter's provider for Google Cloud derives from the name and
// the size of a machine type, by hand, and that all are in order and known.
func TestLabelsOfGoogle(t *testing.T) {
	for name, want := range map[string]string{
		"n2d-standard-8":     "category=n cpu=8 family=n2d generation=2 memory=32768 shape=standard size=8",
		"e2-medium":          "category=e cpu=2 family=e2 generation=2 memory=4096 shape=medium size=medium",
		"c3-standard-8-lssd": "category=c cpu=8 family=c3 generation=3 memory=32768 shape=standard size=8",
		"a2-highgpu-8g": "category=a cpu=96 family=a2 generation=2 gpu-count=1 gpu-name=nvidia-tesla-a100 memory=696320 " +
			"shape=highgpu size=8g",
	} {
		x, _ := Lookup(GCP, name)
		var got []string
		for _, l := range x.Labels {
			if key, ours := strings.CutPrefix(l.Key, labelGoogle); ours {
				got = append(got, key+"="+l.Value)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range Types(GCP) {
		x, _ := Lookup(GCP, name)
		if !slices.IsSortedFunc(x.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) }) {
			t.Errorf("%s: labels %v", name, x.Labels)
		}
		for _, l := range x.Labels {
			if !IsTypeLabel(l.Key) && l.Key != "kubernetes.io/arch" && l.Key != "node.kubernetes.io/instance-type" {
				t.Errorf("%s: %s is not a known label", name, l.Key)
			}
		}
	}
}

// TestEveryTypeIsDescribed holds that labels are in order and known labels, and which types are
// described nowhere.
func TestEveryTypeIsDescribed(t *testing.T) {
	var unknown []string
	for _, name := range Types(AWS) {
		x, _ := Lookup(AWS, name)
		if !slices.IsSortedFunc(x.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) }) {
			t.Errorf("%s: labels %v", name, x.Labels)
		}
		for _, l := range x.Labels {
			if strings.HasPrefix(l.Key, labelAWS) && !IsTypeLabel(l.Key) {
				t.Errorf("%s: %s is not a known label", name, l.Key)
			}
		}
		if !Knows(&x, labelAWS+"ebs-bandwidth") {
			unknown = append(unknown, name)
		}
		if !Knows(&x, labelAWS+"size") || !Knows(&x, "example.com/any") {
			t.Errorf("%s: its size is not known", name)
		}
	}
	const want = "cg1.4xlarge cr1.8xlarge f1.16xlarge f1.2xlarge f1.4xlarge g2.2xlarge g2.8xlarge g3.16xlarge g3.4xlarge g3.8xlarge g3s.xlarge " +
		"hi1.4xlarge i3.metal p2.16xlarge p2.8xlarge p2.xlarge u-12tb1.112xlarge u-18tb1.112xlarge u-24tb1.112xlarge u-9tb1.112xlarge"
	if got := strings.Join(unknown, " "); got != want {
		t.Errorf("not described: %s, want %s", got, want)
	}
	if IsTypeLabel(labelAWS+"warp") || IsTypeLabel("instance-size") || IsTypeLabel("size") {
		t.Error("labels that are none")
	}
}
