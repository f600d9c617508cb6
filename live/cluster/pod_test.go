package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestTemplatesAreShared gives pods of one specification one template, whatever
// distinguishes each from its siblings, and those of another one of their own.
func TestTemplatesAreShared(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32)}}
	*set.Spec.Replicas = 3
	l := newLab(t, node("n"), set)
	for i := range 3 {
		name := fmt.Sprintf("db-%d", i)
		l.put(pod(name, "n", ownedBy("StatefulSet", "db"), func(p *corev1.Pod) {
			p.Labels["statefulset.kubernetes.io/pod-name"], p.Labels["apps.kubernetes.io/pod-index"] = name, fmt.Sprint(i)
			p.Labels[corev1.LabelTopologyZone], p.Labels[corev1.LabelTopologyRegion] = "eu-west-1"+string(rune('a'+i)), "eu-west-1"
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name}}}}
			if i == 2 { // after a change that has not reached the others
				p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("700m")
			}
		}))
	}
	s := l.observe(0)
	if len(s.Templates) != 2 || len(s.Workloads) != 1 {
		t.Fatalf("%d templates of %d workloads, want 2 of 1", len(s.Templates), len(s.Workloads))
	}
	if a, b, c := podIn(t, s, "a/db-0"), podIn(t, s, "a/db-1"), podIn(t, s, "a/db-2"); a.Template != b.Template || a.Template == c.Template {
		t.Errorf("templates %d, %d, %d", a.Template, b.Template, c.Template)
	}
	if v := s.Templates[0].Volumes; len(v) != 1 || v[0].Claim != "" || !v[0].Zonal {
		t.Errorf("volumes %+v", v)
	}
	if w := s.Workloads[0]; w.Kind != policy.KindStatefulSet || w.Replicas != 3 || w.Ready != 3 {
		t.Errorf("%+v", w)
	}
	l.remove(l.objects["pod a/db-2"])
	s = l.observe(time.Second)
	if len(s.Templates) != 2 || len(s.Ended) != 1 || s.Templates[s.Ended[0].Template].Requests.CPU != 700 {
		t.Errorf("the template of a pod that ended is not there to be reported: %+v", s.Ended)
	}
	if s = l.observe(2 * time.Second); len(s.Templates) != 1 || len(s.Ended) != 0 || s.Workloads[0].Ready != 2 {
		t.Errorf("%d templates, %d ended, %+v", len(s.Templates), len(s.Ended), s.Workloads[0])
	}
}

