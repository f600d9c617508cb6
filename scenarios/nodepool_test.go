package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// ownNodePool is a NodePool that states everything that is simulated, with gaps for
// template.spec.requirements, for more of spec, and for spec of its class.
const ownNodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: own}
spec:
  weight: 20
  limits: {cpu: "40", memory: 100Gi, nvidia.com/gpu: "2", nodes: "5"}
  template:
    metadata:
      labels: {team: a}
      annotations: {karpenter.sh/do-not-disrupt: "true"}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}
      taints: [{key: t, value: v, effect: NoSchedule}]
      expireAfter: 48h
      terminationGracePeriod: 30m
      requirements: [%s]
  disruption:
    consolidationPolicy: Balanced
    consolidateAfter: 2m
    budgets:
      - {nodes: "3"}
      - {nodes: 25%%, reasons: [Empty, Drifted], schedule: "0 9 * * *", duration: 8h}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: c}
spec: {%s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: p}
spec:
  replicas: 1
  selector: {matchLabels: {app: p}}
  template: {metadata: {labels: {app: p}}, spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]}}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {duration: 24h}
`

const twoFamilies = "{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, c6g]}"

// parseOwn reads a scenario of ownNodePool.
func parseOwn(t *testing.T, requirements, class string) *Scenario {
	t.Helper()
	sc, err := Parse("s.yaml", fmt.Appendf(nil, ownNodePool, requirements, class))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// boundOwn binds it to the embedded trace.
func boundOwn(t *testing.T, sc *Scenario) *BoundScenario {
	t.Helper()
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	w, err := Bind(sc, tr, BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestNodePool reads every field of a NodePool.
func TestNodePool(t *testing.T) {
	w := boundOwn(t, parseOwn(t, twoFamilies+`, {key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ["4"], minValues: 2},
		{key: karpenter.sh/capacity-type, operator: In, values: [spot]}, {key: example.com/tier, operator: In, values: [gold]}`, ""))
	got := w.Pools[0]
	got.Markets, got.Labels = nil, nil
	want := policy.Pool{
		Name: "own", Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive, Share: policy.ShareRange{Max: 1}, OnDemandFallback: true,
		Limits: policy.Resources{CPU: 40_000, Memory: 100 << 30, GPU: 2}, Consolidation: policy.Balanced, ConsolidateAfter: 2 * time.Minute,
		ExpireAfter: 48 * time.Hour, Taints: []policy.Taint{{Key: "t", Value: "v", Effect: policy.NoSchedule}},
		CapacityTypes: []policy.CapacityType{policy.Spot}, Levers: policy.Levers{Weights: true, Limits: true, Launch: true},
		Budgets: []policy.DisruptionBudget{
			{Nodes: policy.Quantity{Set: true, N: 3}, Active: true},
			{Nodes: policy.Quantity{Set: true, Percent: true, N: 25}, Reasons: []policy.DisruptionReason{policy.Empty,
				policy.Drifted}, Schedule: "0 9 * * *", Duration: 8 * time.Hour},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("pool\n%+v\nwant\n%+v", got, want)
	}
	if labels := fmt.Sprint(w.Pools[0].Labels); labels != "[{example.com/tier gold} {karpenter.k8s.aws/ec2nodeclass c} {team a}]" {
		t.Errorf("labels %s", labels)
	}
	own := *w.NodePools[0]
	if requirements := fmt.Sprint(own.Requirements); requirements != "[{karpenter.k8s.aws/instance-family 0 [m5 c6g]} {karpenter.k8s.aws/instance-cpu 4 [3]}]" {
		t.Errorf("requirements %s", requirements)
	}
	own.Requirements = nil
	if want := (NodePool{Weight: 20, MinValues: []MinValues{{"karpenter.k8s.aws/instance-cpu", 2}}, NodesMax: 5,
		DoNotDisrupt: true, TerminationGrace: 30 * time.Minute}); !reflect.DeepEqual(own, want) {
		t.Errorf("it asks for %+v, want %+v", own, want)
	}
	types := []string{}
	for i := range w.Types {
		types = append(types, w.Types[i].Name)
	}
	if got, want := strings.Join(types, " "), "c6g.2xlarge c6g.4xlarge c6g.xlarge m5.2xlarge m5.4xlarge m5.xlarge"; got != want {
		t.Errorf("it may buy %s, want %s", got, want)
	}
	if len(w.Markets) != 2*3*len(types) {
		t.Errorf("%d markets: other policies may buy on demand, too", len(w.Markets))
	}
}

// TestNodePoolDefaults reads one that states nothing as Karpenter does.
func TestNodePoolDefaults(t *testing.T) {
	text := fmt.Sprintf(ownNodePool, twoFamilies, "")
	_, class, _ := strings.Cut(text, "---")
	sc, err := Parse("s.yaml", []byte(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: own}
spec:
  limits: {cpu: "0", nodes: "0"}
  disruption: {consolidateAfter: Never}
  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}, requirements: []}}
---`+class))
	if err != nil {
		t.Fatal(err)
	}
	p := &sc.Pools()[0]
	tenth := []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, Percent: true, N: 10}, Active: true}}
	if !reflect.DeepEqual(p.Budgets, tenth) || p.ExpireAfter != 720*time.Hour || p.Consolidation != policy.ConsolidateNever ||
		!slices.Equal(p.CapacityTypes, []policy.CapacityType{policy.OnDemand, policy.Spot}) || p.Limits.CPU != 1 {
		t.Errorf("defaults %+v", p)
	}
}

