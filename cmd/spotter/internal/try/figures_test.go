package try

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy/figures"
)

// mixedShop is a cluster whose nodes are on demand, on Spot, and of two types, hardly used.
func mixedShop(pool ...string) shelf {
	s := shelf{objects: clusterOf(12, 4, 3)}
	for i, n := range s.nodes() {
		if i%4 == 3 {
			n.Labels[karpv1.CapacityTypeLabelKey] = karpv1.CapacityTypeSpot
		}
		if i%3 == 1 {
			n.Labels[corev1.LabelInstanceTypeStable] = "r5.2xlarge"
		}
	}
	s.objects = slices.DeleteFunc(s.objects, func(o client.Object) bool { return is[*karpv1.NodePool](o) })
	s.objects = append(s.objects, nodePoolOf("default", pool...))
	return s
}

func is[T any](o any) bool { _, is := o.(T); return is }

// resultsOf is what the test reads of report.json.
type resultsOf struct {
	Today struct {
		Nodes int     `json:"nodes"`
		Month float64 `json:"usd_month"`
		Bills float64 `json:"bills_per_month"`
	} `json:"today"`
	Runs []struct {
		Policy  string             `json:"policy"`
		Metrics map[string]float64 `json:"metrics"`
	} `json:"runs"`
}

// values returns a metric of the runs of a policy.
func (r *resultsOf) values(policy, metric string) (out []float64) {
	for _, x := range r.Runs {
		if x.Policy == policy {
			out = append(out, x.Metrics[metric])
		}
	}
	return out
}

// TestFigures works out every row again from the runs in report.json: what is printed, the
// report and the CapacityPools have the same amounts and percentages, all against what is
// paid today, and on demand only holds no Spot node.
func TestFigures(t *testing.T) {
	alone(t)
	for name, pool := range map[string][]string{
		"both types": {karpv1.CapacityTypeSpot,
			karpv1.CapacityTypeOnDemand}, "Spot alone": {karpv1.CapacityTypeSpot}, "on demand alone": {karpv1.CapacityTypeOnDemand},
	} {
		t.Run(name, func(t *testing.T) {
			out, log, dir, err := tried(t, few(), mixedShop(pool...))
			if err != nil {
				t.Fatalf("%v\n%s", err, log)
			}
			var r resultsOf
			var raw map[string]any
			text := []byte(read(t, dir, resultsFile))
			if err := json.Unmarshal(text, &raw); err != nil {
				t.Fatal(err)
			}
			runs, _ := raw["runs"].([]any)
			for _, x := range runs { // boolean metrics are not compared here
				metrics, _ := x.(map[string]any)["metrics"].(map[string]any)
				for key, v := range metrics {
					if is[bool](v) {
						delete(metrics, key)
					}
				}
			}
			again, _ := json.Marshal(raw)
			if err := json.Unmarshal(again, &r); err != nil {
				t.Fatal(err)
			}
			if r.Today.Nodes != 12 || math.Abs(r.Today.Bills-eval.MonthHours/168.0) > 1e-9 {
				t.Errorf("%+v", r.Today)
			}
			page, comment := read(t, dir, reportFile), read(t, dir, poolsFile)
			row := func(title string) string {
				_, after, _ := strings.Cut(out, "\n"+title)
				line, _, _ := strings.Cut(after, "\n")
				return line
			}
			if line := row("what you pay today"); !strings.Contains(line, figures.Dollars(r.Today.Month)) ||
				!strings.Contains(line, "not measured") {
				t.Errorf("the first row is %q, want %s\n%s", line, figures.Dollars(r.Today.Month), out)
			}
			for title, policy := range map[string]string{
				"your own NodePools, consolidated (as-is)": asIs, "on demand only": onDemand, "Spot allowed (karpenter)": karpenter, "Spotter (portfolio)": portfolio,
			} {
				month := stats.Median(r.values(policy, "bill_usd")) * r.Today.Bills
				saved := 100 * (1 - month/r.Today.Month)
				if line := row(title); !strings.Contains(line, figures.Dollars(month)) || !strings.Contains(line, figures.PercentChange(-saved, 1)) {
					t.Errorf("%s: %q, want %s and %s", policy, line, figures.Dollars(month), figures.PercentChange(-saved, 1))
				}
				if want := fmt.Sprintf("%.1f", math.Abs(saved)); !strings.Contains(page, want) {
					t.Errorf("%s: the report has no %s", policy, want)
				}
				for _, v := range r.values(policy, eval.MetricSavedToday) {
					if math.IsNaN(v) || v > 100 {
						t.Errorf("%s saves %v%%", policy, v)
					}
				}
			}
			for _, where := range map[string]string{"the report": page, "the CapacityPools": comment} {
				if want := figures.Dollars(r.Today.Month); !strings.Contains(where, want) {
					t.Errorf("what is paid, %s, is not in %.300s", want, where)
				}
			}
			for _, v := range r.values(onDemand, "spot_share") {
				if v != 0 {
					t.Errorf("on demand only holds Spot: %v", v)
				}
			}
			for _, v := range r.values(onDemand, "packing_overhead") {
				if v < 1 {
					t.Errorf("the bound is above the bill: %v", v)
				}
			}
		})
	}
}