// TestPodsWithoutControllers distinguishes bare pods from static ones.
func TestPodsWithoutControllers(t *testing.T) {
	l := newLab(t, node("n"), node("m"), pod("bare", "n"))
	for _, n := range []string{"n", "m"} {
		l.put(pod("proxy-"+n, n, ownedBy("Node", n), func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" }))
	}
	l.put(pod("odd-1", "n", ownedBy("CloneSet", "odd")))
	s := l.observe(0)
	bare, proxy, odd := podIn(t, s, "a/bare"), podIn(t, s, "a/proxy-n"), podIn(t, s, "a/odd-1")
	if w := s.Templates[bare.Template].Workload; w != policy.None {
		t.Errorf("a bare pod has workload %d", w)
	}
	if x := s.Templates[proxy.Template]; !x.DaemonSet || proxy.Template != podIn(t, s, "a/proxy-m").Template {
		t.Errorf("%+v", x)
	}
	if w := s.Templates[odd.Template].Workload; w == policy.None || s.Workloads[w].Replicas != 1 ||
		s.Workloads[w].Kind != policy.KindStatefulSet {
		t.Errorf("workload %d of %+v", w, s.Workloads)
	}
}

// TestOwnersInAnyOrder reads pods before what they belong to is known, and again
// when it changes.
func TestOwnersInAnyOrder(t *testing.T) {
	l := newLab(t, node("n"), pod("w-1", "n", ownedBy("ReplicaSet", "w-set")))
	if s := l.observe(0); s.Workloads[0].Name != "a/w-set" {
		t.Fatalf("%+v", s.Workloads)
	}
	l.put(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w-set", OwnerReferences: controller("Deployment", "w")}})
	three := int32(3)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w",
		Annotations: map[string]string{"spotter.dev/outage-penalty": "7"}},
		Spec: appsv1.DeploymentSpec{Replicas: &three}}
	l.put(d)
	s := l.observe(time.Second)
	if len(s.Workloads) != 1 || s.Workloads[0].Name != "a/w" || s.Workloads[0].Replicas != 3 || s.Workloads[0].Ready != 1 {
		t.Fatalf("%+v", s.Workloads)
	}
	if x := s.Templates[podIn(t, s, "a/w-1").Template]; x.OutagePenalty != 7 || x.Name != "a/w" {
		t.Errorf("%+v", x)
	}
	d = d.DeepCopy()
	d.Annotations["spotvortex.io/critical"] = "true"
	l.put(d)
	if s := l.observe(2 * time.Second); len(s.Templates) != 1 || !s.Templates[0].Critical {
		t.Errorf("%+v", s.Templates)
	}
}

// TestEndsAreReportedOnce follows pods to their ends.
func TestEndsAreReportedOnce(t *testing.T) {
	ended := func(phase corev1.PodPhase, reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = phase
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: epoch.Add(-5 * time.Minute)}}}}}
			if reason != "" {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "DisruptionTarget",
					Status: corev1.ConditionTrue, Reason: reason})
			}
		}
	}
	job := ownedBy("Job", "j")
	l := newLab(t, node("n"), pod("before", "n", job, ended(corev1.PodSucceeded, "")))
	s := l.observe(0)
	if len(s.Ended) != 1 || s.Ended[0].End != at(-5*time.Minute) || s.Ended[0].Start != at(-29*time.Minute) ||
		s.Ended[0].Cause != policy.EndFinished {
		t.Fatalf("a pod that ended before: %+v", s.Ended)
	}
	l.remove(l.objects["pod a/before"])
	l.put(pod("done", "n", job), pod("evicted", "n", job), pod("shrunk", "n", job), pod("preempted", "n", job))
	if s := l.observe(time.Second); len(s.Ended) != 0 {
		t.Errorf("it is reported twice: %+v", s.Ended)
	}
	l.put(pod("done", "n", job, ended(corev1.PodSucceeded, "")), pod("preempted", "n", job, ended(corev1.PodFailed, "PreemptionByScheduler")))
	gone := pod("evicted", "n", job, ended(corev1.PodRunning, "EvictionByEvictionAPI"))
	l.put(gone)
	l.remove(gone)
	l.remove(l.objects["pod a/shrunk"])
	l.remove(l.objects["pod a/done"])
	s = l.observe(time.Minute)
	got := map[string]policy.EndCause{}
	for _, e := range s.Ended {
		got[e.Name] = e.Cause
	}
	want := map[string]policy.EndCause{"a/done": policy.EndFinished, "a/evicted": policy.EndEvicted,
		"a/shrunk": policy.EndScaled, "a/preempted": policy.EndPreempted}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(s.Ended) != 4 {
		t.Errorf("ends %v, want %v", got, want)
	}

	// Another pod of the same name is another pod.
	l.put(pod("again", "n", job))
	l.observe(2 * time.Minute)
	l.put(pod("again", "n", job, func(p *corev1.Pod) { p.UID = "another" }))
	if s := l.observe(3 * time.Minute); len(s.Ended) != 1 || podIn(t, s, "a/again").Phase != policy.PodReady {
		t.Errorf("%+v", s.Ended)
	}
}

// TestUnschedulableWakes requests a step for a pod that found no node, once.
func TestUnschedulableWakes(t *testing.T) {
	stuck := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
	}
	l := newLab(t)
	l.put(pod("p", ""))
	l.put(pod("p", "", stuck))
	if got := l.wakes(); !slices.Equal(got, []string{"unschedulable"}) {
		t.Errorf("it wakes for %v", got)
	}
	l.put(pod("p", "", stuck))
	l.put(pod("g", "", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }))
	if got := l.wakes(); got != nil {
		t.Errorf("it wakes for %v", got)
	}
	s := l.observe(0)
	if p := podIn(t, s, "a/p"); p.Phase != policy.PodPending || p.Gated || !podIn(t, s, "a/g").Gated {
		t.Errorf("%+v", p)
	}
}