// TestRequirements meets requirements with every operator, on labels that types carry and
// on those that follow from what the catalog holds.
func TestRequirements(t *testing.T) {
	for requirement, want := range map[string]string{
		"{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, g5.xlarge]}":                                  "g5.xlarge m5.large",
		"{key: beta.kubernetes.io/instance-type, operator: In, values: [m5.large]}":                                             "m5.large",
		"{key: karpenter.k8s.aws/instance-category, operator: NotIn, values: [c, m, r, g]}":                                     "p3.2xlarge",
		"{key: karpenter.k8s.aws/instance-gpu-count, operator: Exists}, {key: kubernetes.io/os, operator: In, values: [linux]}": "g4dn.12xlarge g4dn.2xlarge g4dn.4xlarge g4dn.xlarge g5.12xlarge g5.2xlarge g5.4xlarge g5.xlarge p3.2xlarge",
		"{key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [v100]}":                                              "p3.2xlarge",
		"{key: karpenter.k8s.aws/instance-gpu-count, operator: Gt, values: ['1']}":                                              "g4dn.12xlarge g5.12xlarge",
		"{key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ['4']}":                                                    "c5.large m5.large r5.large",
		"{key: karpenter.k8s.aws/instance-cpu, operator: Lte, values: ['2']}":                                                   "c5.large m5.large r5.large",
		"{key: karpenter.k8s.aws/instance-memory, operator: Gte, values: ['196608']}":                                           "g4dn.12xlarge g5.12xlarge",
		"{key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [xen]}":                                             "p3.2xlarge",
		"{key: karpenter.k8s.aws/instance-cpu-manufacturer, operator: In, values: [amd]}":                                       "g5.12xlarge g5.2xlarge g5.4xlarge g5.xlarge m5a.2xlarge m5a.4xlarge m5a.xlarge",
		"{key: karpenter.k8s.aws/instance-gpu-memory, operator: Lt, values: ['20000']}":                                         "g4dn.12xlarge g4dn.2xlarge g4dn.4xlarge g4dn.xlarge p3.2xlarge",
		"{key: karpenter.k8s.aws/instance-local-nvme, operator: Gte, values: ['900']}":                                          "g4dn.12xlarge g5.12xlarge",
		"{key: karpenter.k8s.aws/instance-ebs-bandwidth, operator: Lt, values: ['3000']}":                                       "m5a.2xlarge m5a.4xlarge m5a.xlarge p3.2xlarge",
		"{key: karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz, operator: Lt, values: ['2600']}":                       "c6g.2xlarge c6g.4xlarge c6g.xlarge g4dn.12xlarge g4dn.2xlarge g4dn.4xlarge g4dn.xlarge m5a.2xlarge m5a.4xlarge m5a.xlarge m6g.2xlarge m6g.4xlarge m6g.xlarge r6g.2xlarge r6g.4xlarge r6g.xlarge",
		"{key: karpenter.k8s.aws/instance-encryption-in-transit-supported, operator: In, values: ['true']}, {key: karpenter.k8s.aws/instance-accelerator-name, operator: DoesNotExist}, {key: node.kubernetes.io/windows-build, operator: DoesNotExist}, {key: karpenter.k8s.aws/instance-gpu-count, operator: DoesNotExist}, {key: karpenter.k8s.aws/instance-size, operator: In, values: [xlarge]}":                                                                     "c6i.xlarge c7i.xlarge m6i.xlarge m7i.xlarge r6i.xlarge r7i.xlarge",
		"{key: karpenter.k8s.aws/instance-size, operator: In, values: [large]}, {key: kubernetes.io/arch, operator: NotIn, values: [arm64]}, {key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: DoesNotExist}, {key: karpenter.k8s.aws/instance-capability-flex, operator: In, values: ['false']}, {key: karpenter.k8s.aws/instance-network-bandwidth, operator: Gt, values: ['1']}, {key: karpenter.k8s.aws/instance-generation, operator: In, values: ['5']}": "c5.large m5.large r5.large",
	} {
		text := strings.Replace(fmt.Sprintf(ownNodePool, requirement, ""), "nvidia.com/gpu: \"2\", ", "", 1)
		sc, err := Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", requirement, err)
		}
		w := boundOwn(t, sc)
		var got []string
		for i := range w.Types {
			got = append(got, w.Types[i].Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", requirement, strings.Join(got, " "), want)
		}
	}
}

