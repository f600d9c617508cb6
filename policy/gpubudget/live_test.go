package gpubudget

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestGolden compares with what gpu-k8s-operator counts for pods that are
// listed: clipped to the window, from the future, without a request.
func TestGolden(t *testing.T) {
	var cases []struct {
		Pods []struct {
			Start int64   `json:"start_ns_rel_now"`
			End   *int64  `json:"end_ns_rel_now"`
			GPUs  float64 `json:"gpus"`
		} `json:"pods"`
		Quota  float64 `json:"quota_gpu_hours"`
		Window int64   `json:"window_ns"`
		Want   struct {
			Consumed  float64 `json:"consumed"`
			Remaining float64 `json:"remaining"`
			Tracked   int     `json:"tracked_pods"`
			Over      bool    `json:"over"`
		} `json:"want"`
	}
	if err := json.Unmarshal(policytest.Golden(t, "gpu_accounting.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there is no case")
	}
	for i, c := range cases {
		var objects []Object
		for _, p := range c.Pods {
			o := Object{Start: time.Duration(p.Start), Devices: p.GPUs}
			if p.End != nil {
				o.End, o.Ended = time.Duration(*p.End), true
			}
			objects = append(objects, o)
		}
		got := CountObjects(time.Duration(c.Window), c.Quota, objects)
		if math.Abs(got.Consumed-c.Want.Consumed) > 1e-9 || math.Abs(got.Remaining-c.Want.Remaining) > 1e-9 ||
			got.Tracked != c.Want.Tracked || got.Over != c.Want.Over {
			t.Errorf("case %d: %+v, want %+v", i, got, c.Want)
		}
	}
}
