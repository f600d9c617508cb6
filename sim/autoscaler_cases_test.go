package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestAutoscalerCases plays hand-made cases of the Cluster Autoscaler's rules, each
// with the place in its source that states the rule. Nodes are on demand and calm:
// t0.large has 3.9 cores and 15.5 GiB for pods, each further type twice as much.
//
//	nodes types=2
//	pods NAME count=2 cpu=1800 memory=1024 [at=6h count-then=0] [system] [unsafe] [daemon] [max-unavailable=1]
//	run
//
// Run prints what nodes do, by second: launched (with their type), draining, deleted.
func TestAutoscalerCases(t *testing.T) {
	datadriven.Walk(t, "testdata/autoscaler", func(t *testing.T, path string) {
		var b *builder
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "nodes":
				types := 1
				d.MaybeScanArgs(t, "types", &types)
				b = newBuilder(12 * time.Hour)
				b.w.Intensity, b.w.WarmUp, b.w.StartCluster = 0, time.Hour, scenarios.StartOnDemand
				b.markets(1, types, false)
				b.groups(b.pool("p"))
			case "pods":
				addCasePods(t, b, d)
			case "run":
				_, log := runScenario(t, b.scenario(), "on-demand")
				return nodeEvents(t, log)
			default:
				d.Fatalf(t, "unknown command")
			}
			return ""
		})
	})
}

func addCasePods(t *testing.T, b *builder, d *datadriven.TestData) {
	number, then, cpu, memory, unavailable := 1, 0, 0, 0, -1
	var from string
	d.ScanArgs(t, "count", &number)
	d.ScanArgs(t, "cpu", &cpu)
	d.ScanArgs(t, "memory", &memory)
	d.MaybeScanArgs(t, "at", &from)
	d.MaybeScanArgs(t, "count-then", &then)
	d.MaybeScanArgs(t, "max-unavailable", &unavailable)
	kind := policy.KindDeployment
	if d.HasArg("daemon") {
		kind = policy.KindDaemonSet
	}
	x := b.workload(d.CmdArgs[0].Key, kind, int32(number), policy.Resources{CPU: int64(cpu), Memory: int64(memory) << 20})
	id := x.Workload
	if d.HasArg("system") {
		x.Namespace = "kube-system"
	}
	x.NotSafeToEvict = d.HasArg("unsafe")
	if from != "" {
		after, err := time.ParseDuration(from)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		b.w.Workloads[id].Schedule = append(b.w.Workloads[id].Schedule, scenarios.ReplicaStep{At: at(after), Replicas: int32(then)})
	}
	if unavailable >= 0 {
		b.budget(id, policy.Quantity{Set: true, N: int32(unavailable)})
	}
}

// nodeEvents lists what nodes do, alike things of one second together.
func nodeEvents(t *testing.T, log []string) string {
	var order []string
	number := map[string]int{}
	for _, line := range log {
		for _, what := range []string{"launch", "draining", "deleted"} {
			if count([]string{line}, " "+what+" ") == 0 {
				continue
			}
			text := fmt.Sprintf("%8s %s", when(t, []string{line})[0].Sub(testStart).Truncate(time.Second), what)
			if _, market, ok := strings.Cut(line, "aws/r/z0/"); ok && what == "launch" {
				text += " " + strings.Fields(market)[0]
			}
			if number[text]++; number[text] == 1 {
				order = append(order, text)
			}
		}
	}
	var out strings.Builder
	for _, text := range order {
		fmt.Fprintf(&out, "%s x%d\n", text, number[text])
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}