// TestZones keeps a NodePool within the zones that it requires and those of the subnets of its
// class, by name or by ID.
func TestZones(t *testing.T) {
	subnets := "subnetSelectorTerms: [{id: x}]}\nstatus: {subnets: [{id: a, zone: us-east-1b, zoneID: use1-az4}, {id: b, zone: us-east-1c, zoneID: use1-az6}]"
	for _, c := range []struct{ more, class, want string }{
		{"", "", "[us-east-1a us-east-1b us-east-1c]"},
		{", {key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}", "", "[us-east-1a]"},
		{", {key: failure-domain.beta.kubernetes.io/zone, operator: NotIn, values: [us-east-1a]}", "", "[us-east-1b us-east-1c]"},
		{"", subnets, "[us-east-1b us-east-1c]"},
		{", {key: topology.k8s.aws/zone-id, operator: In, values: [use1-az6]}", subnets, "[us-east-1c]"},
	} {
		if got := fmt.Sprint(boundOwn(t, parseOwn(t, twoFamilies+c.more, c.class)).Zones); got != c.want {
			t.Errorf("%s, %s: zones %s, want %s", c.more, c.class, got, c.want)
		}
	}
}

// TestNodeClass reads what a class leaves of a machine.
func TestNodeClass(t *testing.T) {
	plain, _ := catalog.Lookup("aws", "m5.large")
	for class, want := range map[string]func(t *policy.InstanceType){
		"":                          func(*policy.InstanceType) {},
		"kubelet: {maxPods: 20}":    func(t *policy.InstanceType) { t.Capacity.Pods, t.Allocatable.Pods = 20, 20 },
		"kubelet: {podsPerCore: 5}": func(t *policy.InstanceType) { t.Capacity.Pods, t.Allocatable.Pods = 10, 10 },
		"amiFamily: AL2, kubelet: {systemReserved: {cpu: 100m, memory: 1Gi, ephemeral-storage: 2Gi, pid: \"100\"}}": func(t *policy.InstanceType) {
			t.Allocatable = t.Allocatable.Minus(policy.Resources{CPU: 100, Memory: 1 << 30, Storage: 2 << 30})
		},
		"kubelet: {kubeReserved: {cpu: 200m, memory: 500Mi, ephemeral-storage: 3Gi}}": func(t *policy.InstanceType) {
			t.Allocatable.CPU = 1800
			t.Allocatable.Memory = t.Capacity.Memory - 600<<20
			t.Allocatable.Storage -= 2 << 30
		},
		"kubelet: {evictionHard: {memory.available: 300Mi, nodefs.available: 20%}}": func(t *policy.InstanceType) {
			t.Allocatable.Memory -= 200 << 20
			t.Allocatable.Storage -= 2 << 30
		},
		"kubelet: {evictionHard: {memory.available: 100%}}": func(t *policy.InstanceType) { t.Allocatable.Memory += 100 << 20 },
		// Bottlerocket keeps memory back for the pods that it may hold, and knows no pods per core.
		"amiSelectorTerms: [{alias: bottlerocket@latest}], kubelet: {maxPods: 9, podsPerCore: 1}": func(t *policy.InstanceType) {
			t.Capacity.Pods, t.Allocatable.Pods = 9, 9
			t.Allocatable.Memory += 20 * 11 << 20
		},
		"amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 40Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 90Gi}}]": func(t *policy.InstanceType) {
			t.Capacity.Storage = 40 << 30
			t.Allocatable.Storage = 35 << 30
		},
		"amiFamily: Bottlerocket, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 40Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 90Gi}}]": func(t *policy.InstanceType) {
			t.Capacity.Storage = 90 << 30
			t.Allocatable.Storage = 80 << 30
		},
		"blockDeviceMappings: [{deviceName: a, rootVolume: true, ebs: {volumeSize: 40Gi}}, {deviceName: b, ebs: {volumeSize: 90Gi}}]": func(t *policy.InstanceType) {
			t.Capacity.Storage = 40 << 30
			t.Allocatable.Storage = 35 << 30
		},
	} {
		w := boundOwn(t, parseOwn(t, "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}", class))
		x := plain
		want(&x)
		if w.Types[0].Allocatable != x.Allocatable || w.Types[0].Capacity != x.Capacity {
			t.Errorf("%s: %+v of %+v, want %+v of %+v", class, w.Types[0].Allocatable, w.Types[0].Capacity, x.Allocatable, x.Capacity)
		}
	}
}

