package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// autoPool is a NodePool of EKS Auto Mode and one of Karpenter, with placeholders for requirements,
// for the template's spec, for the NodeClass, and for the node selection of a pod.
const autoPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: auto}
spec:
  template:
    spec:
      nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: CLASS}
      requirements: [REQUIREMENTS]
      MORE
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: own}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: c}, requirements: []}}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: c}
---
apiVersion: eks.amazonaws.com/v1
kind: NodeClass
metadata: {name: c}
spec: {role: r, subnetSelectorTerms: [{id: s}], networkPolicy: DefaultAllow, ephemeralStorage: {size: 120Gi, iops: 3000}}
status: {subnets: [{id: s, zone: us-east-1c, zoneID: use1-az3}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: p}
spec:
  replicas: 1
  selector: {matchLabels: {app: p}}
  template:
    metadata: {labels: {app: p}}
    spec:
      SELECT
      containers: [{name: main, image: x, resources: {requests: {cpu: 1}}}]
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {duration: 24h}
`

func autoText(class, requirements, more, selected string) string {
	return strings.NewReplacer("CLASS", class, "REQUIREMENTS", requirements, "MORE", more, "SELECT", selected).Replace(autoPool)
}

// TestAutoMode reads NodePools of EKS Auto Mode: labels, classes and lifetimes.
func TestAutoMode(t *testing.T) {
	const zone = "{key: topology.k8s.aws/zone-id, operator: In, values: [use1-az3]}, "
	for _, c := range []struct {
		class, requirements, more string
		types                     string // of m5 and c6g that the pool may buy
		expire                    time.Duration
		disk                      int64
	}{
		{"c", zone +
			"{key: eks.amazonaws.com/instance-family, operator: In, values: [m5]}, {key: eks.amazonaws.com/instance-cpu, operator: Lt, values: ['9']}", "",
			"m5.2xlarge m5.large m5.xlarge", 336 * time.Hour, 120},
		{"default",
			"{key: eks.amazonaws.com/instance-category, operator: NotIn, values: [c, r]}, {key: eks.amazonaws.com/instance-size, operator: NotIn, values: [2xlarge]}", "expireAfter: 9h",
			"m5.4xlarge m5.large m5.xlarge", 9 * time.Hour, 80},
		{"else",
			"{key: eks.amazonaws.com/instance-generation, operator: Gt, values: ['5']}, {key: eks.amazonaws.com/instance-memory, operator: In, values: ['16384']}, {key: eks.amazonaws.com/compute-type, operator: In, values: [auto]}", "expireAfter: Never",
			"c6g.2xlarge", 504 * time.Hour, 80},
	} {
		sc, err := Parse("s.yaml", []byte(autoText(c.class, c.requirements, c.more, "")))
		if err != nil {
			t.Fatal(err)
		}
		own := sc.pools[0].own
		if e := sc.pools[0].base.ExpireAfter; e != c.expire || own.TerminationGrace != 24*time.Hour ||
			own.class.nodes.RootVolume != c.disk<<30 || !own.class.nodes.Bottlerocket {
			t.Errorf("%s: nodes end after %v and %v, want %v; class %+v", c.requirements, e, own.TerminationGrace, c.expire, own.class.nodes)
		}
		var types []string
		w := boundOwn(t, sc)
		for _, m := range w.Pools[0].Markets {
			if name := w.Types[w.Markets[m].Type].Name; !slices.Contains(types, name) &&
				(strings.HasPrefix(name, "m5.") || strings.HasPrefix(name, "c6g.")) {
				types = append(types, name)
			}
			if zone := w.Zones[w.Markets[m].Zone]; c.class == "c" && zone != "us-east-1c" {
				t.Errorf("%s buys in %s", c.requirements, zone)
			}
		}
		slices.Sort(types)
		if got := strings.Join(types, " "); got != c.types {
			t.Errorf("%s: buys %s, want %s", c.requirements, got, c.types)
		}
		if v, _ := policy.FindLabel(sc.pools[0].base.Labels, "eks.amazonaws.com/nodeclass"); v != c.class {
			t.Errorf("labels %v", sc.pools[0].base.Labels)
		}
		if got, want := w.Pools[0].Fees.Volumes, policy.Dollars(float64(c.disk)*0.08/730); got != want {
			t.Errorf("%s: the volume of a node costs %v, want %v", c.class, got, want)
		}
		fee := slices.ContainsFunc(sc.Warnings, func(x string) bool { return strings.Contains(x, "the bill is without its fee") })
		lacks := slices.ContainsFunc(sc.Warnings, func(x string) bool { return strings.Contains(x, "NodeClass else is not in the file") })
		if !fee || lacks != (c.class == "else") {
			t.Errorf("%s: warnings %q", c.class, sc.Warnings)
		}
	}
}

// TestAutoModePods runs pods that select labels of EKS Auto Mode on its nodes alone, and pods
// that select labels of Karpenter on the others.
func TestAutoModePods(t *testing.T) {
	const affinity = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [%s]}]}}}"
	for selected, want := range map[string]string{
		"nodeSelector: {eks.amazonaws.com/instance-family: m5}":                                         "auto",
		"nodeSelector: {karpenter.k8s.aws/instance-family: m5}":                                         "own",
		"nodeSelector: {eks.amazonaws.com/compute-type: auto}":                                          "auto",
		"nodeSelector: {eks.amazonaws.com/instance-family: m5, karpenter.k8s.aws/instance-size: large}": "",
		"nodeSelector: {eks.amazonaws.com/instance-family: none}":                                       "",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/instance-cpu, operator: Gt, values: ['3']}"): "auto",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/instance-category, operator: NotIn, values: [c]}"): "auto own",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/compute-type, operator: NotIn, values: [auto]}"): "own",
		fmt.Sprintf(affinity,
			"{key: karpenter.k8s.aws/instance-generation, operator: In, values: ['5']}"): "own",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/instance-gpu-count, operator: DoesNotExist}, {key: a, operator: DoesNotExist}"): "auto own",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/instance-hypervisor, operator: DoesNotExist}"): "own",
		fmt.Sprintf(affinity,
			"{key: karpenter.k8s.aws/instance-hypervisor, operator: DoesNotExist}"): "auto",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/instance-cpu-manufacturer, operator: NotIn, values: [aws, amd, intel]}"): "own",
		fmt.Sprintf(affinity,
			"{key: eks.amazonaws.com/instance-cpu, operator: Exists}, {key: karpenter.k8s.aws/instance-cpu, operator: Exists}"): "",
		"nodeSelector: {karpenter.k8s.aws/instance-family: m5}\n      " +
			fmt.Sprintf(affinity, "{key: eks.amazonaws.com/instance-family, operator: NotIn, values: [m5]}"): "own",
	} {
		sc, err := Parse("s.yaml", []byte(autoText("default", "", "", selected)))
		if err != nil {
			t.Fatal(err)
		}
		w := boundOwn(t, sc)
		var got []string
		for i := range w.Pools {
			if slices.ContainsFunc(w.Pools[i].Markets, func(m policy.MarketID) bool { return admits(w, i, m) }) {
				got = append(got, w.Pools[i].Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: runs in pools %q, want %q", selected, got, want)
		}
	}
}

// admits reports whether the labels of a node of market m of pool i are those that the one
// template requires.
func admits(w *BoundScenario, i int, m policy.MarketID) bool {
	tmpl := &w.Templates[0]
	label := func(key string) (string, bool) {
		if v, has := policy.FindLabel(w.Pools[i].Labels, key); has {
			return v, true
		}
		return policy.FindLabel(w.Types[w.Markets[m].Type].Labels, key)
	}
	for _, l := range tmpl.NodeSelector {
		if v, _ := label(l.Key); v != l.Value {
			return false
		}
	}
	return len(tmpl.Affinity) == 0 || slices.ContainsFunc(tmpl.Affinity, func(term policy.NodeTerm) bool {
		return !slices.ContainsFunc(term.Labels, func(r policy.Requirement) bool {
			v, has := label(r.Key)
			return !r.MetBy(v, has)
		})
	})
}

// TestAutoModeErrors refuses what EKS Auto Mode does not take, by its field.
func TestAutoModeErrors(t *testing.T) {
	for text, want := range map[string]string{
		autoText("c", "{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}", "",
			""): `"karpenter.k8s.aws/instance-family": nodes of EKS Auto Mode have eks.amazonaws.com/instance-family`,
		autoText("c", "{key: eks.amazonaws.com/instance-colour, operator: In, values: [red]}", "",
			""): `"eks.amazonaws.com/instance-colour": the catalog does not know this`,
		strings.ReplaceAll(autoText("c", "", "", ""), "size: 120Gi",
			"size: 0Gi"): `"spec.ephemeralStorage.size": 0 is not above 0`,
		strings.ReplaceAll(autoText("c", "", "", ""), "iops: 3000",
			"iops: -1"): `"spec.ephemeralStorage.iops": -1 is not from 1 to 1000000`,
		strings.ReplaceAll(autoText("c", "", "", ""), "networkPolicy:",
			"networkPolice:"): `"spec.networkPolice": unknown key; did you mean "networkPolicy"?`,
		strings.ReplaceAll(autoText("c", "", "", ""), "group: eks.amazonaws.com",
			"group: karpenter.k8s.aws"): `"karpenter.k8s.aws" of kind NodeClass, want "eks.amazonaws.com"`,
		strings.ReplaceAll(autoText("c", "", "", ""), "spec: {role: r",
			"spec: {placementGroupSelector: {name: x}, role: r"): `placement groups are not simulated`,
	} {
		if _, err := Parse("s.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
