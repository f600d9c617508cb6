package fixed

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func nodeText(name, fields string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata:\n  name: %s\n%s", name, fields)
}

const small = "status:\n  allocatable: {cpu: 2, memory: 4Gi, pods: 10}\n"

func bare(name, request, fields string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\nspec:\n  containers:\n  - name: main\n    image: pause\n    resources: {requests: {%s}}\n%s", name, request, fields)
}

func deployment(name string, replicas int, podLabels, podSpec string) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s%[3]s}}
    spec:
      containers: [{name: main, image: pause, resources: {requests: {cpu: 500m}}}]
%[4]s`, name, replicas, podLabels, podSpec)
}

func schedule(t *testing.T, texts ...string) *Result {
	t.Helper()
	c := NewCluster()
	if err := c.Add("input.yaml", []byte(strings.Join(texts, ""))); err != nil {
		t.Fatal(err)
	}
	r, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// pending returns the reasons, each after the pods that have it.
func pending(r *Result) (lines []string) {
	for _, x := range r.Pending {
		lines = append(lines, strings.Join(x.Pods, " ")+": "+x.Reason)
	}
	return lines
}

func TestReasons(t *testing.T) {
	helpless := func(n int) string {
		return fmt.Sprintf(" no new claims to deallocate, preemption: 0/%d nodes are available: %d Preemption is not helpful for scheduling.", n, n)
	}
	gpus := "status:\n  allocatable: {cpu: 8, memory: 8Gi, pods: 10, nvidia.com/gpu: 4, example.com/fpga: 2}\n"
	tests := map[string]struct {
		input []string
		want  []string
	}{
		"more than any node has": {
			[]string{nodeText("a", small), nodeText("b", small), bare("big", "cpu: 3, memory: 5Gi", "")},
			[]string{"default/big: 0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory." + helpless(2)},
		},
		"in use by equals": {
			[]string{nodeText("a", small), bare("first", "cpu: 1500m", ""), bare("second", "cpu: 1500m", "")},
			[]string{"default/second: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."},
		},
		"taint and cordon": {
			[]string{nodeText("a", "spec:\n  taints: [{key: team, value: x, effect: NoSchedule}]\n"+small),
				nodeText("b", "spec: {unschedulable: true}\n"+small), bare("p", "cpu: 1", "")},
			[]string{"default/p: 0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable." + helpless(2)},
		},
		"tolerated": {
			[]string{nodeText("a", "spec:\n  taints: [{key: team, value: x, effect: NoSchedule}]\n"+small),
				bare("p", "cpu: 1", "  tolerations: [{key: team, operator: Exists}]\n")},
			nil,
		},
		"selector": {
			[]string{nodeText("a", small), bare("p", "cpu: 1", "  nodeSelector: {disk: ssd}\n")},
			[]string{"default/p: 0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector." + helpless(1)},
		},
		"extended resources of several kinds": {
			[]string{nodeText("a", gpus), bare("both", "nvidia.com/gpu: 2, example.com/fpga: 2", ""),
				bare("gpu", "nvidia.com/gpu: 2", ""), bare("fpga", "example.com/fpga: 1", ""), bare("none", "example.com/other: 1", "")},
			[]string{
				"default/fpga: 0/1 nodes are available: 1 Insufficient example.com/fpga. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
				"default/none: 0/1 nodes are available: 1 Insufficient example.com/other." + helpless(1),
			},
		},
		"two kinds of accelerators": {
			[]string{nodeText("a",
				"status:\n  allocatable: {cpu: 8, memory: 8Gi, pods: 10, nvidia.com/gpu: 1, amd.com/gpu: 1}\n"), bare("p", "nvidia.com/gpu: 1, amd.com/gpu: 1", "")},
			nil,
		},
		"gates, and another scheduler": {
			[]string{nodeText("a", small), bare("held", "cpu: 1", "  schedulingGates: [{name: example.com/wait}]\n"),
				bare("other", "cpu: 1", "  schedulerName: volcano\n")},
			[]string{"default/held: Scheduling is blocked due to non-empty scheduling gates"},
		},
		"spread without the label": {
			[]string{nodeText("a", small),
				deployment("web", 1, "",
					"      topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]\n")},
			[]string{"default/web-0: 0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)." + helpless(1)},
		},
		"anti-affinity": {
			[]string{nodeText("a", small), nodeText("b", small), deployment("web", 3, "",
				"      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}\n")},
			[]string{"default/web-2: 0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."},
		},
		"too many pods": {
			[]string{nodeText("a", "status:\n  allocatable: {cpu: 2, memory: 4Gi, pods: 1}\n"), bare("p", "", ""), bare("q", "", "")},
			[]string{"default/q: 0/1 nodes are available: 1 Too many pods. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := pending(schedule(t, test.input...)); !slices.Equal(got, test.want) {
				t.Errorf("pending are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestOrder has a pod that comes last and has the highest priority go first.
func TestOrder(t *testing.T) {
	class := "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n"
	r := schedule(t, nodeText("a", small), bare("low", "cpu: 2", ""), class, bare("first", "cpu: 2", "  priorityClassName: high\n"))
	if len(r.Bindings) != 1 || r.Bindings[0].Pod != "default/first" || len(r.Preempted) > 0 {
		t.Errorf("bound are %v and preempted %v, want default/first alone", r.Bindings, r.Preempted)
	}
}

// TestPreemption has a pod of a workload, which is created again and waits, and a bare pod, which is
// not, end for others.
func TestPreemption(t *testing.T) {
	running := func(name, owner string) string {
		return strings.Replace(bare(name, "cpu: 2", "  nodeName: "+name+"\n"), "spec:\n", owner+"spec:\n", 1)
	}
	high := "  priority: 7\n"
	r := schedule(t, nodeText("a", small), nodeText("b", small),
		running("a", ""), running("b", "  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u, controller: true}]\n"),
		bare("x", "cpu: 2", high), bare("y", "cpu: 2", high))
	preempted := slices.Sorted(slices.Values(r.Preempted))
	if !slices.Equal(preempted, []string{"default/a", "default/b"}) || r.Scheduled != 2 || r.Unscheduled != 1 ||
		r.Pending[0].Pods[0] != "default/b" {
		t.Errorf("it comes to %+v", r)
	}
}

// TestPreemptionOfExtended has a pod end that holds an extended resource, and not one that leaves less
// room otherwise.
func TestPreemptionOfExtended(t *testing.T) {
	gpu := "status:\n  allocatable: {cpu: 8, memory: 8Gi, pods: 10, nvidia.com/gpu: 1}\n"
	r := schedule(t, nodeText("a", gpu), bare("holder", "nvidia.com/gpu: 1", "  nodeName: a\n"), bare("cpu", "cpu: 6", "  nodeName: a\n"),
		bare("p", "nvidia.com/gpu: 1", "  priority: 1\n"))
	if !slices.Equal(r.Preempted, []string{"default/holder"}) || r.Scheduled != 1 {
		t.Errorf("preempted are %v, and %d scheduled", r.Preempted, r.Scheduled)
	}
}

func TestWorkloads(t *testing.T) {
	owned := func(name, kind, owner, fields string) string {
		return strings.Replace(bare(name, "cpu: 100m", fields), "spec:\n",
			"  labels: {app: web}\n  ownerReferences: [{kind: "+kind+", name: "+owner+", controller: true}]\nspec:\n", 1)
	}
	daemons := `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: pause, resources: {requests: {cpu: 1500m}}}], nodeSelector: {agents: "yes"}}