// TestTwoSizes binds NodePools that leave different parts of one type to pods: each has its
// own, and the type stands with the lesser, which is said.
func TestTwoSizes(t *testing.T) {
	other := `---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: other}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: d}, requirements: [%s]}}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: d}
spec: {%s}
`
	plain, _ := catalog.Lookup("aws", "m5.large")
	for _, c := range []struct {
		requirements, class     string
		pods, other, own, notes int64
	}{
		{twoFamilies, "kubelet: {maxPods: 9}", 9, 9, plain.Capacity.Pods, 1},
		{twoFamilies, "kubelet: {maxPods: 200}", plain.Capacity.Pods, 200, plain.Capacity.Pods, 1},
		{"{key: karpenter.k8s.aws/instance-family, operator: In, values: [r5]}", "kubelet: {maxPods: 9}",
			plain.Capacity.Pods, plain.Capacity.Pods, plain.Capacity.Pods, 0},
	} {
		sc, err := Parse("s.yaml", []byte(fmt.Sprintf(ownNodePool, twoFamilies, "")+fmt.Sprintf(other, c.requirements, c.class)))
		if err != nil {
			t.Fatal(err)
		}
		w := boundOwn(t, sc)
		at := policy.TypeID(slices.IndexFunc(w.Types, func(t policy.InstanceType) bool { return t.Name == "m5.large" }))
		if got := [3]int64{w.Types[at].Allocatable.Pods, w.AllocatableOf(0, at).Pods,
			w.AllocatableOf(1, at).Pods}; got != [3]int64{c.pods, c.other, c.own} {
			t.Errorf("%s: a node takes %d pods, want %d, %d, %d", c.class, got, c.pods, c.other, c.own)
		}
		if said := strings.Count(strings.Join(w.Warnings, " "),
			"pools other and own leave different parts of 7 instance types"); int64(said) != c.notes {
			t.Errorf("%s: %q", c.class, w.Warnings)
		}
	}
}