// TestPodMarks reads what annotations say of single pods.
func TestPodMarks(t *testing.T) {
	mark := func(kv ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := 0; i < len(kv); i += 2 {
				p.Annotations[kv[i]] = kv[i+1]
			}
		}
	}
	started := func(p *corev1.Pod) { p.Status.StartTime = &p.CreationTimestamp }
	l := newLab(t, node("n"), pod("for-ever", "n", mark(kube.AnnotationDoNotDisrupt, "true")),
		pod("a-while", "n", mark(kube.AnnotationDoNotDisrupt, "1h"), started),
		pod("not-started", "n", mark(kube.AnnotationDoNotDisrupt, "1m")), pod("True", "n", mark(kube.AnnotationDoNotDisrupt, "True")),
		pod("odd", "n", mark(kube.AnnotationDoNotDisrupt, "please")),
		pod("theirs", "n", mark(drain.AnnotationCost, "-5")), pod("ours", "n", mark(drain.AnnotationCost, "-5", drain.AnnotationCostOwner, "-5")),
		pod("changed", "n", mark(drain.AnnotationCost, "7", drain.AnnotationCostOwner, "-5")))
	s := l.observe(0)
	for name, want := range map[string]bool{"for-ever": true, "a-while": true, "not-started": true, "odd": false, "True": false} {
		if p := podIn(t, s, "a/"+name); p.DoNotDisrupt != want {
			t.Errorf("%s: do not disrupt is %v", name, p.DoNotDisrupt)
		}
	}
	for name, want := range map[string]policy.Pod{"theirs": {DeletionCost: -5, DeletionCostFixed: true},
		"ours": {DeletionCost: -5}, "changed": {DeletionCost: 7, DeletionCostFixed: true}} {
		if p := podIn(t, s, "a/"+name); p.DeletionCost != want.DeletionCost || p.DeletionCostFixed != want.DeletionCostFixed {
			t.Errorf("%s: %d, fixed %v", name, p.DeletionCost, p.DeletionCostFixed)
		}
	}
	s = l.observe(30 * time.Minute)
	if p := podIn(t, s, "a/a-while"); p.DoNotDisrupt {
		t.Error("an hour after its start it still may not be disrupted")
	}
}

// TestVolumes finds the zone of a pod's volume, whichever of pod, claim and volume is
// seen first, and lets a file system that all zones reach bind it to none.
func TestVolumes(t *testing.T) {
	with := func(claim string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v",
				VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		}
	}
	claim := func(name, volume string, mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{mode}}}
	}
	volume := func(name, claim, zone string) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "a", Name: claim}}}
		if zone != "" {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "topology.ebs.csi.aws.com/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
		}
		return v
	}
	l := newLab(t, node("n"), pod("disk", "n", with("disk")), pod("files", "n", with("files")),
		pod("far", "n", with("far")), pod("later", "n", with("later")),
		volume("pv-4", "later", "us-east-1a"), claim("later", "", corev1.ReadWriteOnce))
	if p := podIn(t, l.observe(0), "a/disk"); p.VolumeZone != policy.None {
		t.Errorf("zone %d of a volume that is not known", p.VolumeZone)
	}
	l.put(claim("disk", "pv-1", corev1.ReadWriteOncePod), volume("pv-1", "disk", "us-east-1b"))
	l.put(volume("pv-2", "files", ""), claim("files", "pv-2", corev1.ReadWriteOnce))
	l.put(claim("far", "pv-3", corev1.ReadWriteOnce), volume("pv-3", "far", "us-east-1z"))
	s := l.observe(time.Second)
	disk, files, far := podIn(t, s, "a/disk"), podIn(t, s, "a/files"), podIn(t, s, "a/far")
	if disk.VolumeZone != 1 || s.Templates[disk.Template].Volumes[0] != (policy.Volume{Zonal: true, Once: true, Claim: "disk"}) {
		t.Errorf("%+v %+v", disk, s.Templates[disk.Template].Volumes)
	}
	if files.VolumeZone != policy.None || s.Templates[files.Template].Volumes[0].Zonal {
		t.Errorf("%+v %+v", files, s.Templates[files.Template].Volumes)
	}
	if far.VolumeZone < 2 || s.Zones[far.VolumeZone] != "us-east-1z" {
		t.Errorf("a volume in a zone where nothing is sold seems to lie in %d of %v", far.VolumeZone, s.Zones)
	}
	if p := podIn(t, s, "a/later"); p.VolumeZone != policy.None {
		t.Errorf("a claim that is not bound lies in zone %d", p.VolumeZone)
	}
	l.put(claim("later", "pv-4", corev1.ReadWriteOnce))
	if p := podIn(t, l.observe(2*time.Second), "a/later"); p.VolumeZone != 0 {
		t.Errorf("a claim that was bound lies in zone %d", p.VolumeZone)
	}
}

