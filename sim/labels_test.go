package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/machines"
)

// ownLabelPool is a NodePool of small types with requirements of its own.
func ownLabelPool(name, capacity, requirements string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  disruption: {consolidateAfter: 1m}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: %s},
        {key: karpenter.k8s.aws/instance-family, operator: In, values: [c5, m5]}, %s]
---
`, name, capacity, requirements)
}

// deployment is one of pods of a core, with more in their spec.
func deployment(name string, replicas int, spec string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s}}, spec: {%[3]s containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}}
---
`, name, replicas, spec)
}

const ownLabelRest = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: c}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: own-labels}
spec: {duration: 24h}
`

// boundLabels binds the manifests to the synthetic trace.
func boundLabels(t *testing.T, manifests ...string) *scenarios.BoundScenario {
	t.Helper()
	return boundText(t, strings.Join(manifests, "")+ownLabelRest)
}

// lastNodes runs a policy under all checkers. It returns by node of the last snapshot the value of a
// label and the pods there, and by workload how many of its pods are on a node.
func lastNodes(t *testing.T, p *Prepared, spec, key string) (values, nodes map[string]string, placed map[string]int) {
	t.Helper()
	mustRun(t, Config{Prepared: p, Policy: mustPolicy(t, spec), Forecaster: mustForecaster(t), Seed: 3, Check: true,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			values, nodes, placed = map[string]string{}, map[string]string{}, map[string]int{}
			for i := range s.Pods {
				pod := &s.Pods[i]
				if pod.Node == policy.None || pod.Phase == policy.PodGone {
					continue
				}
				n := &s.Nodes[pod.Node]
				workload := s.Templates[pod.Template].Name
				value, there := policy.FindLabel(n.Labels, key)
				if !there {
					value = "-"
				}
				placed[workload]++
				nodes[n.Name] += workload + " "
				if old, seen := values[workload]; seen && old != value {
					value = "several"
				}
				values[workload] = value
			}
		}})
	return values, nodes, placed
}

// TestLabelThatExists has each node of a NodePool take the value that its pods select, and keeps pods
// that select others away from it: when they are first placed, and as Karpenter replaces nodes.
func TestLabelThatExists(t *testing.T) {
	const key = "example.com/unit"
	w := boundLabels(t, ownLabelPool("any", "[spot, on-demand]", "{key: "+key+", operator: Exists}"),
		deployment("north", 3, "nodeSelector: {"+key+": n}, "),
		deployment("south", 2,
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: "+key+", operator: In, values: [s]}]}]}}},"),
		deployment("free", 1, ""))
	p := mustPrepare(t, w)
	if len(p.Unschedulable()) > 0 {
		t.Fatalf("pods stay pending: %v", p.Warnings())
	}
	for _, spec := range []string{"as-is", "on-demand", "spot", "portfolio"} {
		values, nodes, placed := lastNodes(t, p, spec, key)
		if values["default/north"] != "n" || values["default/south"] != "s" {
			t.Errorf("%s: pods are on nodes with %v: %v", spec, values, nodes)
		}
		if fmt.Sprint(placed) != "map[default/free:1 default/north:3 default/south:2]" {
			t.Errorf("%s: %v have a place", spec, placed)
		}
	}
}

// TestReplacedLabel gives a node that a policy buys in place of another the values that this one has.
func TestReplacedLabel(t *testing.T) {
	pools := ownLabelPool("any", "[spot]", "{key: example.com/unit, operator: In, values: [n, s]}, {key: example.com/tier, operator: Exists}")
	p := mustPrepare(t, boundLabels(t, pools, deployment("north", 1, "nodeSelector: {example.com/unit: n, example.com/tier: gold}, ")))
	r, err := newRun(Config{Prepared: p, Policy: mustPolicy(t, "as-is"), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	const choices = 4
	if got := p.Offers[0][choices].Choice; got != 0 {
		t.Fatalf("the offers of one market end with choice %d", got)
	}
	for choice := range choices {
		m := p.Offers[0][0].Market
		slot, _ := r.market.Slot(m)
		n := r.machines.Launches.AddReady(machines.Order{Market: m, Slot: slot, Choice: choice})
		s, err := r.controller.Observer.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		token := strconv.Itoa(choice)
		if err := r.controller.Actuator.Launch(t.Context(), s, &policy.Launch{Token: token, Markets: []policy.MarketID{m},
			Replaces: n}); err != nil {
			t.Fatal(err)
		}
		fresh := r.machines.Launches.Tokens[token]
		if got, want := r.cluster.Nodes.All[fresh].Labels, r.cluster.Nodes.All[n].Labels; !slices.Equal(got, want) {
			t.Errorf("choice %d: labels %v, want %v", choice, got, want)
		}
	}
}

// TestCapacitySpread splits pods between on-demand and Spot as Karpenter documents it: evenly among
// the values of a label of which the NodePool for on-demand has one and that for Spot three. Without
// minDomains kube-scheduler would fill the first node that is ready, as it knows no other domain.
func TestCapacitySpread(t *testing.T) {
	spread := "topologySpreadConstraints: [{maxSkew: 1, minDomains: 4, topologyKey: example.com/part, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}],"
	w := boundLabels(t, ownLabelPool("firm", "[on-demand]", "{key: example.com/part, operator: In, values: [w]}"),
		ownLabelPool("cheap", "[spot]", "{key: example.com/part, operator: In, values: [x, y, z]}"), deployment("web", 16, spread))
	parts, firm := map[string]int{}, 0
	mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "as-is"), Seed: 3, Check: true,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			parts, firm = map[string]int{}, 0
			for i := range s.Pods {
				if n := s.Pods[i].Node; n != policy.None {
					value, _ := policy.FindLabel(s.Nodes[n].Labels, "example.com/part")
					parts[value]++
					if s.Markets[s.Nodes[n].Market].Capacity == policy.OnDemand {
						firm++
					}
				}
			}
		}})
	if got := fmt.Sprint(parts); got != "map[w:4 x:4 y:4 z:4]" || firm != 4 {
		t.Errorf("pods by part %s, %d of them on demand", got, firm)
	}
}

// TestUnschedulable says why pods fit nowhere, and leaves them out of outages and availability: they
// would hide all that policies do.
func TestUnschedulable(t *testing.T) {
	affinity := func(expressions ...string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [" +
			strings.Join(expressions, "]}, {matchExpressions: [") + "]}]}}},"
	}
	pool := ownLabelPool("own", "[spot]", "{key: example.com/unit, operator: In, values: [u, v]}")
	tainted := strings.Replace(pool, "    spec:\n", "    spec:\n      taints: [{key: example.com/guard, value: g, effect: NoSchedule}]\n", 1)
	daemon := strings.NewReplacer("kind: Deployment", "kind: DaemonSet", "  replicas: 1\n", "", "cpu: 1", "cpu: 10m").Replace(
		deployment("agent", 1, "hostNetwork: true, ")) + "\n"
	daemon = strings.Replace(daemon, "image: x,", "image: x, ports: [{containerPort: 7001, hostPort: 7001}],", 1)
	for _, c := range []struct{ pool, spec, change, want string }{
		{pool, "nodeSelector: {example.com/unit: q}, ", "",
			"its node selector wants example.com/unit=q, and nodes have u, v (nearest: c5.2xlarge of pool own)"},
		{strings.Replace(pool, "operator: In, values: [u, v]", "operator: NotIn, values: [q]", 1), "nodeSelector: {example.com/unit: q}, ", "",
			"its node selector wants example.com/unit=q, which no NodePool allows (nearest: c5.2xlarge of pool own)"},
		{pool, "nodeSelector: {example.com/other: q}, ", "", "its node selector wants example.com/other=q, a label that no node has"},
		{pool, affinity("{key: karpenter.k8s.aws/instance-memory, operator: Gt, values: ['90000']}"), "",
			"its node affinity wants karpenter.k8s.aws/instance-memory above 90000, and nodes have 65536, 32768, 16384, 8192, 4096 (nearest: m5.4xlarge of pool own)"},
		{pool, affinity("{key: kubernetes.io/arch, operator: In, values: [arm64]}",
			"{key: karpenter.k8s.aws/instance-gpu-count, operator: Exists}"), "",
			"its node affinity wants kubernetes.io/arch=arm64, and nodes have amd64 (nearest: c5.2xlarge of pool own); or karpenter.k8s.aws/instance-gpu-count to exist, a label that no node has"},
		{tainted, "", "", "it does not tolerate the taints example.com/guard=g (nearest: c5.2xlarge of pool own)"},
		{pool, "", "image: x,|image: x, ports: [{containerPort: 80, hostPort: 7001}],",
			"the DaemonSet default/agent has its host port 7001 on each node"},
		{pool, "", "cpu: 1}|cpu: 40}", "it requests 40000m of CPU (nearest: c5.4xlarge of pool own with 15880m)"},
		{pool, "", "cpu: 1}|memory: 90Gi}", "it requests 92160 MiB of memory (nearest: m5.4xlarge of pool own with 5"},
		{pool, "", "requests: {cpu: 1}|limits: {nvidia.com/gpu: 1}", "no node has nvidia.com/gpu (nearest: c5.2xlarge of pool own)"},
		{pool,
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: example.com/rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: odd}}}],", "",
			"it is spread or kept together by example.com/rack, a label that no node has"},
		{pool,
			"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: gone}}}]}},", "",
			"its pod affinity matches the pods of no workload"},
	} {
		odd := deployment("odd", 2, c.spec)
		if old, fresh, changed := strings.Cut(c.change, "|"); changed {
			odd = strings.Replace(odd, old, fresh, 1)
		}
		fine := deployment("fine", 1, "tolerations: [{operator: Exists}],")
		p := mustPrepare(t, boundLabels(t, c.pool, odd, daemon, fine))
		got := p.Unschedulable()
		if len(got) != 1 || p.Scenario().Workloads[got[0].Workload].Name != "default/odd" || !strings.Contains(got[0].Reason, c.want) {
			t.Errorf("%v, want %q", p.Warnings(), c.want)
			continue
		}
		res := mustRun(t, Config{Prepared: p, Policy: mustPolicy(t, "as-is"), Seed: 1, Check: true})
		if len(res.Workloads) != 1 || res.Workloads[0].Name != "default/fine" || res.Availability != 1 ||
			res.Incidents != 0 || res.OutageCost != 0 {
			t.Errorf("%s: availability %v, outages %v, %d workloads", c.want, res.Availability, &res.Outages, len(res.Workloads))
		}
		if p.PodValue(got[0].Workload) != 0 || strings.Count(strings.Join(res.Warnings, "\n"),
			"the pods of default/odd (2) stay pending and do not count") != 1 || len(res.Unschedulable) != 1 {
			t.Errorf("%s: warnings %q", c.want, res.Warnings)
		}
		if _, err := Prepare(boundLabels(t, c.pool, odd, daemon)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("no pod fits anywhere: %v", err)
		}
	}
}

// TestRunningUntilReplaced counts the outages of pods that run on nodes of the first cluster and fit
// no node that can be bought.
func TestRunningUntilReplaced(t *testing.T) {
	lonely := deployment("lonely", 1,
		"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: gone}}}]}},")
	w := boundLabels(t, ownLabelPool("own", "[on-demand]", "{key: example.com/unit, operator: In, values: [u]}"), lonely,
		deployment("fine", 1, ""))
	for _, onNode := range []bool{false, true} {
		if onNode {
			id := policy.WorkloadID(slices.IndexFunc(w.Workloads, func(x scenarios.Workload) bool { return x.Name == "default/lonely" }))
			w.StartCluster = scenarios.StartNodes
			w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: w.BoughtBy(0)[0], Count: 1, Pods: []scenarios.PodsOnNode{{Workload: id, Count: 1}}}}
		}
		p := mustPrepare(t, w)
		res := mustRun(t, Config{Prepared: p, Policy: mustPolicy(t, "as-is"), Seed: 1, Check: true})
		if u := p.Unschedulable(); len(u) != 1 || u[0].Pending == onNode || (len(res.Workloads) == 2) != onNode {
			t.Errorf("on a node from the start: %t; %+v, %d workloads have outages\n%q", onNode, u, len(res.Workloads), res.Warnings)
		}
	}
}

// TestValueWithoutOnDemand values pods by the on-demand price of nodes that they take as Spot alone,
// and pods that must run with others by that of any node.
func TestValueWithoutOnDemand(t *testing.T) {
	w := boundLabels(t, ownLabelPool("own", "[spot]", "{key: example.com/unit, operator: In, values: [u]}"), deployment("plain", 1, ""),
		deployment("spot", 1, "nodeSelector: {karpenter.sh/capacity-type: spot},"),
		deployment("with", 1,
			"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: plain}}}]}},"))
	var log bytes.Buffer
	p := mustPrepare(t, w)
	for i := range w.Workloads {
		if v := p.PodValue(policy.WorkloadID(i)); v == 0 || v != p.PodValue(0) {
			t.Errorf("a pod of %s is worth %v, want %v", w.Workloads[i].Name, v, p.PodValue(0))
		}
	}
	res := mustRun(t, Config{Prepared: p, Policy: mustPolicy(t, "as-is"), Seed: 1, Check: true, Log: &log})
	if res.Availability != 1 {
		t.Errorf("availability %v", res.Availability)
	}
}