// TestNodePoolErrors refuses what is not simulated, or cannot be meant, by the name of the
// field; what changes nothing is a warning.
func TestNodePoolErrors(t *testing.T) {
	for _, c := range []struct{ old, fresh, want string }{
		{"weight: 20", "weight: 0", `"spec.weight": 0 is not from 1 to 100`},
		{"weight: 20", "replicas: 3", `"spec.limits.cpu": only a limit on nodes may be set together with replicas`},
		{"weight: 20", "weight: 20\n  replicas: 3", `"spec.weight": must not be set together with replicas`},
		{"weight: 20", "replicas: -1", `"spec.replicas": -1 is not from 0 to`},
		{"weight: 20", "wieght: 20", `"spec.wieght": unknown key; did you mean "weight"?`},
		{"labels: {team: a}\n      annotations", "labels: {karpenter.sh/x: a}\n      annotations",
			`"spec.template": label "karpenter.sh/x": reserved for Karpenter`},
		{"    metadata:\n      labels: {team: a}", "    labels: {team: a}\n    metadata:", `"spec.template.labels": unknown key`},
		{`nodes: "5"`, `pods: "5"`, `"spec.limits.pods": limits on pods are not simulated`},
		{`nodes: "5"`, `nodes: "-5"`, `"spec.limits.nodes": -5 is negative`},
		{`nodes: "5"`, `amd.com/gpu: "5"`, `there is also a limit on amd.com/gpu`},
		{"kind: EC2NodeClass, name: c}", "kind: OCINodeClass, name: c}",
			`"spec.template.spec.nodeClassRef.kind": nodes of kind "OCINodeClass" are not simulated`},
		{"kind: EC2NodeClass, name: c}", "kind: AKSNodeClass, name: c}",
			`"spec.template.spec.nodeClassRef.group": "karpenter.k8s.aws" of kind AKSNodeClass, want "karpenter.azure.com"`},
		{"group: karpenter.k8s.aws,", "group: karpenter.aws,", `"spec.template.spec.nodeClassRef.group": "karpenter.aws" of kind EC2NodeClass`},
		{"expireAfter: 48h", "expireAfter: soon", `want a duration such as 90s, 15m or 24h, or Never, got "soon"`},
		{"expireAfter: 48h", "expireAfter: -1h", `"spec.template.spec.expireAfter": -1h0m0s is negative`},
		{"terminationGracePeriod: 30m", "terminationGracePeriod: 0s", `"spec.template.spec.terminationGracePeriod": 0s is not above 0`},
		{"consolidationPolicy: Balanced", "consolidationPolicy: Never", `"spec.disruption.consolidationPolicy": "Never" is not WhenEmpty`},
		{`{nodes: "3"}`, `{nodes: 101%}`, `"spec.disruption.budgets[0].nodes": "101%" is not a number of nodes`},
		{`{nodes: "3"}`, `{nodes: "3", duration: 1h}`, `"spec.disruption.budgets[0]": schedule and duration must be set together`},
		{"[Empty, Drifted]", "[Empty, Old]", `"spec.disruption.budgets[1].reasons[1]": "Old" is not`},
		{`"0 9 * * *"`, `"9 * *"`, `"spec.disruption.budgets[1].schedule": "9 * *" is not a schedule`},
		{"[ROOM]", "[{key: karpenter.k8s.aws/instance-warp, operator: Exists}]",
			`requirements[0].key": "karpenter.k8s.aws/instance-warp": the catalog does not know this`},
		{"[ROOM]", "[{key: karpenter.k8s.aws/placement-group-id, operator: DoesNotExist}]",
			`requirements[0].key": "karpenter.k8s.aws/placement-group-id": the catalog does not know this`},
		{"[ROOM]", "[{key: a.b/c, operator: In, values: [x, y]}, {key: a.b/c, operator: NotIn, values: [y, x]}]", `"a.b/c": no value meets all`},
		{"[ROOM]",
			"[{key: a.b/c, operator: Exists}, {key: a.b/c, operator: DoesNotExist}, {key: a.b/c, operator: In, values: [x]}]", `"a.b/c": no value meets all`},
		{"[ROOM]", "[{key: team, operator: In, values: [b]}]", `"team": the label of the template, "a", does not meet`},
		{"[ROOM]", "[{key: karpenter.sh/capacity-type, operator: In, values: [reserved]}]",
			`allows reserved alone, and its EC2NodeClass selects no capacity reservation`},
		{"[ROOM]", "[{key: kubernetes.io/arch, operator: Is, values: [a]}]", `kubernetes.io/arch: operator "Is" is not one of`},
		{"[ROOM]", "[{key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: [two]}]", `Gte needs one integer of at least 0, not ["two"]`},
		{"[ROOM]", "[{key: topology.k8s.aws/zone-id, operator: In, values: [use1-az1]}]", `"use1-az1": which zone that is differs by account`},
		{"[ROOM]", "[{key: kubernetes.io/arch, operator: Exists, minValues: 51}]", `requirements[0].minValues": 51 is not from 1 to 50`},
		{"[ROOM]", "[{key: a.b/c, operator: Exists, minValues: 2}]", `minValues of this label are not simulated`},
		{"spec: {CLASS}", "spec: {capacityReservationSelectorTerms: [{id: x}]}",
			`"spec.capacityReservationSelectorTerms": what it selects is known by status.capacityReservations alone`},
		{"spec: {CLASS}", "spec: {placementGroupSelector: {name: x}}", `"spec.placementGroupSelector": placement groups are not simulated`},
		{"spec: {CLASS}", "spec: {amiFamily: Windows2022}", `"spec.amiFamily": "Windows2022": nodes of Windows are not simulated`},
		{"spec: {CLASS}", "spec: {amiSelectorTerms: [{alias: suse@latest}]}",
			`"spec.amiSelectorTerms[0].alias": "suse@latest" is not of a known family`},
		{"spec: {CLASS}", "spec: {blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeType: gp9}}]}",
			`"spec.blockDeviceMappings[0].ebs.volumeType": "gp9" is not one of gp2, gp3`},
		{"spec: {CLASS}", "spec: {blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {iops: -3}}]}",
			`"spec.blockDeviceMappings[0].ebs.iops": -3 is not from 1`},
		{"spec: {CLASS}", "spec: {kubelet: {maxPods: 0}}", `"spec.kubelet.maxPods": 0 is not above 0`},
		{"spec: {CLASS}", "spec: {kubelet: {systemReserved: {cpu: lots}}}", `"spec.kubelet.systemReserved.cpu": want a quantity`},
		{"spec: {CLASS}", "spec: {kubelet: {kubeReserved: {gpu: 1}}}", `want a string, got "1"`},
		{"spec: {CLASS}", "spec: {kubelet: {evictionHard: {memory.available: 101%}}}",
			`"spec.kubelet.evictionHard.memory.available": want a quantity`},
		{"spec: {CLASS}", "spec: {kubelet: {maxPod: 10}}", `"spec.kubelet.maxPod": unknown key; did you mean "maxPods"?`},
		{"spec: {CLASS}", "spec: {instanceStorePolicy: RAID1}", `"RAID1" is not RAID0`},
		{"kind: EC2NodeClass\nmetadata", "kind: EC2NodeClass\nmeta", `unknown key`},
		{"apiVersion: karpenter.sh/v1\n", "apiVersion: karpenter.sh/v1beta1\n",
			`"spec.template.spec.expireAfter": karpenter.sh/v1beta1 has no such field`},
		{"---\napiVersion: apps/v1",
			"---\napiVersion: spotter.dev/v1alpha1\nkind: CapacityPool\nmetadata: {name: own}\nspec: {backend: {karpenter: {nodeClassName: x}}}\n---\napiVersion: apps/v1", `own is also the name of a NodePool, on line 2`},
		{"requests: {cpu: 1}", "requests: {cpu: 1, ephemeral-storage: 1Gi}", ``},
		{"spec: {CLASS}", "spec: {instanceStorePolicy: RAID0}", ``},
	} {
		text := fmt.Sprintf(ownNodePool, "ROOM", "CLASS")
		if !strings.Contains(text, c.old) {
			t.Fatalf("there is no %q", c.old)
		}
		text = strings.Replace(text, c.old, c.fresh, 1)
		text = strings.NewReplacer("[ROOM]", "[]", "{CLASS}", "{}").Replace(text)
		_, err := Parse("s.yaml", []byte(text))
		if got := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v, want %q", c.fresh, err, c.want)
		}
	}
	raid := strings.Replace(fmt.Sprintf(ownNodePool, twoFamilies, "instanceStorePolicy: RAID0"), "requests: {cpu: 1}",
		"requests: {cpu: 1, ephemeral-storage: 1Gi}", 1)
	if _, err := Parse("s.yaml", []byte(raid)); err == nil || !strings.Contains(err.Error(),
		"the sizes of the disks of instances are not known") {
		t.Errorf("RAID0 with pods that ask for disk: %v", err)
	}
	gpus := parseOwn(t, "{key: karpenter.k8s.aws/instance-category, operator: In, values: [trn, g]}", "")
	gpus.pools[0].own.gpuLimited = "amd.com/gpu"
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(gpus, tr, BindOptions{}); err == nil || !strings.Contains(err.Error(), "which has nvidia.com/gpu") {
		t.Errorf("a limit on accelerators of another kind: %v", err)
	}
}

