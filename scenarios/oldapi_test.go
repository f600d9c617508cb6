package scenarios

import (
	"reflect"
	"strings"
	"testing"
)

// workloadOfOld is a Deployment and the Scenario of the tests of old versions.
const workloadOfOld = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}, annotations: {DNE: "true"}}
    spec:
      nodeSelector: {POOL: batch}
      containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: old}
spec: {duration: 24h}
`

var (
	workloadOfBeta  = strings.NewReplacer("DNE", "karpenter.sh/do-not-disrupt", "POOL", "karpenter.sh/nodepool").Replace(workloadOfOld)
	workloadOfAlpha = strings.NewReplacer("DNE", "karpenter.sh/do-not-evict", "POOL", "karpenter.sh/provisioner-name").Replace(workloadOfOld)
)

const betaClass = `
---
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: linux}
spec:
  amiFamily: Bottlerocket
  subnetSelectorTerms: [{tags: {team: a}}]
  role: nodes
status: {subnets: [{id: subnet-1, zone: eu-west-1b}]}
`

// TestOldAPIs reads objects of old versions of Karpenter's API as their equals of v1.
func TestOldAPIs(t *testing.T) {
	for name, c := range map[string]struct{ old, today string }{
		"v1beta1": {`
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: batch}
spec:
  weight: 3
  limits: {cpu: 64}
  template:
    metadata: {labels: {tier: b}}
    spec:
      resources: {}
      nodeClassRef: {name: linux}
      kubelet: {maxPods: 33, systemReserved: {cpu: 150m}}
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [r6i, c6i]}]
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 300h, budgets: [{nodes: "2"}]}` + betaClass + workloadOfBeta, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  weight: 3
  limits: {cpu: 64}
  template:
    metadata: {labels: {tier: b}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: linux}
      expireAfter: 300h
      requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [r6i, c6i]}]
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: "2"}]}` +
			strings.NewReplacer("aws/v1beta1", "aws/v1", "role: nodes",
				"role: nodes\n  kubelet: {maxPods: 33, systemReserved: {cpu: 150m}}").Replace(betaClass) + workloadOfBeta},

		"v1beta1 when empty": {`
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: batch}
spec:
  template: {spec: {nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: linux}, requirements: []}}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 90s, expireAfter: Never}` + betaClass + workloadOfBeta, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: linux}, expireAfter: Never, requirements: []}}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 90s}` + strings.ReplaceAll(betaClass, "aws/v1beta1", "aws/v1") + workloadOfBeta},

		"v1alpha5": {`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: batch}
