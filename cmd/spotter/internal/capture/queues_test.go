package capture

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// queuedCluster is a cluster with Kueue 0.12: train runs on a Spot node, and three jobs wait for its
// quota. The flavors of ghosts do not exist.
const queuedCluster = `
{apiVersion: v1, kind: Namespace, metadata: {name: ml}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: cheap}, spec: {nodeLabels: {tier: cheap}, tolerations: [{key: cheap, operator: Exists}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: steady}, spec: {nodeLabels: {eks.amazonaws.com/capacityType: ON_DEMAND}}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: everyone, uid: 1-2-3}
spec:
  cohort: all
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ml}}
  admissionChecks: [secret-check]
  resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
        - {name: cheap, resources: [{name: cpu, nominalQuota: 4}, {name: memory, nominalQuota: 8Gi}]}
        - {name: steady, resources: [{name: cpu, nominalQuota: "0"}, {name: memory, nominalQuota: "0"}]}
status: {pendingWorkloads: 3}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: ghosts}
spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: gone, resources: [{name: cpu, nominalQuota: 1}]}]}]}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {name: batch, namespace: ml}, spec: {clusterQueue: everyone}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: pressing}, value: 1000, description: secret}
`

// queuedNode and queuedRun are the objects of a node and of a job.
const (
	queuedNode = `
apiVersion: v1
kind: Node
metadata:
  name: NAME
  labels: {node.kubernetes.io/instance-type: m5.2xlarge, topology.kubernetes.io/zone: us-east-1a, topology.kubernetes.io/region: us-east-1,
    kubernetes.io/arch: amd64, kubernetes.io/os: linux, karpenter.sh/nodepool: POOL, karpenter.sh/capacity-type: CAPACITY, tier: TIER}
spec: {providerID: "aws:///us-east-1a/NAME"}
status: {allocatable: {cpu: 8, memory: 30Gi, pods: 50}, capacity: {cpu: 8, memory: 32Gi, pods: 50}, conditions: [{type: Ready, status: "True"}]}
`
	queuedRun = `
apiVersion: batch/v1
kind: Job
metadata:
  {name: NAME, namespace: ml, uid: NAME, creationTimestamp: "2025-12-31TTIMEZ", labels: {kueue.x-k8s.io/queue-name: batch PRIORITY},
    annotations: {spotter.dev/duration: 1h}}
spec:
  {parallelism: 4, completions: 4, suspend: SUSPEND, template: {metadata: {labels: {app: NAME}}, spec: {restartPolicy: Never INJECTED,
    containers: [{name: main, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}}
`
	queuedPod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: ml, labels: {app: train, kueue.x-k8s.io/podset: main}, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: train, controller: true}]}
