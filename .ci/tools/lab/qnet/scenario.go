package qnet

import (
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// laws are the presets whose prices scenarios are played on: those that were fitted
// to other years than anything that policies are compared on.
var laws = []string{"aws-2021", "aws-quiet-2020"}

// The lengths of a scenario and of its trace.
const (
	scenarioHours = 46
	warmHours     = 2
	traceDays     = 6
)

// A source holds the traces that scenarios run on.
type source struct{ traces []*trace.Trace }

// newSource draws n traces.
func newSource(seed uint64, n int) (*source, error) {
	s := &source{}
	for i := range n {
		key := chance.Stream(seed, "trace").At1(uint64(i))
		preset, err := generate.FindPreset(laws[i%len(laws)])
		if err != nil {
			return nil, err
		}
		markets, err := preset.Take(60 + 20*key.At1(0).IntN(7))
		if err != nil {
			return nil, fmt.Errorf("markets of %s: %w", preset.Law.Name, err)
		}
		from := preset.Begin()
		t, err := generate.Generate(generate.Config{
			Seed: uint64(key.At1(1)), From: from, To: from.Add(traceDays * 24 * time.Hour), Markets: markets, Law: preset.Law,
		})
		if err != nil {
			return nil, err
		}
		s.traces = append(s.traces, t)
	}
	return s, nil
}

// scenario draws the i-th scenario of a stream.
func (s *source) scenario(stream chance.Key, i int) (*scenarios.BoundScenario, error) {
	key := stream.At1(uint64(i))
	sc, err := scenarios.Parse(fmt.Sprintf("world-%d.yaml", i), []byte(Manifests(key)))
	if err != nil {
		return nil, err
	}
	t := s.traces[key.At1(900).IntN(len(s.traces))]
	hours := traceDays*24 - scenarioHours - warmHours
	from := t.From.Add(time.Duration(warmHours+key.At1(901).IntN(hours)) * time.Hour)
	return scenarios.Bind(sc, t, scenarios.BindOptions{From: from - from%policy.Time(time.Hour.Milliseconds())})
}

// A drawer draws a scenario and writes it.
type drawer struct {
	strings.Builder
	key  chance.Key
	next uint64
}

// draw returns a fresh key.
func (d *drawer) draw() chance.Key {
	d.next++
	return d.key.At1(d.next)
}

// between draws from low to high.
func (d *drawer) between(low, high float64) float64 {
	return low + float64(d.draw().Float()*(high-low))
}

// often reports true in a part p of the draws.
func (d *drawer) often(p float64) bool { return d.draw().Float() < p }

func pick[T any](d *drawer, from ...T) T { return from[d.draw().IntN(len(from))] }

// Manifests draws the manifests of one scenario from key: one or two pools of a
// few to some thirty nodes, services and jobs of all kinds, weather from as
// calm as recorded to thirty times as rough, and faults in about half of the
// scenarios.
func Manifests(key chance.Key) string {
	d := &drawer{key: key}
	d.scenario()
	d.WriteString(priorities)
	pools := pick(d, 1, 1, 1, 2)
	for p := range pools {
		d.pool(p)
		services := 2 + d.draw().IntN(4)
		for i := range services {
			d.service(p, i)
		}
		for i := range pick(d, 0, 0, 0, 1, 2) {
			d.job(p, i)
		}
	}
	return d.String()
}

const priorities = `---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
preemptionPolicy: Never
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: normal}
value: 500
preemptionPolicy: Never
globalDefault: true
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 100
`

// scenario writes the Scenario with its faults.
func (d *drawer) scenario() {
	intensity := pick(d, 1.0, 1, 1, 2, 4, 8, 16, 30)
	fmt.Fprintf(d, `apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: world}
spec:
  duration: %dh
  warmUp: %dh
  market: {intensity: %g}
`, scenarioHours, warmHours, intensity)
	var faults []string
	if d.often(0.3) { // intervals in which spot runs out, for a part of the markets or all
		share, every := pick(d, 0.3, 0.6, 1.0), d.between(5, 30)
		for at := d.between(0, every); at < scenarioHours-1; at += d.between(0.5, 1.5) * every {
			faults = append(faults, fmt.Sprintf("{kind: squeeze, at: %dm, duration: %dm, share: %g}", int(at*60),
				int(d.between(20, 240)), share))
		}
	}
	if d.often(0.25) { // prices rise, to and above those on demand
		faults = append(faults, fmt.Sprintf("{kind: price-ramp, at: %dm, duration: %dm, capacityType: spot, factor: %.2f}",
			int(d.between(0, 24)*60), int(d.between(4, 40)*60), d.between(1.3, 6)))
	}
	if d.often(0.15) {
		faults = append(faults, fmt.Sprintf("{kind: late-notice, at: 0h, duration: %dh, share: %.2f}", scenarioHours,
			d.between(0.2, 1)))
	}
	if d.often(0.05) {
		faults = append(faults, fmt.Sprintf("{kind: zone-outage, at: %dm, duration: 2h, zoneNumber: 1}",
			int(d.between(1, 40)*60)))
	}
	if len(faults) > 0 {
		fmt.Fprintf(d, "  faults:\n    - %s\n", strings.Join(faults, "\n    - "))
	}
}

// pool writes pool p. Its first share is anywhere within its bounds.
func (d *drawer) pool(p int) {
	low, high := 0.0, 1.0
	if d.often(0.25) {
		low, high = d.between(0, 0.4), d.between(0.6, 1)
	}
	fmt.Fprintf(d, `---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: pool%d}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minVCPU: %d, maxVCPU: 16}
  capacity: {spotShare: {min: %.2f, max: %.2f, target: %.2f}}
  disruption: {budget: %s, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 5m}
  mode: active
`, p, pick(d, 2, 4, 4), low, high, d.between(low, high), pick(d, "10%", "10%", "20%"))
	if p > 0 {
		fmt.Fprintf(d,
			"  template:\n    labels: {pool: pool%[1]d}\n    taints: [{key: pool, value: pool%[1]d, effect: NoSchedule}]\n", p)
	}
}

// placed writes what holds a pod to pool p, indented by indent.
func placed(p int, indent string) string {
	if p == 0 {
		return ""
	}
	return fmt.Sprintf("%[2]snodeSelector: {pool: pool%[1]d}\n%[2]stolerations: [{key: pool, operator: Equal, value: pool%[1]d, effect: NoSchedule}]\n", p, indent)
}

// service writes service i of pool p, with or without a disruption budget.
func (d *drawer) service(p, i int) {
	name := fmt.Sprintf("service%d", i)
	replicas := pick(d, 2, 3, 4, 6, 8, 12, 16, 24)
	cpu := pick(d, 500, 1000, 1000, 1500, 2000, 3000)
	memory := int(float64(cpu) * d.between(1.2, 4) / 1000 * 1024)
	schedule := ""
	if d.often(0.6) {
		night := max(1, int(d.between(0.3, 0.9)*float64(replicas)))
		schedule = fmt.Sprintf("\n    spotter.dev/replica-schedule: \"00:00=%[1]d %02[3]d:00=%[2]d %[4]d:00=%[1]d\"", night,
			replicas, 5+d.draw().IntN(5), 17+d.draw().IntN(6))
	}
	fmt.Fprintf(d, `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: pool%[2]d
  annotations:
    spotter.dev/startup-time: "%[3]ds"%[4]s
spec:
  replicas: %[5]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      priorityClassName: %[6]s
%[7]s`, name, p, 20+d.draw().IntN(160), schedule, replicas, pick(d, "high", "high", "normal", "low"), placed(p, "      "))
	if d.often(0.5) {
		fmt.Fprintf(d, `      topologySpreadConstraints:
        - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: %s, labelSelector: {matchLabels: {app: %s}}}
`, pick(d, "DoNotSchedule", "ScheduleAnyway"), name)
	}
	fmt.Fprintf(d, `      containers:
        - {name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: %dm, memory: %dMi}}}
`, cpu, memory)
	if d.often(0.6) {
		fmt.Fprintf(d, `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: %[1]s, namespace: pool%[2]d}
spec: {%[3]s, selector: {matchLabels: {app: %[1]s}}}
`, name, p, pick(d, "maxUnavailable: 1", "maxUnavailable: 20%", "maxUnavailable: 50%", "minAvailable: 75%", "minAvailable: 90%"))
	}
}

// job writes cron job i of pool p.
func (d *drawer) job(p, i int) {
	minutes := pick(d, 20, 60, 120, 300)
	checkpoint := ""
	if d.often(0.5) {
		checkpoint = fmt.Sprintf("\n    spotter.dev/checkpoint-interval: \"%dm\"", pick(d, 10, 15, 30))
	}
	parallel := 2 + d.draw().IntN(10)
	cpu := pick(d, 1000, 2000, 3000)
	fmt.Fprintf(d, `---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: job%[1]d
  namespace: pool%[2]d
  annotations:
    spotter.dev/duration: "%[3]dm"
    spotter.dev/deadline: "%[4]dm"%[5]s
spec:
  schedule: "%[6]d */%[7]d * * *"
  jobTemplate:
    spec:
      parallelism: %[8]d
      completions: %[8]d
      backoffLimit: 100
      template:
        metadata: {labels: {app: job%[1]d}}
        spec:
          priorityClassName: %[9]s
          restartPolicy: Never
%[10]s          containers:
            - {name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: %[11]dm, memory: %[12]dMi}}}
`, i, p, minutes, int(float64(minutes)*d.between(1.5, 4))+20, checkpoint, d.draw().IntN(60), pick(d, 6, 8, 12), parallel,
		pick(d, "high", "normal", "low"), placed(p, "          "), cpu, cpu*3)
}
