package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A load is a workload as stated in its manifest, before it is bound to the times of a run.
type load struct {
	Workload

	// schedule is the number of desired replicas of a service over time; nil means always replicas.
	replicas int32
	schedule *schedule
	rollouts []release

	// scaler sets the replicas if schedule is nil; it is nil without an autoscaler whose load is
	// known. scaled are the bounds of the autoscaler, nil without an autoscaler.
	scaler interface {
		steps(from, start, to policy.Time) []scheduleStep
	}
	scaled *autoscaler

	// loadSchedule is the load in the annotation of the workload itself. loadUnused is the error to
	// report if no autoscaler uses it.
	loadSchedule *schedule
	loadUnused   error

	// object is the kind, namespace and name in the input.
	object string

	// cpu is the CPU request of a pod, and containerCPU the CPU requests of its containers by name,
	// in milli-CPU.
	cpu          int64
	containerCPU map[string]int64

	// utilisation is the stated CPU use of a pod as a part of its CPU request; negative if not
	// stated.
	utilisation float64

	// releases is the schedule of a CronJob, and listed the listed releases of another job. If both
	// are nil, the job is created once, at the start.
	releases  cron.Schedule
	listed    []release
	suspended bool

	// gang is the gang that a job belongs to, nil for a job whose pods work independently.
	gang *gangLoad

	// queue is what a job says about its queue, nil for other workloads.
	queue *queueRef
}

// A source is the manifest of a workload with its pod template, regardless of its kind.
type source struct {
	kind     policy.WorkloadKind
	meta     *metav1.ObjectMeta
	pod      *corev1.PodTemplateSpec
	podPath  []string
	selector *metav1.LabelSelector

	// between are annotations of an object between the workload and its pod template, such as the
	// job template of a CronJob.
	between     map[string]string
	betweenPath []string
}

// templated returns the source of a workload whose pod template is spec.template.
func templated(kind policy.WorkloadKind, meta *metav1.ObjectMeta, pod *corev1.PodTemplateSpec,
	selector *metav1.LabelSelector) *source {
	return &source{kind: kind, meta: meta, pod: pod, podPath: []string{"spec", "template"}, selector: selector}
}

func (sc *Scenario) readDaemonSet(doc *document, o *appsv1.DaemonSet) []error {
	t, l, a, errs := sc.readWorkload(doc, templated(policy.KindDaemonSet, &o.ObjectMeta, &o.Spec.Template, o.Spec.Selector))
	a.refuse("DaemonSet", AnnotationReplicas, AnnotationRollouts, kube.AnnotationDuration, kube.AnnotationCheckpoint,
		kube.AnnotationDeadline, AnnotationReleases)
	t.DaemonSet = true
	t.Tolerations = append(t.Tolerations, kube.DaemonTolerations()...)
	sc.keep(t, l)
	return append(errs, a.errs...)
}

// readService reads a workload with a number of desired replicas.
func (sc *Scenario) readService(doc *document, s *source, replicas *int32,
	claims []corev1.PersistentVolumeClaim) []error {
	t, l, a, errs := sc.readWorkload(doc, s)
	a.refuse(s.kind.String(), kube.AnnotationDuration, kube.AnnotationCheckpoint, kube.AnnotationDeadline,
		AnnotationReleases)
	if s.kind != policy.KindDeployment {
		a.refuse(s.kind.String(), AnnotationRollouts)
	}
	for i := range claims {
		t.Volumes = append(t.Volumes, kube.Volume(&claims[i].Spec))
	}
	l.replicas, l.schedule, l.rollouts = 1, a.schedule(), a.rollouts()
	if replicas != nil {
		l.replicas = *replicas
	}
	if why := outside(l.replicas, 0, podsMax); why != "" {
		errs = append(errs, doc.problem([]string{"spec", "replicas"}, "%s", why))
	}
	sc.keep(t, l)
	return append(errs, a.errs...)
}

// readWork reads a workload whose pods run to completion. The path of spec is at. Finish, if not
// nil, completes the workload before it is added.
func (sc *Scenario) readWork(doc *document, s *source, at []string, spec *batchv1.JobSpec,
	finish func(l *load, a *annotations) []error) []error {
	t, l, a, errs := sc.readWorkload(doc, s)
	errs = append(errs, sc.readJobSpec(doc, l, at, spec, a)...)
	t.Duration, t.Checkpoint = l.Job.Work, l.Job.Checkpoint
	l.listed = a.releases()
	if finish != nil {
		errs = append(errs, finish(l, a)...)
	}
	sc.keep(t, l)
	return append(errs, a.errs...)
}