`
	labelled := "  labels: {agents: \"yes\"}\n" + small
	tests := map[string]struct {
		input                           []string
		pods, running, scheduled, lacks int
	}{
		"replicas": {[]string{nodeText("a", small), deployment("web", 5, "", "")}, 5, 0, 4, 1},
		"pods of a ReplicaSet that is given": {[]string{nodeText("a", small), deployment("web", 3, "", ""),
			"---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-1, ownerReferences: [{kind: Deployment, name: web, controller: true}]}\nspec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: pause}]}}}\n", owned("p", "ReplicaSet", "web-1", "  nodeName: a\n")}, 3, 1, 2, 0},
		"and of one that is not": {[]string{nodeText("a", small), deployment("web", 2, "", ""),
			owned("p", "ReplicaSet", "web-7", "  nodeName: a\n")}, 2, 1, 1, 0},
		"a finished pod": {[]string{nodeText("a", small),
			bare("done", "cpu: 1", "status: {phase: Succeeded}\n"), bare("p", "cpu: 2", "")}, 1, 0, 1, 0},
		"DaemonSet": {[]string{nodeText("a", labelled), nodeText("b", labelled),
			nodeText("c", small), bare("p", "cpu: 1", "  nodeName: a\n"), daemons}, 3, 1, 1, 1},
		"elsewhere": {[]string{nodeText("a", small), bare("p", "cpu: 1", "  nodeName: z\n"),
			bare("q", "cpu: 1", "")}, 2, 0, 1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := schedule(t, test.input...)
			if got, want := [4]int{r.Pods, r.Running, r.Scheduled, r.Unscheduled}, [4]int{test.pods, test.running,
				test.scheduled, test.lacks}; got != want {
				t.Errorf("pods, running, scheduled and without a node are %v, want %v: %v", got, want, pending(r))
			}
		})
	}
}

// TestList reads what kubectl prints of several objects.
func TestList(t *testing.T) {
	r := schedule(t, `{"apiVersion": "v1", "kind": "List", "items": [
	{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4", "pods": "9"}, "fieldOfAnotherVersion": {}}},
	{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}]}`)
	if r.Scheduled != 1 || r.Usage[0].Share != 0.75 {
		t.Errorf("it comes to %+v", r)
	}
}

func TestRefused(t *testing.T) {
	for want, text := range map[string]string{
		`input.yaml:2: field "status.allocatable": must be set`: nodeText("a", ""),
		`input.yaml:9: field "status.allocatable.cpu": want a quantity such as 2`: nodeText("a",
			"status:\n  allocatable:\n    pods: 5\n    cpu: four\n"),
		`field "status.allocatable.memory": -1Gi is not from 0 to`: nodeText("a", "status: {allocatable: {memory: -1Gi}}\n"),
		`input.yaml:19: field "metadata.name": a appears twice`: nodeText("a", small) +
			nodeText("b", small) + nodeText("a", small),
		`field "apiVersion": "apps/v1beta1" of a Deployment, want "apps/v1"`: strings.Replace(deployment("web", 1, "",
			""), "apps/v1", "apps/v1beta1", 1),
		`field "spec.nodeSelectr": unknown key`:      bare("p", "", "  nodeSelectr: {a: b}\n"),
		`field "spec.replicas": -1 is not from 0 to`: deployment("web", -1, "", ""),
		`input.yaml:9: not valid YAML`:               nodeText("a", small) + "---\nkind: [\n",
		`field "spec.containers": must not be empty`: nodeText("a", small) +
			"---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}\n",
		`field "spec.containers": example.com/x of -2 is not from 0 to`:            nodeText("a", small) + bare("p", "example.com/x: -2", ""),
		`input.yaml:3: field "kind": "Nod" is not read here; did you mean "Node"?`: "---\napiVersion: v1\nkind: Nod\nmetadata: {name: a}\n",
		`there is no Node among the objects`:                                       bare("p", "", ""),
		`there is no pod and no workload among the objects`:                        nodeText("a", small),
	} {
		c := NewCluster()
		err := c.Add("input.yaml", []byte(text))
		if err == nil {
			_, err = c.Schedule()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

// TestSkipped names the kinds that have no part in it.
func TestSkipped(t *testing.T) {
	c := NewCluster()
	if err := c.Add("input.yaml",
		[]byte(nodeText("a",
			small)+"---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: y}\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Skipped(), "skipped: ConfigMap 1, Service 1"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}
