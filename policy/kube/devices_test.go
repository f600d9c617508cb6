package kube

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
)

// TestDevices adds up what pods request under the names of NVIDIA's device plugin.
func TestDevices(t *testing.T) {
	replicas := func(of string) int64 {
		return map[string]int64{"nvidia.com/gpu": 10, "nvidia.com/mig-3g.20gb": 2}[of]
	}
	for _, c := range []struct {
		requests map[string]string
		want     int64
		unknown  bool
	}{
		{requests: map[string]string{"nvidia.com/gpu": "2", "cpu": "1", "example.com/mig-1g.5gb": "1"}},
		{requests: map[string]string{"nvidia.com/mig-1g.5gb": "1"}, want: 143},
		{requests: map[string]string{"nvidia.com/mig-1g.5gb": "7"}, want: 1000},
		{requests: map[string]string{"nvidia.com/mig-1g.10gb.me": "1", "nvidia.com/mig-3g.40gb": "2"}, want: 1000},
		{requests: map[string]string{"nvidia.com/mig-7g.80gb": "3"}, want: 3000},
		{requests: map[string]string{"nvidia.com/mig-1c.3g.20gb": "1"}, want: 143},
		{requests: map[string]string{"nvidia.com/mig-2g.12gb": "1"}, want: 500}, // of four slices
		{requests: map[string]string{"nvidia.com/mig-4g.24gb.me": "1"}, want: 1000},
		{requests: map[string]string{"nvidia.com/gpu.shared": "3"}, want: 300},
		{requests: map[string]string{"nvidia.com/mig-3g.20gb.shared": "1"}, want: 214},
		{requests: map[string]string{"nvidia.com/mig-2g.20gb.shared": "1"}, want: 286}, // no number of replicas is known
		{requests: map[string]string{"nvidia.com/mig-1g.5gb": "0"}},
		{requests: map[string]string{"nvidia.com/mig-9g.5gb": "1", "nvidia.com/mig-2g.10gb": "1"}, want: 286, unknown: true},
	} {
		total := corev1.ResourceList{}
		for k, v := range c.requests {
			total[corev1.ResourceName(k)] = resource.MustParse(v)
		}
		var d Devices
		d.Request(total, replicas)
		var want []policy.DeviceUse
		if c.want > 0 {
			want = []policy.DeviceUse{{Resource: "nvidia.com/gpu", Amount: c.want}}
		}
		if got := d.Uses(); !reflect.DeepEqual(got, want) || d.Unknown != c.unknown {
			t.Errorf("%v: %+v, unknown %t; want %+v", c.requests, got, d.Unknown, want)
		}
	}
}