func (sc *Scenario) readJob(doc *document, o *batchv1.Job) []error {
	s := templated(policy.KindJob, &o.ObjectMeta, &o.Spec.Template, nil)
	return sc.readWork(doc, s, []string{"spec"}, &o.Spec, func(l *load, a *annotations) []error {
		gangOfJob(doc, l, &o.Spec, &o.ObjectMeta, a)
		return nil
	})
}

func (sc *Scenario) readCronJob(doc *document, o *batchv1.CronJob) []error {
	job := &o.Spec.JobTemplate
	at := []string{"spec", "jobTemplate", "spec"}
	s := &source{kind: policy.KindJob, meta: &o.ObjectMeta, pod: &job.Spec.Template, podPath: append(at[:3:3], "template"),
		between: job.Annotations, betweenPath: at[:2:2]}
	return sc.readWork(doc, s, at, &job.Spec, func(l *load, a *annotations) (errs []error) {
		text := o.Spec.Schedule
		if o.Spec.TimeZone != nil {
			text = "CRON_TZ=" + *o.Spec.TimeZone + " " + text
		}
		a.refuse("CronJob", AnnotationReleases)
		var err error
		if l.releases, err = cron.ParseStandard(text); err != nil {
			errs = append(errs, doc.problem([]string{"spec", "schedule"}, "%q is not a cron schedule: %v", o.Spec.Schedule, err))
		}
		if p := o.Spec.ConcurrencyPolicy; p == batchv1.ForbidConcurrent || p == batchv1.ReplaceConcurrent {
			sc.warn("%s: concurrencyPolicy %s is taken as Allow", l.Name, p)
		}
		gangOfJob(doc, l, &job.Spec, &job.ObjectMeta, a)
		l.suspended = l.suspended || o.Spec.Suspend != nil && *o.Spec.Suspend
		return errs
	})
}

// assumedWork is the running time of a job that states none.
const assumedWork = 10 * time.Minute

// readJobSpec sets the work of one instance of l.
func (sc *Scenario) readJobSpec(doc *document, l *load, path []string, s *batchv1.JobSpec, a *annotations) []error {
	a.refuse("Job", AnnotationReplicas, AnnotationRollouts)
	l.Job = &Job{Pods: 1, Completions: 1}
	var errs []error
	set := func(name string, v *int32, most int32, to *int32) {
		if v == nil {
			return
		}
		*to = *v
		if why := outside(*v, 1, most); why != "" {
			errs = append(errs, doc.problem(append(path, name), "%s", why))
		}
	}
	set("parallelism", s.Parallelism, podsMax, &l.Job.Pods)
	l.Job.Completions = l.Job.Pods // a work queue, with one item per pod
	set("completions", s.Completions, completionsMax, &l.Job.Completions)
	l.Job.Pods = min(l.Job.Pods, l.Job.Completions)
	l.Job.Work = a.Duration(time.Second, kube.AnnotationDuration)
	if !a.Has(kube.AnnotationDuration) {
		l.Job.Work = assumedWork
		sc.note(fmt.Sprintf("jobs without %s are taken to run %v", kube.AnnotationDuration, assumedWork), l.Name)
	}
	l.Job.Checkpoint = a.Duration(time.Second, kube.AnnotationCheckpoint)
	l.Job.Deadline = a.Duration(time.Second, kube.AnnotationDeadline)
	if l.Job.Deadline == 0 && s.ActiveDeadlineSeconds != nil {
		l.Job.Deadline = time.Duration(*s.ActiveDeadlineSeconds) * time.Second
	}
	l.suspended = s.Suspend != nil && *s.Suspend
	l.Replicas = l.Job.Pods
	return errs
}