// TestBudgetsAndClasses reads what bounds pods: disruption budgets, priorities,
// budgets of accelerators, disruption budgets of pools with their schedule.
func TestBudgetsAndClasses(t *testing.T) {
	half := intstr.FromString("50%")
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &half,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}}
	hours := 10.0
	gpus := &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "g"},
		Spec: v1alpha1.GPUBudgetSpec{Quota: v1alpha1.Quota{GPUHours: &hours, WindowHours: 24}}}
	nightly := capacityPool("p", func(p *v1alpha1.CapacityPool) {
		p.Spec.Disruption.Schedule, p.Spec.Disruption.Duration = "0 9 * * *", &metav1.Duration{Duration: time.Hour}
	})
	l := newLab(t, node("n"), pod("x", "n", func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }), pdb, gpus, nightly)
	s := l.observe(0)
	if x := s.Templates[podIn(t, s, "a/x").Template]; len(x.PDBs) != 1 || s.PDBs[0].Allowed != 1 || s.PDBs[0].MinAvailable.N != 50 {
		t.Errorf("%+v %+v", x.PDBs, s.PDBs)
	}
	if len(s.Budgets) != 1 || s.Budgets[0].Window != 24*time.Hour || s.Budgets[0].Closed {
		t.Errorf("%+v", s.Budgets)
	}
	if s.Pools[0].Budgets[0].Active {
		t.Error("a budget of nine o'clock is in force at eight")
	}
	l.put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000})
	other := pdb.DeepCopy()
	other.Generation, other.Spec.Selector.MatchLabels["app"] = 2, "db"
	l.put(other)
	closed := gpus.DeepCopy()
	closed.Status.Gate = "Closed"
	l.put(closed)
	s = l.observe(90 * time.Minute)
	if x := s.Templates[podIn(t, s, "a/x").Template]; len(x.PDBs) != 0 || x.Priority != 1000 {
		t.Errorf("%+v, priority %d", x.PDBs, x.Priority)
	}
	if !s.Budgets[0].Closed || !s.Pools[0].Budgets[0].Active {
		t.Errorf("%+v %+v", s.Budgets, s.Pools[0].Budgets)
	}
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Generation, p.Spec.Disruption.Schedule = 2, "at nine" }))
	if s := l.observe(2 * time.Hour); len(s.Pools) != 0 || nodeIn(t, s, "n").Pool != policy.None {
		t.Errorf("a pool that is not valid is in the snapshot: %+v", s.Pools)
	}
	if c := l.observer.Conditions("p"); c[0].Status != metav1.ConditionFalse || c[0].ObservedGeneration != 2 {
		t.Errorf("%+v", c)
	}
}

// TestJobs reads what is left of a job, and forgets one that is over.
func TestJobs(t *testing.T) {
	n := func(x int32) *int32 { return &x }
	yes := true
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "j",
		CreationTimestamp: metav1.Time{Time: epoch}, Annotations: map[string]string{
			"spotter.dev/duration": "30m", "spotter.dev/deadline": "4h", "spotter.dev/checkpoint-interval": "10m"}},
		Spec: batchv1.JobSpec{Parallelism: n(4), Completions: n(6), Template: corev1.PodTemplateSpec{Spec: pod("x",
			"").Spec}}, Status: batchv1.JobStatus{Succeeded: 3}}
	l := newLab(t, j)
	s := l.observe(0)
	if w := s.Workloads[0]; w.Replicas != 3 || w.Work != 90*time.Minute || w.Deadline != at(4*time.Hour) || w.Kind != policy.KindJob {
		t.Errorf("%+v", w)
	}
	if x := s.Templates[0]; x.Duration != 30*time.Minute || x.Checkpoint != 10*time.Minute {
		t.Errorf("%+v", x)
	}
	paused := j.DeepCopy()
	paused.Spec.Suspend = &yes
	l.put(paused)
	if w := l.observe(time.Second).Workloads[0]; !w.Suspended || w.Replicas != 0 || w.Work != 90*time.Minute {
		t.Errorf("%+v", w)
	}
	done := j.DeepCopy()
	done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	l.put(done)
	if s := l.observe(2 * time.Second); len(s.Workloads) != 0 || len(s.Templates) != 0 {
		t.Errorf("%+v", s.Workloads)
	}
}

// TestPaused: nodes, and pods of namespaces, that are paused must not be disrupted, as long as
// the annotation says.
func TestPaused(t *testing.T) {
	l := newLab(t, node("n"), node("m"), pod("x", "n"))
	check := func(after time.Duration, wantNode, wantPod bool) {
		t.Helper()
		s := l.observe(after)
		if n := nodeIn(t, s, "n"); n.DoNotDisrupt != wantNode || nodeIn(t, s, "m").DoNotDisrupt {
			t.Errorf("after %v: node n must not be disrupted: %t, want %t", after, n.DoNotDisrupt, wantNode)
		}
		if p := podIn(t, s, "a/x"); p.DoNotDisrupt != wantPod {
			t.Errorf("after %v: the pod must not be disrupted: %t, want %t", after, p.DoNotDisrupt, wantPod)
		}
	}
	space := func(value string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{v1alpha1.AnnotationPause: value}}}
	}
	check(0, false, false)
	l.put(space(epoch.Add(10 * time.Minute).Format(time.RFC3339)))
	check(time.Minute, false, true)
	check(11*time.Minute, false, false)
	l.put(space("until further notice"))
	check(12*time.Minute, false, true)
	l.put(space("false"), node("n", func(n *corev1.Node) { n.Annotations = map[string]string{v1alpha1.AnnotationPause: "true"} }))
	check(13*time.Minute, true, false)
}