spec:
  labels: {tier: b}
  taints: [{key: only, value: batch, effect: NoSchedule}]
  weight: 9
  limits: {resources: {cpu: "20", memory: 40Gi}}
  requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]
  kubeletConfiguration: {containerRuntime: containerd, podsPerCore: 5}
  ttlSecondsAfterEmpty: 45
  provider: {subnetSelector: {team: a}, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 60Gi}}]}` + workloadOfAlpha, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  template:
    metadata: {labels: {tier: b}}
    spec:
      taints: [{key: only, value: batch, effect: NoSchedule}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: batch}
      expireAfter: Never
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [arm64]}
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 45s}
  limits: {cpu: "20", memory: 40Gi}
  weight: 9
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: batch}
spec:
  amiFamily: AL2
  subnetSelectorTerms: [{tags: {team: a}}]
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 60Gi}}]
  kubelet: {podsPerCore: 5}` + workloadOfBeta},

		"v1alpha5 that consolidates": {`
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: batch}
spec:
  requirements:
    - {key: kubernetes.io/os, operator: In, values: [linux]}
    - {key: beta.kubernetes.io/arch, operator: Exists}
    - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
    - {key: node.kubernetes.io/instance-type, operator: In, values: [c5.2xlarge]}
  consolidation: {enabled: true}
  ttlSecondsUntilExpired: 7200
  providerRef: {name: linux}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: linux}
spec: {amiFamily: Ubuntu, subnetSelector: {a: b}, blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 9Gi}}, {deviceName: /dev/sda1, ebs: {volumeSize: 70Gi}}]}` + workloadOfAlpha, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: linux}
      expireAfter: 2h
      requirements:
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: kubernetes.io/arch, operator: Exists}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: [c5.2xlarge]}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: linux}
spec: {amiFamily: Custom, subnetSelectorTerms: [{tags: {a: b}}], blockDeviceMappings: [{deviceName: /dev/sda1, ebs: {volumeSize: 70Gi}}]}` + workloadOfBeta},
	} {
		t.Run(name, func(t *testing.T) {
			old, err := Parse("s.yaml", []byte(c.old))
			if err != nil {
				t.Fatal(err)
			}
			today, err := Parse("s.yaml", []byte(c.today))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(old.Pools(), today.Pools()) || !reflect.DeepEqual(old.templates, today.templates) {
				t.Errorf("pools\n%+v\nwant\n%+v\ntemplates\n%+v\nwant\n%+v", old.Pools(), today.Pools(), old.templates, today.templates)
			}
			a, b := old.pools[0].own, today.pools[0].own
			a.class.doc, b.class.doc = nil, nil
			if !reflect.DeepEqual(a, b) || old.loads[0].DoNotDisrupt != today.loads[0].DoNotDisrupt {
				t.Errorf("NodePool\n%+v\nclass %+v\nwant\n%+v\nclass %+v", a, a.class, b, b.class)
			}
			if !strings.HasPrefix(old.Warnings[0], "converted to karpenter.sh/v1: ") || strings.HasPrefix(today.Warnings[0], "converted") {
				t.Errorf("warnings %q", old.Warnings)
			}
		})
	}
}

// TestKubeletsOfOneClass copies a class of which NodePools state different settings of the kubelet.
func TestKubeletsOfOneClass(t *testing.T) {
	pool := func(name, kubelet string) string {
		return "\n---\napiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: " + name +
			"}\nspec: {template: {spec: {nodeClassRef: {name: linux}, requirements: []" + kubelet + "}}}"
	}
	for _, c := range []struct {
		a, b   string
		names  []string // of the classes of pools a and b
		podMax []int64
	}{
		{", kubelet: {maxPods: 12}", ", kubelet: {maxPods: 12}", []string{"linux", "linux"}, []int64{12, 12}},
		{", kubelet: {maxPods: 12}", ", kubelet: {maxPods: 13}", []string{"linux-a", "linux-b"}, []int64{12, 13}},
		{"", ", kubelet: {maxPods: 13}", []string{"linux", "linux-b"}, []int64{0, 13}},
		{"", ", kubelet: {}", []string{"linux", "linux"}, []int64{0, 0}},
	} {
		sc, err := Parse("s.yaml", []byte(pool("a", c.a)+pool("b", c.b)+betaClass+strings.ReplaceAll(workloadOfBeta, "batch", "a")))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.names {
			if own := sc.pools[i].own; own.class.name != want || own.class.nodes.PodsMax != c.podMax[i] || !own.class.has("eu-west-1b") {
				t.Errorf("%q and %q: pool %d is of class %s with %d pods, want %s with %d", c.a, c.b, i, own.class.name,
					own.class.nodes.PodsMax, want, c.podMax[i])
			}
		}
	}
}

// TestOldAPIErrors names the field of the old object, and how to obtain v1.
func TestOldAPIErrors(t *testing.T) {
	provisioner := "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: batch}\nspec:\n  provider: {}\n  "
	beta := "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: batch}\nspec:\n  template: {spec: {nodeClassRef: {name: linux}, requirements: []}}\n  "
	for old, want := range map[string]string{
		provisioner +
			"consolidation: {enabled: true}\n  ttlSecondsAfterEmpty: 5": `s.yaml:7: field "spec.ttlSecondsAfterEmpty": must not be set together with consolidation`,
		provisioner +
			"ttlSecondsUntilExpired: soon": `s.yaml:6: field "spec.ttlSecondsUntilExpired": want an integer, got "soon"`,
		provisioner +
			"providerRef: {name: x}": `field "spec.provider": must not be set together with providerRef`,
		provisioner + "colour: red": `s.yaml:6: field "spec.colour": unknown key`,
		strings.ReplaceAll(provisioner, "{}",
			"{launchTemplate: mine}"): `s.yaml:5: field "spec.provider.launchTemplate": "mine": what a launch template states`,
		strings.ReplaceAll(provisioner, "provider: {}", "weight: 3"): `field "spec.providerRef": must be set`,
		strings.ReplaceAll(provisioner, "v1alpha5", "v1alpha4"):      `"Provisioner" is not read here`,
		beta +
			"replicas: 3": `s.yaml:6: field "spec.replicas": karpenter.sh/v1beta1 has no such field`,
		strings.ReplaceAll(beta, "v1beta1",
			"v1alpha9"): `"karpenter.sh/v1alpha9" of a NodePool, want "karpenter.sh/v1"`,
	} {
		_, err := Parse("s.yaml", []byte(old+workloadOfBeta))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nodepools.v1.karpenter.sh") {
			t.Errorf("%s\n%v\nwant %s, and how to obtain v1", old, err, want)
		}
	}
}