// readWorkload reads the parts that all kinds of workload have in common.
func (sc *Scenario) readWorkload(doc *document, s *source) (*policy.Template, *load, *annotations, []error) {
	namespace := cmp.Or(s.meta.Namespace, "default")
	name := sc.uniqueName(namespace+"/"+s.meta.Name, doc.kind())
	t := &policy.Template{Name: name, Namespace: namespace}
	errs := sc.readPod(doc, s.podPath, t, s.pod)
	if s.selector != nil {
		sel, err := kube.Selector(s.selector)
		switch {
		case err != nil:
			errs = append(errs, doc.problem([]string{"spec", "selector"}, "%v", err))
		case !sel.Matches(t.Labels):
			errs = append(errs, doc.problem([]string{"spec", "selector"}, "does not match the labels of the pod template"))
		}
	}
	a := newAnnotations(doc)
	a.add(nil, s.meta.Annotations)
	a.add(s.betweenPath, s.between)
	a.add(s.podPath, s.pod.Annotations)
	a.Fill(t)
	expendable := kube.Expendable(t, s.kind)
	if expendable {
		t.OutagePenalty = 0
	}
	l := &load{object: doc.kind() + " " + namespace + "/" + s.meta.Name,
		loadSchedule: parsed(a, AnnotationLoad, parseLoadSchedule), Workload: Workload{
			Workload:          policy.Workload{Name: name, Kind: s.kind},
			OutagePenalty:     t.PenaltyHours(),
			OutageCostPerHour: t.OutageCost,
			Expendable:        expendable,
			LocalStorage:      writesLocally(s.pod.Spec.Volumes),
		}}
	var err error
	if l.DoNotDisrupt, l.ProtectedFor, err = kube.DoNotDisrupt(a.Values[kube.AnnotationDoNotDisrupt]); err != nil {
		sc.warn("%s: %s: %v", name, kube.AnnotationDoNotDisrupt, err)
	}
	if l.loadSchedule != nil {
		l.loadUnused = doc.problem(a.path[AnnotationLoad],
			"means nothing: no HorizontalPodAutoscaler or ScaledObject scales it")
	}
	l.cpu, l.containerCPU = t.Requests.CPU, cpuRequests(&s.pod.Spec)
	l.utilisation = a.CPUUtilisation()
	return t, l, a, errs
}

// writesLocally reports whether any of the volumes is on the disk of the node, so that its data is
// lost with the node.
func writesLocally(volumes []corev1.Volume) bool {
	return slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
	})
}

// uniqueName returns a unique name for a workload. Objects of different kinds may have the same
// name, and so may the jobs of a JobSet and a Job: the kind is appended to all names but the first.
func (sc *Scenario) uniqueName(name, kind string) string {
	for slices.ContainsFunc(sc.loads, func(l load) bool { return l.Name == name }) {
		name += "." + strings.ToLower(kind)
	}
	return name
}

// loadOf returns the workload of an object, or nil.
func (sc *Scenario) loadOf(kind, qualified string) *load {
	i := slices.IndexFunc(sc.loads, func(l load) bool { return l.object == kind+" "+qualified })
	if i < 0 {
		return nil
	}
	return &sc.loads[i]
}

// keep adds a workload and its template, which have the same index.
func (sc *Scenario) keep(t *policy.Template, l *load) {
	sc.templates = append(sc.templates, *t)
	sc.loads = append(sc.loads, *l)
}

// times returns l with its schedule and releases in [begin, end). A job without a schedule and
// without listed releases is released at start.
func (l *load) times(begin, start, end policy.Time) Workload {
	w := l.Workload
	switch {
	case l.Job != nil:
		job := *l.Job
		job.Releases = l.releaseTimes(begin, start, end)
		w.Job = &job
	case w.Kind == policy.KindDaemonSet:
	case l.schedule != nil, l.scaler != nil:
		steps := l.schedule.steps
		if l.schedule == nil {
			steps = l.scaler.steps
		}
		w.Schedule = replicaSteps(steps(begin, start, end))
		w.Replicas = w.Schedule[0].Replicas
		w.Rollouts = instants(l.rollouts, begin, start, end)
	default:
		w.Schedule = []ReplicaStep{{begin, l.replicas}}
		w.Replicas = l.replicas
		w.Rollouts = instants(l.rollouts, begin, start, end)
	}
	return w
}

func (l *load) releaseTimes(begin, start, end policy.Time) []policy.Time {
	switch {
	case l.suspended:
		return nil
	case l.listed != nil:
		return instants(l.listed, begin, start, end)
	case l.releases == nil:
		return []policy.Time{start}
	}
	var at []policy.Time
	// Next returns a strictly later time, with a resolution of one second.
	for next := l.releases.Next(begin.Std().Add(-time.Second)); !next.IsZero(); next = l.releases.Next(next) {
		t := policy.TimeOf(next)
		if t >= end {
			break
		}
		if t >= begin {
			at = append(at, t)
		}
	}
	return at
}