// TestNamespaces follows the namespaces that a pod wants to keep away from.
func TestNamespaces(t *testing.T) {
	space := func(name, team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
	}
	l := newLab(t, node("n"), space("a", "x"), space("b", "y"), pod("p", "n", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "y"}}}}}}
	}))
	spaces := func(s *policy.Snapshot) []string {
		return s.Templates[podIn(t, s, "a/p").Template].PodAntiAffinity[0].Namespaces
	}
	if got := spaces(l.observe(0)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%v", got)
	}
	l.put(space("a", "y"))
	if got := spaces(l.observe(time.Second)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
}

// TestStalled names what nothing was heard of.
func TestStalled(t *testing.T) {
	l := newLab(t)
	l.observe(0)
	s := l.observe(time.Hour)
	i := slices.IndexFunc(s.Sources, func(x policy.Source) bool { return x.Name == "nodes" })
	if i < 0 || s.Sources[0].Name != "prices" {
		t.Fatalf("%+v", s.Sources)
	}
	if at := s.Sources[i].At; at != s.Now {
		t.Errorf("a stream without a version is heard of at %v", at)
	}
	if got := l.observer.Stalled(); got != nil {
		t.Errorf("stalled: %v", got)
	}
}

// TestObserveWaits does not show half a cluster.
func TestObserveWaits(t *testing.T) {
	l := newLab(t)
	i, err := l.informer.FakeInformerFor(context.Background(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	i.SyncedLock.Lock()
	i.Synced = false
	i.SyncedLock.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := l.observer.Observe(ctx); err == nil {
		t.Error("a snapshot before all pods were heard of")
	}
	if _, err := l.observer.Notices(t.Context()); !errors.Is(err, cluster.ErrUnread) {
		t.Errorf("notices before all pods were heard of: %v", err)
	}
}

// TestTemplatesFollowWhatTheyAreReadFrom reads the template of similar pods once, and re-reads it
// when a class or a volume that it is read from has changed.
func TestTemplatesFollowWhatTheyAreReadFrom(t *testing.T) {
	web := func(name string) *corev1.Pod {
		return pod(name, "n", ownedBy("StatefulSet", "web"), func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" })
	}
	db := func(name string) *corev1.Pod {
		return pod(name, "n", ownedBy("StatefulSet", "db"), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v",
				VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}}}
		})
	}
	class := func(value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: value}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "shared"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	l := newLab(t, node("n"), class(1), claim, web("w0"), web("w1"), db("d0"), db("d1"))
	check := func(s *policy.Snapshot, priority int32, zonal bool) {
		t.Helper()
		for _, name := range []string{"a/w0", "a/w1"} {
			if x := s.Templates[podIn(t, s, name).Template]; x.Priority != priority {
				t.Errorf("%s has priority %d, want %d", name, x.Priority, priority)
			}
		}
		for _, name := range []string{"a/d0", "a/d1"} {
			if x := s.Templates[podIn(t, s, name).Template]; len(x.Volumes) != 1 || x.Volumes[0].Zonal != zonal {
				t.Errorf("%s has volumes %+v, want one that is zonal: %v", name, x.Volumes, zonal)
			}
		}
	}
	check(l.observe(0), 1, true)
	l.put(class(2))
	check(l.observe(time.Second), 2, true)
	l.put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "a", Name: "shared"}}})
	check(l.observe(2*time.Second), 2, false)
}

// TestWhatIsReadAheadIsReadAgain shows what changes between the wait for the cluster, in
// which pods are read, and the first snapshot.
func TestWhatIsReadAheadIsReadAgain(t *testing.T) {
	l := newLab(t, pod("w", "late"))
	if err := l.observer.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.put(node("late"))
	s := l.observe(0)
	if p := podIn(t, s, "a/w"); p.Node == policy.None || s.Nodes[p.Node].Name != "late" || p.Phase != policy.PodReady {
		t.Errorf("a pod whose node came after it was read: %+v", p)
	}
}
