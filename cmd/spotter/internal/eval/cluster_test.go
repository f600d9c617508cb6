package eval

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
)

// TestLargePlan: a plan that is too large for a ConfigMap is stored with the parts, where pods
// and --attach read it, until all parts are merged.
func TestLargePlan(t *testing.T) {
	objectstest.Use(t, objectstest.Serve(t, nil, "b"))
	ctx, c, store := t.Context(), fake.NewClientBuilder().Build(), &objects.Store{}
	remoteOf := func() *remoteRun {
		return &remoteRun{client: c, store: store, namespace: "default", p: &cli.Program{Stderr: io.Discard}}
	}
	begun := remoteOf()
	begun.remote = remote{Name: "spotter-eval-x", Parts: "s3://b/p/spotter-eval-x", Shards: 2}
	begun.plan = shard.Plan{Args: []string{"shop.yaml"}, Files: map[string]string{"shop.yaml": strings.Repeat("#", planMax)}}
	var err error
	if begun.Job, err = (&clusterFlags{parallelism: 1}).job(begun.p, &begun.remote); err != nil {
		t.Fatal(err)
	}
	if err := begun.create(ctx); err != nil {
		t.Fatal(err)
	}
	m := begun.configMap()
	if err := c.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	if size := m.Size(); size > 100<<10 {
		t.Errorf("the ConfigMap has %d bytes", size)
	}

	attached := remoteOf()
	if err := attached.open(ctx, begun.Name); err != nil || attached.plan.Digest() != begun.plan.Digest() {
		t.Errorf("--attach reads another plan: %v", err)
	}
	name, err := attached.start(ctx, nil, []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	var j batchv1.Job
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &j); err != nil {
		t.Fatal(err)
	}
	args := j.Spec.Template.Spec.Containers[slices.IndexFunc(j.Spec.Template.Spec.Containers,
		func(x corev1.Container) bool { return x.Name == containerName })].Args
	data, err := store.ReadFile(ctx, args[slices.Index(args, "--plan")+1])
	if err != nil {
		t.Fatalf("the pods' plan: %v", err)
	}
	if plan, err := readPlan("plan.json", data); err != nil || plan.Digest() != begun.plan.Digest() {
		t.Errorf("the pods read another plan: %v", err)
	}
	if err := attached.look(ctx, partial{}); err != nil {
		t.Errorf("the plan is taken for a part: %v", err)
	}

	if err := attached.clean(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := store.List(ctx, begun.Parts); err != nil || len(left) > 0 {
		t.Errorf("%v are left there: %v", left, err)
	}
}

// TestQueue: a Job for a queue of Kueue names it, and is suspended until Kueue admits it. Its
// pods are counted as any others: those that a disruption ended do not count as failed.
func TestQueue(t *testing.T) {
	for _, queue := range []string{"", "nightly"} {
		text, err := (&clusterFlags{parallelism: 4, queue: queue}).job(&cli.Program{}, &remote{Name: "spotter-eval-x", Shards: 40})
		if err != nil {
			t.Fatal(err)
		}
		var j batchv1.Job
		if err := json.Unmarshal(text, &j); err != nil {
			t.Fatal(err)
		}
		if label, some := j.Labels[queueLabel]; label != queue || some != (queue != "") || (j.Spec.Suspend != nil && *j.Spec.Suspend) != some {
			t.Errorf("queue %q: labels %v, suspend %v", queue, j.Labels, j.Spec.Suspend)
		}
		if r := j.Spec.PodFailurePolicy.Rules[0]; r.Action != batchv1.PodFailurePolicyActionIgnore ||
			r.OnPodConditions[0].Type != corev1.DisruptionTarget || *j.Spec.MaxFailedIndexes != 4 {
			t.Errorf("queue %q: %+v", queue, j.Spec)
		}
	}
}
