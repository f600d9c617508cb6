package crd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// The least of each kind.
const (
	pool   = `{"apiVersion":"spotter.dev/v1alpha1","kind":"CapacityPool","metadata":{"name":"p"},"spec":{"backend":{"karpenter":{"nodeClassName":"default"}}}}`
	budget = `{"apiVersion":"spotter.dev/v1alpha1","kind":"GPUBudget","metadata":{"name":"b","namespace":"default"},"spec":{"selector":{},"quota":{"gpuHours":10,"windowHours":24}}}`
	plan   = `{"apiVersion":"spotter.dev/v1alpha1","kind":"SpotPlan","metadata":{"name":"p"}}`
	node   = `{"apiVersion":"spotter.dev/v1alpha1","kind":"SpotNode","metadata":{"name":"n"},"spec":{"pool":"p","market":"m","token":"t"}}`
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// with sets the field at a path, whose parts a slash divides, to a value in JSON. An empty value
// removes the field.
func with(t testing.TB, o *unstructured.Unstructured, path, value string) {
	t.Helper()
	at := strings.Split(path, "/")
	if value == "" {
		unstructured.RemoveNestedField(o.Object, at...)
		return
	}
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	for k := 1; k < len(at); k++ { // parents
		if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, at[:k]...); !found {
			if err := unstructured.SetNestedField(o.Object, map[string]any{}, at[:k]...); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, _, err := unstructured.NestedFieldNoCopy(o.Object, at[:len(at)-1]...)
	if err != nil {
		t.Fatal(err)
	}
	m.(map[string]any)[at[len(at)-1]] = v
}

// ours is what our own validation says of an object.
func ours(o *unstructured.Unstructured) error {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	var errs field.ErrorList
	switch o.GetKind() {
	case "CapacityPool":
		x := &v1alpha1.CapacityPool{}
		if err := json.Unmarshal(data, x); err != nil {
			return err
		}
		x.Default()
		errs = x.Validate()
	case "GPUBudget":
		x := &v1alpha1.GPUBudget{}
		if err := json.Unmarshal(data, x); err != nil {
			return err
		}
		x.Default()
		errs = x.Validate()
	}
	return errs.ToAggregate()
}

func quoted(n int) string { return `"` + strings.Repeat("a", n) + `"` }

func listOf(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func taints(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"key":"k%d","effect":"NoSchedule"}`, i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func mapOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":"v"`, i)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// A rule has, at one place of an object, what is taken and what is not.
type rule struct {
	kind, path   string
	good, refuse []string
}

var durations = []string{`"-1s"`, `"5"`, `"5 m"`, `"99999999999h"`, `5`}

const (
	window = `{"schedule":"0 2 * * *","duration":"4h"}`
	freeze = `{"from":"2026-12-20T00:00:00Z","to":"2026-12-21T00:00:00Z"}`
)

var rules = []rule{
	{pool, "metadata/name", []string{quoted(58)}, []string{quoted(59)}},
	{pool, "spec/backend", []string{`{"rackspace":{"cloudspace":"c","org":"o","credentialsSecretRef":{"name":"s"}}}`,
		`{"autoScalingGroups":{"discoveryTags":{"a":""},"allowGroupReplacement":true}}`},
		[]string{"", `{}`, `{"karpenter":{"nodeClassName":"a"},"autoScalingGroups":{"discoveryTags":{"a":"b"}}}`}},
	{pool, "spec/backend/karpenter", []string{`{"nodeClassSelector":{"matchLabels":{"a":"b"}}}`,
		`{"nodeClassSelector":{}}`}, []string{`{}`, `{"nodeClassName":"a","nodeClassSelector":{}}`, `{"nodeClassName":` + quoted(254) + `}`}},
	{pool, "spec/backend", nil, []string{`{"autoScalingGroups":{"discoveryTags":{}}}`,
		`{"autoScalingGroups":{"discoveryTags":` + mapOf(17) +
			`}}`, `{"autoScalingGroups":{"discoveryTags":{"":"b"}}}`, `{"autoScalingGroups":{"discoveryTags":{"a":` +
			quoted(257) + `}}}`, `{"autoScalingGroups":{"discoveryTags":{` + quoted(129) + `:"b"}}}`}},
	{pool, "spec/backend", nil, []string{`{"rackspace":{"cloudspace":"","org":"o","credentialsSecretRef":{"name":"s"}}}`,
		`{"rackspace":{"cloudspace":"c","org":"o","credentialsSecretRef":{}}}`, `{"rackspace":{"cloudspace":"c","org":"o","credentialsSecretRef":{"name":""}}}`, `{"rackspace":{"cloudspace":"c","org":` + quoted(254) + `,"credentialsSecretRef":{"name":"s"}}}`}},
	{pool, "spec/markets/regions", []string{`[]`, listOf(64, `"a"`)}, []string{listOf(65, `"a"`), `[""]`, `[` + quoted(64) + `]`}},
	{pool, "spec/markets/zones", []string{listOf(64, `"a"`)}, []string{listOf(65, `"a"`)}},
	{pool, "spec/markets/families", []string{listOf(256, `"a"`)}, []string{listOf(257, `"a"`)}},
	{pool, "spec/markets/categories", []string{listOf(64, `"gp"`)}, []string{listOf(65, `"gp"`)}},
	{pool, "spec/markets/instanceTypes", []string{listOf(1024, `"a"`)}, []string{listOf(1025, `"a"`)}},
	{pool, "spec/markets/architectures", []string{`["arm64","amd64"]`, `[]`}, []string{`["riscv"]`, `["amd64","amd64","amd64"]`}},
	{pool, "spec/markets", []string{`{"minVCPU":2,"maxVCPU":2}`}, []string{`{"minVCPU":3,"maxVCPU":2}`, `{"minVCPU":0}`,
		`{"maxVCPU":0}`, `{"minGPUs":-1}`, `{"maxZones":0}`, `{"maxInstanceTypes":0}`, `{"minVCPU":3000000000}`, `{"maxVCPU":100001}`, `{"minGPUs":1001}`, `{"maxZones":65}`, `{"maxInstanceTypes":1025}`}},
	{pool, "spec/markets/minMemory", []string{`"4Gi"`, `0`, `17179869184`}, []string{`"-1"`, `-1`, `"4 GB"`, `"x"`}},
	{pool, "spec/markets/maxPrice", []string{`0.01`, `3`}, []string{`0`, `-1`, `"1"`}},
	{pool, "spec/markets/minPlacementScore", []string{`0`, `10`}, []string{`-1`, `11`}},
	{pool, "spec/capacity", []string{`{"exactRatio":0.5}`, `{"spotShare":{"min":0.1,"max":0.9,"target":0.5}}`},
		[]string{`{"exactRatio":1.1}`, `{"exactRatio":0.5,"spotShare":{"min":0.1}}`}},
	{pool, "spec/capacity/spotShare", []string{`{"min":0.5,"max":0.5,"target":0.5}`, `{}`, `{"target":1}`},
		[]string{`{"min":0.6,"max":0.5}`, `{"max":0.4,"target":0.5}`, `{"min":0.6,"target":0.5}`, `{"min":-0.1}`, `{"target":2}`}},
	{pool, "spec/capacity/limits", []string{`{"cpu":"100","memory":"1Ti","gpu":8}`, `{"cpu":"0.5"}`},
		[]string{`{"cpu":"-1"}`, `{"gpu":-1}`, `{"memory":"lots"}`}},
	{pool, "spec/template/labels", []string{`{"team.example.com/x":"a","b":""}`, mapOf(64)},
		[]string{mapOf(65), `{"":"a"}`, `{` + quoted(318) + `:"a"}`, `{"a":` + quoted(64) + `}`}},
	{pool, "spec/template/taints",
		[]string{`[{"key":"a","effect":"NoSchedule"},{"key":"x.io/b","value":"c","effect":"NoExecute"},{"key":"d","effect":"PreferNoSchedule"}]`, taints(32), `[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]`},
		[]string{taints(33), `[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"b","effect":"NoSchedule"}]`,
			`[{"key":"a","effect":"Never"}]`, `[{"key":"","effect":"NoSchedule"}]`, `[{"key":"a","value":` + quoted(64) +
				`,"effect":"NoSchedule"}]`}},
	{pool, "spec/policy", []string{`{"name":"static","parameters":{"share":"0.5"}}`, `{"name":"a","parameters":` +
		mapOf(24) + `}`}, []string{`{}`, `{"name":""}`, `{"name":` + quoted(64) + `}`, `{"name":"a","parameters":` + mapOf(25) + `}`}},
	{pool, "spec/policy", nil, []string{`{"name":"a","parameters":{"":"1"}}`, `{"name":"a","parameters":{"k:":"1"}}`,
		`{"name":"a","parameters":{"k,":"1"}}`, `{"name":"a","parameters":{"k=":"1"}}`, `{"name":"a","parameters":{"k":"1:2"}}`, `{"name":"a","parameters":{"k":"1,2"}}`, `{"name":"a","parameters":{"k":` + quoted(257) + `}}`}},
	{pool, "spec/policy", []string{`{"name":"a","parameters":{"bundle":"a-1.b_c"}}`,
		`{"name":"a","parameters":{"runtime":"runtime.json"}}`, `{"name":"a","parameters":{"other":"/x"}}`},
		[]string{`{"name":"a","parameters":{"runtime":"/proc/self/environ"}}`,
			`{"name":"a","parameters":{"bundle":"../a"}}`, `{"name":"a","parameters":{"bundle":".."}}`, `{"name":"a","parameters":{"bundle":"a/b"}}`, `{"name":"a","parameters":{"bundle":""}}`, `{"name":"a","parameters":{"bundle":` + quoted(64) + `}}`}},
	{pool, "spec/template/labels", []string{`{"karpenter.sh/capacity-type":"spot"}`, `{"kubernetes.io/os":"linux"}`},
		[]string{`{"karpenter.sh/nodepool":"general"}`, `{"kubernetes.io/hostname":"a"}`, `{"karpenter.sh/x":"a"}`, `{"a.karpenter.sh/x":"a"}`}},
	{pool, "spec",
		[]string{`{"backend":{"autoScalingGroups":{"discoveryTags":{"a":"b"}}},"template":{"labels":{"kubernetes.io/hostname":"a"}}}`}, []string{`{"backend":{"karpenter":{"nodeClassName":"a"}},"template":{"labels":{"kubernetes.io/hostname":"a"}}}`}},
	{pool, "spec/disruption/budget", []string{`0`, `5`, `"0%"`, `"10%"`, `"100%"`},
		[]string{`-1`, `"101%"`, `"10"`, `"-5%"`, `"+5%"`, `"x%"`, `"%"`, `3000000000`, `"00000000100%"`}},
	{pool, "spec/disruption", []string{`{"schedule":"0 2 * * *","duration":"4h"}`,
		`{"schedule":"*/5 9-17 1,15 * MON-FRI","duration":"4h"}`, `{"schedule":"@daily","duration":"4h"}`}, []string{`{"schedule":"at night","duration":"4h"}`, `{"schedule":"@every 1h","duration":"4h"}`, `{"schedule":"TZ=CET 0 2 * * *","duration":"4h"}`, `{"schedule":"0 2 * * *"}`, `{"duration":"4h"}`, `{"schedule":` + quoted(129) + `,"duration":"4h"}`}},
	{pool, "spec/disruption/windows",
		[]string{`[]`, `[{"schedule":"0 2 * * 6,0","duration":"4h"},{"schedule":"@weekly","duration":"30m"}]`, listOf(16, window)},
		[]string{listOf(17, window), `[{"schedule":"0 2 * * *"}]`, `[{"duration":"4h"}]`,
			`[{"schedule":"","duration":"4h"}]`, `[{"schedule":"at night","duration":"4h"}]`,
			`[{"schedule":"TZ=CET 0 2 * * *","duration":"4h"}]`, `[{"schedule":"0 2 * * *","duration":"0s"}]`, `[{"schedule":"0 2 * * *","duration":"-1h"}]`, `[{"schedule":"0 2 * * *","duration":"4"}]`}},
	{pool, "spec/disruption/freezes",
		[]string{`[]`,
			`[{"from":"2026-12-20T00:00:00Z","to":"2027-01-04T08:00:00+01:00","reason":"the shop's busiest weeks"}]`, listOf(32, freeze)},
		[]string{listOf(33, freeze), `[{"from":"2026-12-20T00:00:00Z"}]`, `[{"to":"2026-12-20T00:00:00Z"}]`,
			`[{"from":"2026-12-20T00:00:00Z","to":"2026-12-20T00:00:00Z"}]`,
			`[{"from":"2026-12-21T00:00:00Z","to":"2026-12-20T00:00:00Z"}]`, `[{"from":"tomorrow","to":"2026-12-20T00:00:00Z"}]`,
			`[{"from":"2026-12-20T00:00:00Z","to":"2026-12-21T00:00:00Z","reason":"a\u001b[2Kb"}]`, `[{"from":"2026-12-20T00:00:00Z","to":"2026-12-21T00:00:00Z","reason":` + quoted(129) + `}]`}},
	{pool, "spec/disruption/consolidateAfter", []string{`"0s"`, `"0"`, `"1h30m"`, `"1.5h"`, `".5s"`}, durations},
	{pool, "spec/disruption/expireAfter", []string{`"0s"`}, durations},
	{pool, "spec/disruption/cooldown", []string{`"10m"`}, durations},
	{pool, "spec/disruption/savingsThreshold", []string{`0`, `1`}, []string{`-0.1`, `1.1`}},
	{pool, "spec/disruption/consolidationPolicy", []string{`"Never"`, `"WhenEmpty"`}, []string{`"Rarely"`}},
	{pool, "spec/mode", []string{`"active"`, `"off"`}, []string{`"on"`}},
	{budget, "metadata/name", []string{quoted(63)}, []string{quoted(64)}},
	{budget, "spec/selector",
		[]string{`{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["b"]},{"key":"c","operator":"NotIn","values":["d"]},{"key":"e","operator":"Exists"},{"key":"f","operator":"DoesNotExist"}]}`, `{"matchLabels":` + mapOf(32) + `}`},
		[]string{`{"matchLabels":` + mapOf(33) + `}`, `{"matchExpressions":` +
			listOf(33, `{"key":"a","operator":"Exists"}`) +
			`}`, `{"matchExpressions":[{"key":"a","operator":"Near"}]}`, `{"matchExpressions":[{"key":"a","operator":"In"}]}`, `{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}`, `{"matchExpressions":[{"key":"a","operator":"In","values":` + listOf(65, `"b"`) + `}]}`}},
	{budget, "spec/selector", []string{`{"matchLabels":{"team.example.com/A_b.c":"","x":` + quoted(63) + `}}`,
		`{"matchExpressions":[{"key":"example.com/x","operator":"NotIn","values":["","a_B-c.d"]}]}`},
		[]string{`{"matchLabels":{"team ":"ml"}}`, `{"matchLabels":{"":"ml"}}`, `{"matchLabels":{"/team":"ml"}}`,
			`{"matchLabels":{"A.com/team":"ml"}}`, `{"matchLabels":{"a..b/team":"ml"}}`, `{"matchLabels":{"a/b/c":"ml"}}`, `{"matchLabels":{` + quoted(64) + `:"ml"}}`,
			`{"matchLabels":{"team":"m l"}}`, `{"matchLabels":{"team":"-ml"}}`, `{"matchLabels":{"team":` + quoted(64) + `}}`,
			`{"matchExpressions":[{"key":"te am","operator":"Exists"}]}`, `{"matchExpressions":[{"key":"","operator":"Exists"}]}`, `{"matchExpressions":[{"key":"team","operator":"In","values":["m\\nl"]}]}`, `{"matchExpressions":[{"key":"team","operator":"in","values":["ml"]}]}`}},
	{budget, "spec/resourceName", []string{`"cpu"`, `"amd.com/gpu"`}, []string{`"memory"`, `"pods"`, `"ephemeral-storage"`, quoted(318)}},
	{budget, "spec/quota", []string{`{"dollars":5,"windowHours":1}`, `{"gpuHours":0,"windowHours":8784}`},
		[]string{`{"windowHours":24}`, `{"gpuHours":-1,"windowHours":24}`, `{"gpuHours":1,"windowHours":0}`,
			`{"gpuHours":1,"windowHours":8785}`, `{"dollars":1e13,"windowHours":24}`}},
	{budget, "spec/enforcement/action", []string{`"Evict"`, `"Pause"`}, []string{`"Kill"`}},
	{budget, "spec/enforcement/overQuotaDelay", []string{`"10m"`}, durations},
	{budget, "spec/enforcement/podGracePeriod", []string{`"0s"`}, durations},
	{budget, "spec/accounting", []string{`"LiveObjects"`}, []string{`"Guesses"`}},
}

// TestRules shows each rule what it takes and what it refuses, at the real API
// server, and finds that our own validation says the same. No rule is left that
// refused nothing.
func TestRules(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	var said strings.Builder
	try := func(base, path, value string, want bool) {
		o := object(t, base)
		with(t, o, path, value)
		err := env.Client.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
		if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			t.Fatalf("%s = %.80s: %v", path, value, err)
		}
		if (err == nil) != want {
			t.Errorf("%s = %.80s at the API server: %v", path, value, err)
		}
		if mine := ours(o); (mine == nil) != want {
			t.Errorf("%s = %.80s with us: %v", path, value, mine)
		}
		if err != nil {
			said.WriteString(err.Error())
		}
	}
	for _, r := range rules {
		for _, v := range r.good {
			try(r.kind, r.path, v, true)
		}
		for _, v := range r.refuse {
			try(r.kind, r.path, v, false)
		}
	}
	said.WriteString(changes(t, env))
	said.WriteString(approvals(t, env))
	for _, d := range crd.Objects() {
		for _, message := range messages(t, d) {
			if !strings.Contains(said.String(), message) {
				t.Errorf("%s: nothing was refused as %q", d.Name, message)
			}
		}
	}
}

// changes changes what cannot be changed of a SpotNode, and what can.
func changes(t *testing.T, env *testenv.Env) string {
	o := object(t, node)
	if err := env.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	with(t, o, "spec/bidPerHour", `"0.015"`)
	if err := env.Client.Update(t.Context(), o); err != nil {
		t.Errorf("a bid cannot be changed: %v", err)
	}
	with(t, o, "spec/bidPerHour", `"a lot"`)
	if err := env.Client.Update(t.Context(), o.DeepCopy()); !apierrors.IsInvalid(err) {
		t.Errorf("a bid of words: %v", err)
	}
	with(t, o, "spec/bidPerHour", `"1"`)
	with(t, o, "spec/token", `"another"`)
	err := env.Client.Update(t.Context(), o)
	if !apierrors.IsInvalid(err) {
		t.Errorf("the token can be changed: %v", err)
		return ""
	}
	return err.Error()
}

// approvals approves plans with and without their digest.
func approvals(t *testing.T, env *testenv.Env) string {
	try := func(spec string) error {
		o := object(t, plan)
		with(t, o, "spec", spec)
		return env.Client.Create(t.Context(), o, client.DryRunAll)
	}
	for _, spec := range []string{"", `{}`, `{"approved":false}`, `{"approved":true,"digest":"0a1b"}`, `{"digest":""}`} {
		if err := try(spec); err != nil {
			t.Errorf("SpotPlan with spec %s: %v", spec, err)
		}
	}
	said := ""
	for _, spec := range []string{`{"approved":true}`, `{"approved":true,"digest":""}`, `{"digest":"$(reboot)"}`,
		`{"digest":` + quoted(65) + `}`, `{"approved":"yes","digest":"0a"}`} {
		err := try(spec)
		if !apierrors.IsInvalid(err) {
			t.Errorf("SpotPlan with spec %s: %v", spec, err)
			continue
		}
		said += err.Error()
	}
	return said
}

// messages returns those of all rules of a definition.
func messages(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	var walk func(p *apiextensionsv1.JSONSchemaProps)
	walk = func(p *apiextensionsv1.JSONSchemaProps) {
		for _, v := range p.XValidations {
			all = append(all, v.Message)
		}
		for name := range p.Properties {
			x := p.Properties[name]
			walk(&x)
		}
		if p.Items != nil && p.Items.Schema != nil {
			walk(p.Items.Schema)
		}
	}
	walk(d.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if len(all) == 0 {
		t.Errorf("%s has no rules", d.Name)
	}
	return all
}

// TestAgree draws objects with several faults or none and finds that the API
// server takes what our own validation takes. Two things only ours refuses, since
// the rules of an API server have no room for them: labels and taints that are not
// of the form of such, and selectors whose keys or values are not.
func TestAgree(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	seen := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		base := rapid.SampledFrom([]string{pool, budget}).Draw(rt, "base")
		o := object(t, base)
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			r := rapid.SampledFrom(rules).Draw(rt, "rule")
			if r.kind != base {
				continue
			}
			values := r.good
			if len(values) == 0 || rapid.IntRange(0, 3).Draw(rt, "bad") == 0 {
				values = r.refuse
			}
			with(t, o, r.path, rapid.SampledFrom(values).Draw(rt, r.path))
		}
		err := env.Client.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
		mine := ours(o)
		if (err == nil) != (mine == nil) {
			rt.Fatalf("%v\nthe API server: %v\nwe: %v", o.Object["spec"], err, mine)
		}
		seen[err == nil]++
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("only one answer was seen: %v", seen)
	}
}

