package edit

import (
	"strings"
	"testing"
)

const shop = `
# what is said at the head stays
kind: Scenario
metadata: {name: shop}
spec: {duration: 24h}
---
kind: CapacityPool
metadata:
  name: general
  annotations: {spotter.dev/capacity-types: on-demand, spotter.dev/own-spot-share: "0.4"}
spec:
  disruption: {budget: 10%}
  template: {taints: [{key: a, effect: NoSchedule}, {key: b, effect: NoExecute}]}
---
kind: Deployment
metadata: {name: web, namespace: one}
spec: {replicas: 2}
---
kind: Deployment
metadata: {name: web, namespace: two}
spec: {replicas: 2}
---
kind: Deployment
metadata: {name: web.v2}
spec: {replicas: 2, template: &t {metadata: {labels: {a: b}}}, other: *t}
`

func read(t *testing.T, text string) *File {
	t.Helper()
	f, err := Read("shop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func written(t *testing.T, f *File) string {
	t.Helper()
	b, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSet: a change puts the line there that is wanted, and nothing else but the old one goes.
func TestSet(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{"capacitypool/general.spec.disruption.budget=20%", "disruption: {budget: 20%}"},
		{"CapacityPools/general.spec.disruption.consolidateAfter=5m", "disruption: {budget: 10%, consolidateAfter: 5m}"},
		{"cpool/general.spec.capacity.spotShare.min=0.5", "  capacity:\n    spotShare:\n      min: 0.5"},
		{"capacitypool/general.spec.template.taints[1].effect=NoSchedule", "{key: b, effect: NoSchedule}"},
		{"capacitypool/general.spec.template.taints[key=b].effect=NoSchedule", "{key: b, effect: NoSchedule}"},
		{"capacitypool/general.spec.template.taints[2]={key: c, effect: X}", "{key: b, effect: NoExecute}, {key: c, effect: X}]"},
		{"capacitypool/general.spec.template.taints[0]=null", "taints: [{key: b, effect: NoExecute}]"},
		{"capacitypool/general.spec.disruption.budget=null", "disruption: {}"},
		{"capacitypool/general.metadata.annotations[a.b/c]=5", `a.b/c: "5"`},
		{"deployment/one/web.spec.replicas=4", "namespace: one}\nspec: {replicas: 4}"},
		{"deploy/web.v2.spec.replicas = 4", "replicas: 4, template: &t {metadata"},
		{"deployments.apps/web.v2.spec.other.metadata.labels.a=1",
			`template: &t {metadata: {labels: {a: b}}}, other: {metadata: {labels: {a: "1"}}}`},
		{"scenario/shop.spec.duration=48h", "what is said at the head stays"},
	} {
		f := read(t, shop)
		if err := f.Set(c.change); err != nil {
			t.Errorf("%s: %v", c.change, err)
			continue
		}
		if got := written(t, f); !strings.Contains(got, c.want) {
			t.Errorf("%s: want %q in\n%s", c.change, c.want, got)
		}
	}
}

// TestSetErrors: what is not there is named, with what is.
func TestSetErrors(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{"capacitypool/general.spec", `"capacitypool/general.spec" gives no value`},
		{"general.spec=1", `"general.spec" names no object`},
		{"capacitypol/general.spec.mode=a",
			`there is no kind "capacitypol": there is capacitypool, deployment, scenario; did you mean "capacitypool"?`},
		{"capacitypool/genral.spec.mode=a", `there is no capacitypool "genral": there is general; did you mean "general"?`},
		{"deployment/web.spec.replicas=4", "there is more than one deployment/web: write deployment/NAMESPACE/web"},
		{"capacitypool/general=1", "there is no path behind the name"},
		{"capacitypool/general.=1", "there is no path behind the name"},
		{"capacitypool/general.spec..a=1", "has an empty key"},
		{"capacitypool/general.spec.=1", "ends with a dot"},
		{"capacitypool/general.spec[]=1", "a bracket that is empty or does not end"},
		{"capacitypool/general.spec.disruption.budget.nodes=1", `spec.disruption.budget is "10%": there is no nodes in it`},
		{"capacitypool/general.spec.template.taints.key=1", "spec.template.taints is a list: write [0] to [2], or [key=value], before key"},
		{"capacitypool/general.spec.template.taints[7].key=1", "has 2 elements: [7] is not among them, and [2] appends one"},
		{"capacitypool/general.spec.template.taints[key=c].effect=1", "no element of spec.template.taints has key=c: there is a, b"},
		{"capacitypool/general.spec.disruption.budgt=null",
			`spec.disruption.budgt is not set, so it cannot be removed: there is budget; did you mean "budget"?`},
		{"capacitypool/general.spec.template.taints[2]=null", "does not exist, so it cannot be removed"},
		{"capacitypool/general.spec.mode=", "there is no value"},
		{"capacitypool/general.spec.mode={", "is not YAML"},
	} {
		err := read(t, shop).Set(c.change)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.change, err, c.want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{"a: [": "x.yaml: yaml", "- a": "x.yaml:1: a document is not an object"} {
		if _, err := Read("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

const pools = `
kind: List
items:
  - {kind: NodePool, metadata: {name: a}, spec: old}
  - {kind: NodePool, metadata: {name: b}, spec: old}
  - {kind: EC2NodeClass, metadata: {name: a}, spec: old}
---
kind: Deployment
metadata: {name: a}
spec: old
`

// TestReplacePools: pools of the same name are replaced and new ones added. With prune, the other
// pools of the kinds that are added are removed.
func TestReplacePools(t *testing.T) {
	const news = "{kind: NodePool, metadata: {name: a}, spec: new}\n---\n{kind: CapacityPool, metadata: {name: c}}\n---\n{kind: Deployment, metadata: {name: a}, spec: new}\n"
	for prune, want := range map[bool]string{
		false: "{kind: NodePool, metadata: {name: a}, spec: new}|{kind: NodePool, metadata: {name: b}, spec: old}|{kind: EC2NodeClass, metadata: {name: a}, spec: old}|kind: Deployment\nmetadata: {name: a}\nspec: old|{kind: CapacityPool, metadata: {name: c}}",
		true:  "{kind: NodePool, metadata: {name: a}, spec: new}|{kind: EC2NodeClass, metadata: {name: a}, spec: old}|kind: Deployment\nmetadata: {name: a}\nspec: old|{kind: CapacityPool, metadata: {name: c}}",
	} {
		f := read(t, pools)
		if err := f.ReplacePools(read(t, news), prune); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.TrimSpace(written(t, f)), "\n---\n", "|"); got != want {
			t.Errorf("prune %v:\n%s\nwant\n%s", prune, got, want)
		}
	}
	if err := read(t, pools).ReplacePools(read(t, "kind: Deployment"), false); err == nil || !strings.Contains(err.Error(), "no NodePool") {
		t.Errorf("a folder without pools: %v", err)
	}
	twice := read(t, news)
	twice.Add(read(t, news))
	if err := read(t, pools).ReplacePools(twice, false); err == nil || !strings.Contains(err.Error(), "NodePool a is listed twice") {
		t.Errorf("a pool that stands twice: %v", err)
	}
}

// TestRemovePools: what was deleted goes, and what was never there stays.
func TestRemovePools(t *testing.T) {
	f := read(t, pools)
	f.RemovePools(read(t,
		"{kind: NodePool, metadata: {name: b}}\n---\n{kind: EC2NodeClass, metadata: {name: a}}\n---\n{kind: Deployment, metadata: {name: a}}"), read(t, "{kind: EC2NodeClass, metadata: {name: a}}"))
	const want = "{kind: NodePool, metadata: {name: a}, spec: old}|{kind: EC2NodeClass, metadata: {name: a}, spec: old}|kind: Deployment\nmetadata: {name: a}\nspec: old"
	if got := strings.ReplaceAll(strings.TrimSpace(written(t, f)), "\n---\n", "|"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestAllowSpot: what may buy on demand only buys Spot too, and what may already stays.
func TestAllowSpot(t *testing.T) {
	const types = "spotter.dev/capacity-types: "
	for _, c := range []struct {
		name, doc, want string
		changed         int
	}{
		{"on demand by its annotation", "{kind: CapacityPool, metadata: {name: a, annotations: {" + types + "on-demand}}}",
			types + `"spot,on-demand"`, 1},
		{"a share that is kept", "{kind: CapacityPool, metadata: {name: a, annotations: {" + types +
			"'on-demand,spot', spotter.dev/own-spot-share: '0.3'}}}", types + `"spot,on-demand"}`, 1},
		{"on demand by its share", "{kind: CapacityPool, metadata: {name: a}, spec: {capacity: {spotShare: {max: 0}}}}",
			"spotShare: {max: 1}", 1},
		{"spot already", "{kind: CapacityPool, metadata: {name: a, annotations: {" + types + "spot}}}", types + "spot}", 0},
		{"both already", "{kind: CapacityPool, metadata: {name: a}, spec: {}}", "spec: {}", 0},
		{"a NodePool on demand",
			"{kind: NodePool, spec: {template: {spec: {requirements: [{key: x}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}}", "values: [on-demand, spot]", 1},
		{"a NodePool not on spot",
			"{kind: NodePool, spec: {template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}, {key: x}]}}}}", "requirements: [{key: x}]", 1},
		{"neither spot nor reserved",
			"{kind: NodePool, spec: {template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [spot, reserved]}]}}}}", "values: [reserved]", 1},
		{"by a label",
			"{kind: NodePool, spec: {template: {metadata: {labels: {karpenter.sh/capacity-type: on-demand, a: b}}}}}", "labels: {a: b}", 1},
		{"a NodePool that may already",
			"{kind: NodePool, spec: {template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]}}}}", "values: [spot]", 0},
		{"no pool", "{kind: Deployment}", "Deployment", 0},
	} {
		f := read(t, c.doc)
		n, err := f.AllowSpot()
		if got := written(t, f); err != nil || n != c.changed || !strings.Contains(got, c.want) || strings.Contains(got, "own-spot-share") {
			t.Errorf("%s: %d, %v, %s", c.name, n, err, got)
		}
	}
}

// TestCommit: a plan becomes the first or one more.
func TestCommit(t *testing.T) {
	f := read(t, shop)
	for range 2 {
		if err := f.Commit("plan", 1.5, 0.29); err != nil {
			t.Fatal(err)
		}
	}
	const want = "commitments: [{name: plan, spend: 1.5, discount: 0.29}, {name: plan, spend: 1.5, discount: 0.29}]"
	if got := written(t, f); !strings.Contains(got, want) {
		t.Error(got)
	}
	if err := read(t, "kind: Pod").Commit("plan", 1, 0.5); err == nil {
		t.Error("a plan without a scenario")
	}
}

// TestShort: of a path the object and its end are left.
func TestShort(t *testing.T) {
	for text, want := range map[string]string{
		"nodepool/default.spec.disruption.consolidateAfter=5m":                                     "nodepool/default consolidateAfter=5m",
		"deployment/one/web.spec.replicas=4":                                                       "deployment/one/web replicas=4",
		"capacitypool/a.metadata.annotations[spotter.dev/capacity-types]=spot":                     "capacitypool/a spotter.dev/capacity-types=spot",
		"nodepool/a.spec.template.spec.requirements[key=karpenter.sh/capacity-type].values=[spot]": "nodepool/a capacity-type values=[spot]",
		"nodepool/a.spec.disruption.budgets[0].nodes=1":                                            "nodepool/a 0 nodes=1",
		"nodepool/a.spec.weight":                                                                   "nodepool/a weight",
		"nodepool/a":                                                                               "nodepool/a",
	} {
		if got := Short(text); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}
