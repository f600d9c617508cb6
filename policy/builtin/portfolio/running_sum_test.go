package portfolio

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestRunningSum: whatever pods and nodes change, the sums are those of all, added in their
// order.
func TestRunningSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x lossSums
		var pods podIndex
		n := rapid.IntRange(1, 4*sumBlock).Draw(t, "items")
		cells := make([]int32, n)
		pods.hosts, pods.groups = make([]host, n), make([][]podGroup, n)
		each := []float64{0, 0.1, 0.3}
		losses := []nodeLoss{{service: service{value: 0.1, minutes: 3, slack: 1, penalty: 0.7}, counts: true}, {service: service{value: 0.3, minutes: 1}, counts: true, anchor: true}}
		for range rapid.IntRange(1, 8).Draw(t, "decisions") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				at := rapid.IntRange(0, n-1).Draw(t, "at")
				cells[at] = rapid.Int32Range(-1, 1).Draw(t, "cell")
				pods.hosts[at].fixed = rapid.Bool().Draw(t, "fixed")
				pods.groups[at] = []podGroup{{policy.TemplateID(rapid.IntRange(0, 1).Draw(t, "template")), rapid.Int32Range(1, 3).Draw(t, "pods")}}
				x.pods.cut(at)
				x.nodes.cut(at)
			}
			each[1] = rapid.SampledFrom([]float64{0.1, 0.2}).Draw(t, "each")
			losses[0].slack = rapid.SampledFrom([]float64{0, 1}).Draw(t, "slack")
			start := rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "start")
			var fresh lossSums
			if got, want := x.overPods(cells, each), fresh.overPods(cells, each); got != want {
				t.Fatalf("pods lose %v, all of them %v", got, want)
			}
			if got, want := x.overNodes(&pods, 0, losses, start), fresh.overNodes(&pods, 0, losses, start); got != want {
				t.Fatalf("nodes lose %v, all of them %v", got, want)
			}
		}
	})
}
