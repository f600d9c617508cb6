package whatif

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/test/testenv"
)

// An app is a service of the script.
type app struct {
	name        string
	cpu, memory string
	base, peak  int32 // replicas in quiet times and in the middle of a wave

	zonal    bool                // spread over zones
	budget   *intstr.IntOrString // most unavailable by a PodDisruptionBudget; nil for none
	from, to float64             // when it is there, in parts of the whole; to 0 is to the end
	rolls    int                 // how often a new version is rolled out
	startup  time.Duration
	nightly  bool // scaled by hand at random, and not with the waves
}

func percent(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }

// apps are the services: of many sizes, so that nodes are filled in many ways.
var apps = []app{
	{name: "web", cpu: "500m", memory: "1Gi", base: 14, peak: 44, budget: percent("25%"), rolls: 2, startup: 20 * time.Second},
	{name: "api", cpu: "700m", memory: "1Gi", base: 10, peak: 32, zonal: true, rolls: 2, startup: 30 * time.Second},
	{name: "cart", cpu: "250m", memory: "512Mi", base: 8, peak: 24, budget: percent("20%"), rolls: 1, startup: 15 * time.Second},
	{name: "search", cpu: "1500m", memory: "6Gi", base: 4, peak: 11, rolls: 1, startup: 45 * time.Second},
	{name: "feed", cpu: "1", memory: "2Gi", base: 6, peak: 20, startup: 20 * time.Second},
	{name: "auth", cpu: "300m", memory: "400Mi", base: 6, peak: 12, rolls: 1, startup: 10 * time.Second},
	{name: "cache", cpu: "500m", memory: "4Gi", base: 5, peak: 9, budget: percent("20%"), startup: 30 * time.Second},
	{name: "queue", cpu: "400m", memory: "1Gi", base: 6, peak: 15, nightly: true, rolls: 1, startup: 10 * time.Second},
	{name: "rank", cpu: "1800m", memory: "4Gi", base: 3, peak: 9, startup: 40 * time.Second},
	{name: "mail", cpu: "200m", memory: "300Mi", base: 4, peak: 10, nightly: true, rolls: 1, startup: 10 * time.Second},
	{name: "promo", cpu: "600m", memory: "1536Mi", base: 8, peak: 16, from: 0.25, to: 0.55, startup: 20 * time.Second},
	{name: "canary", cpu: "500m", memory: "1Gi", base: 3, peak: 6, from: 0.4, rolls: 1, startup: 20 * time.Second},
	{name: "legacy", cpu: "900m", memory: "3Gi", base: 6, peak: 10, to: 0.7, startup: 20 * time.Second},
}

// What a step does.
type deed string

const (
	scale  deed = "scale"
	roll   deed = "roll"
	remove deed = "remove"
	submit deed = "submit" // a Job
)

// A step is one change by who deploys.
type step struct {
	at   time.Duration
	do   deed
	name string
	n    int32 // replicas, or the pods of a job
	took time.Duration
}

// wholeScript is how long the script is.
const wholeScript = 2 * time.Hour

// waves are when each wave of load comes and when it is over, from the start.
var waves = [][2]time.Duration{{12 * time.Minute, 24 * time.Minute}, {44 * time.Minute, 58 * time.Minute},
	{82 * time.Minute, 96 * time.Minute}}