// TestDefaults creates the least of each kind and reads what the API server made of
// it, which is what our own defaults make.
func TestDefaults(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	for _, c := range []struct {
		text  string
		paths map[string]string
	}{
		{pool, map[string]string{
			"spec/mode": `"shadow"`, "spec/markets/architectures": `["amd64"]`, "spec/capacity/onDemandFallback": `true`,
			"spec/disruption/budget": `"10%"`, "spec/disruption/consolidationPolicy": `"WhenEmptyOrUnderutilized"`, "spec/disruption/expireAfter": `"720h"`,
		}},
		{budget, map[string]string{"spec/resourceName": `"nvidia.com/gpu"`, "spec/enforcement/action": `"AlertOnly"`,
			"spec/accounting": `"Ledger"`}},
	} {
		o := object(t, c.text)
		if err := env.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		for path, want := range c.paths {
			v, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, "/")...)
			if got, _ := json.Marshal(v); string(got) != want {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}
		if o.GetKind() == "CapacityPool" {
			sameDefaults(t, o, &v1alpha1.CapacityPool{}, &v1alpha1.CapacityPool{}, object(t, c.text))
		} else {
			sameDefaults(t, o, &v1alpha1.GPUBudget{}, &v1alpha1.GPUBudget{}, object(t, c.text))
		}
	}
}