spec: {nodeName: n1, restartPolicy: Never INJECTED, containers: [{name: main, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
`
	injected = ", nodeSelector: {tier: cheap}, tolerations: [{key: cheap, operator: Exists}]"
)

// kueueClient returns a client of the objects in a text. The cluster has the kinds of Kueue in v1beta1
// but for Cohorts; forbidden names one that may not be listed. If idle is true, train waits, too.
func kueueClient(t *testing.T, text, forbidden string, idle bool) client.Reader {
	t.Helper()
	fill := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	docs, added, running := strings.Split(text, "\n---\n"), injected, []string{"train-1", "train-2", "train-3", "train-4"}
	if idle {
		added, running = "", nil
	}
	docs = append(docs, fill(queuedNode, "NAME", "n1", "CAPACITY", "spot", "TIER", "cheap", "POOL", "fleet"),
		fill(queuedNode, "NAME", "n2", "CAPACITY", "on-demand", "TIER", "dear", "POOL", "base"),
		fill(queuedRun, "NAME", "train", "TIME", "20:00:00", "PRIORITY", "", "SUSPEND", fmt.Sprint(idle), "INJECTED", added),
		fill(queuedRun, "NAME", "ada", "TIME", "22:00:00", "PRIORITY", "", "SUSPEND", "true", "INJECTED", ""),
		fill(queuedRun, "NAME", "bob", "TIME", "21:00:00", "PRIORITY", "", "SUSPEND", "true", "INJECTED", ""),
		fill(queuedRun, "NAME", "eve", "TIME", "23:00:00", "PRIORITY", ", kueue.x-k8s.io/priority-class: pressing", "SUSPEND", "true",
			"INJECTED", ""))
	for _, name := range running {
		docs = append(docs, fill(queuedPod, "NAME", name, "INJECTED", injected))
	}
	var objects []client.Object
	for _, doc := range docs {
		u := &unstructured.Unstructured{}
		read(t, doc, &u.Object)
		objects = append(objects, u)
	}
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
		kind := l.GetObjectKind().GroupVersionKind()
		switch {
		case kind.Group != groupKueue:
		case kind.Kind == forbidden:
			return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, "", nil)
		case kind.Version != "v1beta1" || kind.Kind == "CohortList":
			return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
		}
		return c.List(ctx, l, o...)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()
}

// takenQueues captures the cluster of a client.
func takenQueues(t *testing.T, c client.Reader, hidden bool) (*Cluster, *policy.Snapshot, Options) {
	t.Helper()
	o := options()
	o.Anonymise = hidden
	read, err := ReadBy(t.Context(), c, &o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	read.Snapshot.Now = 1_767_225_600_000
	return read, read.Snapshot, o
}

// TestQueues captures a cluster with Kueue and runs it. The running job continues in its place, without
// what Kueue added to its pods; the jobs that wait are admitted after it by priority and age. With
// other names the same happens.
func TestQueues(t *testing.T) {
	var plain any
	for _, hidden := range []bool{false, true} {
		read, s, o := takenQueues(t, kueueClient(t, queuedCluster, "", false), hidden)
		if len(read.Missing) > 0 {
			t.Errorf("%q is missing, want nothing", read.Missing)
		}
		c, w, res, text := capturedRun(t, s, o)
		for _, want := range []string{"1 ClusterQueues that admit nothing", "kind: ClusterQueue", "kind: WorkloadPriorityClass"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not written\n%s", want, text)
			}
		}
		if leak := regexp.MustCompile(`\b(cheap|steady|everyone|ghosts|gone|batch|pressing|secret.*|ml|train|fleet)\b`).
			FindString(strings.ReplaceAll(text, "batch/v1", "")); hidden && leak != "" {
			t.Errorf("%q is in the scenario\n%s", leak, text)
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "pendingWorkloads") || strings.Contains(text, "kueue.x-k8s.io/podset") {
			t.Errorf("more is written of Kueue than a run depends on\n%s", text)
		}
		if !slices.Contains(c.Assumed, "node selectors and tolerations of 1 admitted jobs are Kueue's where a flavor of their queue has the same") {
			t.Errorf("assumed %q", c.Assumed)
		}
		if w.Queues == nil || len(w.Queues.Queues) != 1 || w.Queues.Queues[0].Cohort < 0 {
			t.Fatalf("queues %+v\n%s", w.Queues, text)
		}
		order := waiting(w)
		if want := []int64{23, 20, 21, 22}; !slices.Equal(order, want) {
			t.Errorf("jobs were created at %v o'clock in the order of their priority and age, want %v\n%s", order, want, text)
		}
		q := res.Queues[0]
		if q.Admitted != 3 || q.Pending != 0 || q.Preempted != 0 || res.JobsDone != 4 || q.WaitP50.Hours() < 2 || q.WaitP50.Hours() > 2.5 {
			t.Errorf("the queue came to %+v, %d jobs done; want three admitted, one after the other from the end of train\n%s", q,
				res.JobsDone, text)
		}
		if q.Name = ""; !hidden {
			plain = q
		} else if !reflect.DeepEqual(plain, any(q)) {
			t.Errorf("with other names the queue came to %+v, and without to %+v", q, plain)
		}
	}
}

// waiting returns the hours at which the queued jobs of a scenario were created, in the order in which
// the queue has them.
func waiting(w *scenarios.BoundScenario) (hours []int64) {
	var of []scenarios.Queued
	for i := range w.Queues.Of {
		if q := w.Queues.Of[i]; q.Queue >= 0 && len(q.Variants) == 2 {
			of = append(of, q)
		}
	}
	slices.SortFunc(of, func(a, b scenarios.Queued) int {
		return int(b.Priority-a.Priority) + int(a.Created-b.Created)/3_600_000
	})
	for _, q := range of {
		hours = append(hours, int64(q.Created.Std().Hour()))
	}
	return hours
}

// TestQueuesNotRead: without flavors, or with queues that cannot be simulated, jobs start at once, and
// one line says so.
func TestQueuesNotRead(t *testing.T) {
	wrong := strings.Replace(queuedCluster, "cohort: all", "queueingStrategy: Odd", 1)
	for _, x := range []struct{ text, forbidden, missing, left string }{
		{queuedCluster, "ResourceFlavorList", "the right to list resourceflavors.kueue.x-k8s.io is missing: jobs in queues of Kueue start at once",
			"4 jobs' waits for quota: queues of Kueue that admit jobs cannot be read, so that jobs start at once"},
		{wrong, "", "", `4 jobs' waits for quota, so that they start at once: the queues of Kueue are not simulated: ` +
			`"spec.queueingStrategy": "Odd" is not one of BestEffortFIFO, StrictFIFO`},
		{strings.Replace(queuedCluster, "{name: pressing}", "{name: other}", 1), "", "",
			"1 WorkloadPriorityClasses of jobs that are not there: these jobs have the priority of their pods"},
	} {
		read, s, o := takenQueues(t, kueueClient(t, x.text, x.forbidden, false), false)
		if got := strings.Join(read.Missing, "\n"); got != x.missing {
			t.Errorf("%q is missing, want %q", got, x.missing)
		}
		c, w, res, text := capturedRun(t, s, o)
		if !slices.Contains(c.Left, x.left) {
			t.Errorf("left out is %q, want %q", c.Left, x.left)
		}
		if simulated := strings.Contains(x.left, "Classes"); (w.Queues != nil) != simulated || res.JobsDone != 4 {
			t.Errorf("queues %+v and %d jobs done, want 4\n%s", w.Queues, res.JobsDone, text)
		}
	}
}

// TestQueuesWait captures a cluster in which all jobs wait: nodes have the labels that only a flavor
// names, so that the jobs run.
func TestQueuesWait(t *testing.T) {
	_, s, o := takenQueues(t, kueueClient(t, queuedCluster, "", true), false)
	_, w, res, text := capturedRun(t, s, o)
	if w.Queues == nil || res.Queues[0].Admitted != 4 || res.JobsDone != 4 {
		t.Errorf("queues %+v, %d jobs done, want 4\n%s", res.Queues, res.JobsDone, text)
	}
}