// script returns the steps of a seed, ascending by time. Steps are drawn for all of two
// hours, of which a shorter run plays the first part.
func script(seed uint64) []step {
	draw := rand.New(rand.NewPCG(seed, 0))
	second := func(low, high time.Duration) time.Duration {
		return (low + time.Duration(draw.Int64N(int64(high-low)))).Truncate(time.Second)
	}
	about := func(n int32) int32 { // within a fifth
		return max(1, int32(float64(n)*(0.8+0.4*draw.Float64())+0.5))
	}
	var all []step
	for i := range apps {
		a := &apps[i]
		from, to := time.Duration(a.from*float64(wholeScript)), wholeScript
		if a.to > 0 {
			to = time.Duration(a.to * float64(wholeScript))
			all = append(all, step{at: to + second(0, time.Minute), do: remove, name: a.name})
		}
		add := func(at time.Duration, n int32) {
			if at > from && at < to {
				all = append(all, step{at: at, do: scale, name: a.name, n: n})
			}
		}
		add(from+second(time.Minute, 2*time.Minute), a.base)
		for _, w := range waves {
			if a.nightly {
				break
			}
			begin, end := w[0]+second(0, 2*time.Minute), w[1]+second(0, 2*time.Minute)
			add(begin, about(a.base+(a.peak-a.base)/2))
			add(begin+second(90*time.Second, 4*time.Minute), a.peak)
			if draw.IntN(2) == 0 {
				add(begin+second(5*time.Minute, 9*time.Minute), about(a.peak))
			}
			add(end, about(a.base+(a.peak-a.base)/4))
			add(end+second(2*time.Minute, 5*time.Minute), a.base)
			add(end+second(7*time.Minute, 16*time.Minute), about(a.base))
		}
		for at := from + second(6*time.Minute, 15*time.Minute); a.nightly && at < to; at += second(6*time.Minute, 15*time.Minute) {
			add(at, a.base+draw.Int32N(a.peak-a.base+1))
		}
		for range a.rolls {
			all = append(all, step{at: from + second(8*time.Minute, to-from-5*time.Minute), do: roll, name: a.name})
		}
	}
	for at := second(4*time.Minute, 9*time.Minute); at < wholeScript-5*time.Minute; at += second(6*time.Minute, 13*time.Minute) {
		all = append(all, step{at: at, do: submit, name: fmt.Sprintf("report-%d", at/time.Second), n: 2 + draw.Int32N(5),
			took: second(2*time.Minute, 5*time.Minute)})
	}
	for at := second(15*time.Minute, 20*time.Minute); at < wholeScript-15*time.Minute; at += second(20*time.Minute, 35*time.Minute) {
		all = append(all, step{at: at, do: submit, name: fmt.Sprintf("train-%d", at/time.Second), n: 3,
			took: second(9*time.Minute, 12*time.Minute)})
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

// namespace is the namespace of all objects of the script.
const namespace = "shop"

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}}
}

func template(labels, annotations map[string]string, cpu, memory string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10",
			Resources: requests(cpu, memory)}}},
	}
}

// objects returns the Deployment of an app, and its PodDisruptionBudget where it has one.
func (a *app) objects(replicas int32) []client.Object {
	labels := map[string]string{"app": a.name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.name}}
	d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = template(labels, map[string]string{testenv.StartupTime: a.startup.String()}, a.cpu, a.memory)
	if a.zonal {
		d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}}
	}
	out := []client.Object{d}
	if a.budget != nil {
		p := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: a.name}}
		p.Spec.MaxUnavailable, p.Spec.Selector = a.budget, &metav1.LabelSelector{MatchLabels: labels}
		out = append(out, p)
	}
	return out
}

// job returns the Job of a step. Those that train are not to be disturbed.
func (s *step) job() *batchv1.Job {
	annotations := map[string]string{testenv.Duration: s.took.String(), testenv.StartupTime: "5s"}
	cpu, memory := "800m", "1Gi"
	if s.took > 5*time.Minute {
		cpu, memory = "1500m", "3Gi"
		annotations[karpv1.DoNotDisruptAnnotationKey] = "true"
	}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.name}}
	kept := int32(600)
	j.Spec.Parallelism, j.Spec.Completions, j.Spec.TTLSecondsAfterFinished = &s.n, &s.n, &kept
	j.Spec.Template = template(map[string]string{"batch": "yes"}, annotations, cpu, memory)
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return j
}

// daemon is what runs on every node.
func daemon() *appsv1.DaemonSet {
	labels := map[string]string{"app": "agent"}
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = template(labels, nil, "100m", "128Mi")
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return d
}