// TestNodePoolWarnings names what changes nothing in a run.
func TestNodePoolWarnings(t *testing.T) {
	text := fmt.Sprintf(ownNodePool, twoFamilies+", {key: karpenter.sh/capacity-type, operator: In, values: [reserved, spot]}",
		"role: r, subnetSelectorTerms: [{id: s}], tags: {a: b}, kubelet: {clusterDNS: [x], evictionSoft: {memory.available: 1Gi}}, instanceStorePolicy: RAID0")
	text = strings.Replace(text, "expireAfter: 48h", "startupTaints: [{key: cni, effect: NoSchedule}]", 1)
	text = strings.Replace(text, `annotations: {`, `annotations: {note: x, `, 1)
	text = strings.Replace(text, `{nodes: "3"}`, `{nodes: "3", reasons: []}`, 1)
	sc, err := Parse("s.yaml", []byte(text+"---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: unused}\n"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(sc.Warnings, "\n")
	for _, want := range []string{
		"NodePool own: startupTaints", "the annotation note", "there is no reserved capacity", "spec.disruption.budgets[0] has no effect",
		"not simulated: kubelet.clusterDNS, kubelet.evictionSoft, role, tags", "status.subnets", "instanceStorePolicy", "EC2NodeClass unused has no effect",
		"EC2NodeClass c: unknown which volumes its images have",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning says %q:\n%s", want, all)
		}
	}
	if len(sc.Warnings) != 9 {
		t.Errorf("%d warnings, want 9:\n%s", len(sc.Warnings), all)
	}
}

// A NodePool whose class is not given has nodes with the provider's defaults.
func TestNodePoolWithoutClass(t *testing.T) {
	with := parseOwn(t, twoFamilies, "amiSelectorTerms: [{alias: al2023@latest}]")
	text := strings.Replace(fmt.Sprintf(ownNodePool, twoFamilies, ""), "kind: EC2NodeClass, name: c}",
		"kind: EC2NodeClass, name: elsewhere}", 1)
	without, err := Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(without.Warnings, "\n"); !strings.Contains(all, "EC2NodeClass elsewhere is not given") {
		t.Errorf("warnings %q", all)
	}
	a, b := boundOwn(t, with), boundOwn(t, without)
	if len(a.Types) != len(b.Types) || a.Types[0].Capacity != b.Types[0].Capacity {
		t.Errorf("nodes without a class have %+v, and with a plain one %+v", b.Types[0].Capacity, a.Types[0].Capacity)
	}
}

// TestNodePoolList reads what kubectl prints of several objects.
func TestNodePoolList(t *testing.T) {
	text := fmt.Sprintf(ownNodePool, twoFamilies, "")
	pool, rest, _ := strings.Cut(text, "---\n")
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(pool), "\n", "\n  ") +
		"\nmetadata: {resourceVersion: \"\"}\n---\n"
	sc, err := Parse("s.yaml", []byte(list+rest))
	if err != nil || len(sc.Pools()) != 1 {
		t.Fatalf("%v", err)
	}
}

