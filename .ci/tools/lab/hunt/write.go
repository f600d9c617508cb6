package hunt

import (
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy/figures"
)

// text writes p as a scenario of a name and of a trace, below the lines of a head.
func (p *plan) text(name, trace, head string) []byte {
	var b strings.Builder
	for line := range strings.Lines(head) {
		b.WriteString("# " + strings.TrimSuffix(line, "\n") + "\n")
	}
	fmt.Fprintf(&b,
		"apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: %s}\nspec:\n  duration: %s\n  warmUp: %s\n", name, figures.Exact(p.length), figures.Exact(warmUp))
	if trace != "" {
		fmt.Fprintf(&b, "  trace: %q\n", trace)
	}
	market := fmt.Sprintf("intensity: %g", p.intensity)
	if p.slots > 0 {
		market += fmt.Sprintf(", slots: %d", p.slots)
	}
	fmt.Fprintf(&b, "  market: {%s}\n", market)
	if len(p.faults) > 0 {
		b.WriteString("  faults:\n")
	}
	for i := range p.faults {
		b.WriteString("    - {" + p.faults[i].fields() + "}\n")
	}
	fmt.Fprintf(&b, poolText, p.minVCPU, p.maxVCPU, figures.Exact(p.settle))
	for i := range p.services {
		b.WriteString(p.services[i].text(i))
	}
	if p.batch != nil {
		b.WriteString(p.batch.text())
	}
	return []byte(b.String())
}

// warmUp is short: policies have half a day to reach the cluster that they keep.
const warmUp = 12 * time.Hour

const poolText = `---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: general}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minVCPU: %d, maxVCPU: %d}
  capacity: {spotShare: {min: 0, max: 1}}
  disruption: {budget: 20%%, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: %s}
  mode: active
`

// fields writes a fault as the Scenario has it.
func (f *fault) fields() string {
	out := fmt.Sprintf("kind: %s, at: %s, duration: %s", f.kind, figures.Exact(f.at), figures.Exact(f.length))
	if f.capacity != "" {
		out += ", capacityType: " + f.capacity
	}
	if f.share > 0 {
		out += fmt.Sprintf(", share: %g", f.share)
	}
	if f.factor > 0 {
		out += fmt.Sprintf(", factor: %g", f.factor)
	}
	if f.zone > 0 {
		out += fmt.Sprintf(", zoneNumber: %d", f.zone)
	}
	return out
}

// text writes number i of the services.
func (s *service) text(i int) string {
	name := []string{"shop", "search", "mail"}[i]
	var b strings.Builder
	fmt.Fprintf(&b,
		"---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %s\n  annotations:\n    spotter.dev/startup-time: %q\n", name, figures.Exact(s.startup))
	if s.penalty > penaltyLeast {
		fmt.Fprintf(&b, "    spotter.dev/outage-penalty: %q\n", figures.Exact(s.penalty))
	}
	if s.peak > s.replicas {
		fmt.Fprintf(&b, "    spotter.dev/replica-schedule: \"+0s=%d +%s=%d +%s=%[1]d\"\n", s.replicas,
			figures.Exact(s.burst), s.peak, figures.Exact(s.burst+s.burstLength))
	}
	fmt.Fprintf(&b,
		"spec:\n  replicas: %d\n  selector: {matchLabels: {app: %s}}\n  template:\n    metadata: {labels: {app: %[2]s}}\n    spec:\n", s.replicas, name)
	if s.spread.key != "" {
		when := "ScheduleAnyway"
		if s.spread.must {
			when = "DoNotSchedule"
		}
		fmt.Fprintf(&b,
			"      topologySpreadConstraints:\n        - {maxSkew: 1, topologyKey: %s, whenUnsatisfiable: %s, labelSelector: {matchLabels: {app: %s}}}\n", s.spread.key, when, name)
	}
	fmt.Fprintf(&b,
		"      containers:\n        - {name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: %dm, memory: %dMi}}}\n", s.cpu, 2*s.cpu)
	if s.available > 0 {
		fmt.Fprintf(&b,
			"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %s}\nspec: {minAvailable: %d%%, selector: {matchLabels: {app: %[1]s}}}\n", name, s.available)
	}
	return b.String()
}

// text writes the batch.
func (x *batch) text() string {
	more := ""
	if x.checkpoint > 0 {
		more = fmt.Sprintf("    spotter.dev/checkpoint-interval: %q\n", figures.Exact(x.checkpoint))
	}
	return fmt.Sprintf(batchText, figures.Exact(x.duration), more, x.pods)
}

const batchText = `---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
  annotations:
    spotter.dev/duration: %q
    spotter.dev/deadline: "6h"
%sspec:
  schedule: "0 */6 * * *"
  jobTemplate:
    spec:
      parallelism: %d
      completions: %[3]d
      backoffLimit: 100
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 1, memory: 2Gi}}}
`