// sameDefaults compares the spec that the API server made with that of Default.
func sameDefaults(t *testing.T, server *unstructured.Unstructured, a, b interface{ Default() }, least *unstructured.Unstructured) {
	t.Helper()
	for from, into := range map[*unstructured.Unstructured]any{server: a, least: b} {
		data, _ := json.Marshal(map[string]any{"spec": from.Object["spec"]})
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	b.Default()
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) {
		t.Errorf("the API server makes %s\nand we make %s", x, y)
	}
}

// TestColumns reads what kubectl prints, by short names.
func TestColumns(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	o := object(t, pool)
	o.SetName("columns")
	if err := env.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = env.Kubectl("delete", "cpool", "columns") })
	with(t, o, "status",
		`{"mode":"shadow","nodes":5,"spotNodes":3,"onDemandNodes":2,"spotShare":"62%","savingsPerHour":"$1.25","conditions":[{"type":"Ready","status":"True","reason":"Deciding","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)
	if err := env.Client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	out, err := env.Kubectl("get", "cpool", "columns")
	for _, word := range []string{"MODE", "NODES", "SPOT", "SAVINGS", "READY", "shadow", "5", "62%", "$1.25", "True"} {
		if err != nil || !strings.Contains(out, word) {
			t.Fatalf("no %s: %v\n%s", word, err, out)
		}
	}
	if out, err := env.Kubectl("explain", "cpool.spec.capacity.exactRatio"); err != nil || !strings.Contains(out, "held from both sides") {
		t.Errorf("explain: %v\n%s", err, out)
	}
}

// TestVersions: every definition serves each version with the same fields and columns, and
// stores the first.
func TestVersions(t *testing.T) {
	for _, d := range crd.Objects() {
		var names []string
		for i, v := range d.Spec.Versions {
			names = append(names, v.Name)
			if !v.Served || v.Storage != (i == 0) {
				t.Errorf("%s %s: served %t, stored %t", d.Name, v.Name, v.Served, v.Storage)
			}
			v.Name, v.Storage = d.Spec.Versions[0].Name, true
			if !reflect.DeepEqual(v, d.Spec.Versions[0]) {
				t.Errorf("%s: version %d is not the first by another name", d.Name, i)
			}
		}
		if !slices.Equal(names, crd.Versions) {
			t.Errorf("%s has the versions %v, want %v", d.Name, names, crd.Versions)
		}
	}
}

// TestGenerated generates the definitions again and finds the same bytes.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "run", "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1",
		"crd:allowDangerousTypes=true", "paths=.", "output:crd:dir="+dir)
	cmd.Dir = filepath.Join("..", "..", "policy", "v1alpha1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("controller-gen: %v\n%s", err, out)
	}
	for _, name := range crd.Files() {
		made, err := os.ReadFile(filepath.Join(dir, name))
		embedded, missing := os.ReadFile(name)
		if err := errors.Join(err, missing); err != nil || !bytes.Equal(made, embedded) {
			t.Errorf("%s is not what controller-gen makes of policy/v1alpha1 (%v); run make generate", name, err)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) != len(crd.Files()) {
		t.Errorf("controller-gen makes %d files and %d are embedded: %v", len(made), len(crd.Files()), err)
	}
}