// TestNodeOverlay: the overlay of the greatest weight says what Karpenter takes a node to
// cost, of what its requirements match, and the market keeps its price.
func TestNodeOverlay(t *testing.T) {
	overlays := `
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: all}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: team, operator: In, values: [a]}]
  priceAdjustment: -25%
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: large}
spec:
  weight: 10
  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}, {key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ["8"]}]
  price: "0.01"
`
	text := fmt.Sprintf(ownNodePool, twoFamilies, "") + overlays
	sc, err := Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	w := boundOwn(t, sc)
	large, cut, none := 0, 0, 0
	for _, id := range w.Pools[0].Markets {
		m := &w.Markets[id]
		change, changed := w.NodePools[0].Prices[id]
		switch typ := &w.Types[m.Type]; {
		case typ.Family == "m5" && typ.VCPU >= 8:
			if large++; change.Of(m.Price) != 10_000 {
				t.Errorf("%s is taken to cost %v, want $0.01", m.Name, change.Of(m.Price))
			}
		case m.Capacity == policy.OnDemand:
			if cut++; change.Of(m.Price) != m.Price.Times(0.75) {
				t.Errorf("%s at %v is taken to cost %v, want a quarter less", m.Name, m.Price, change.Of(m.Price))
			}
		default:
			if none++; changed {
				t.Errorf("%s is taken to cost %v", m.Name, change.Of(m.Price))
			}
		}
	}
	if large == 0 || cut == 0 || none == 0 {
		t.Errorf("%d, %d and %d markets: the test tests nothing", large, cut, none)
	}
	if got := (PriceChange{Value: -9, More: true}).Of(policy.Dollar); got != 1 {
		t.Errorf("a price below nothing is %v", got)
	}
	for change, want := range map[string]string{
		"-25%|cheap":               `"spec.priceAdjustment": "cheap" is not a price change`,
		`"0.01"|x`:                 `"spec.price": "x" is not a price`,
		"  weight: 10|  weight: 0": `"spec.weight": 0 is not from 1 to 10000`,
		`price: "0.01"|capacity: {example.com/x: 1}`:                  `"spec.capacity": extended resources`,
		`price: "0.01"|price: "0.01"` + "\n  priceAdjustment: \"+1\"": `"spec.price": priceAdjustment is set too`,
	} {
		from, to, _ := strings.Cut(change, "|")
		if _, err := Parse("s.yaml", []byte(strings.Replace(text, from, to, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	sc, err = Parse("s.yaml", []byte(strings.Replace(text, "  weight: 10\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(sc, tr, BindOptions{}); err == nil || !strings.Contains(err.Error(),
		"NodeOverlay large of the same weight changes the price of") {
		t.Errorf("two of one weight: %v", err)
	}
}
