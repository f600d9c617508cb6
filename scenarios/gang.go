package scenarios

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// The labels and annotations of Kueue that Spotter reads.
const (
	labelQueue         = "kueue.x-k8s.io/queue-name"
	annotationReadyMax = "kueue.x-k8s.io/wait-for-pods-ready" // JSON
)

// queueTimeout is the default time that Kueue waits for all pods of an admitted workload to become
// ready, and again after one was lost, before it evicts and requeues the workload (Kueue's
// documentation, "Setup All-or-nothing with ready Pods": timeout and recoveryTimeout of
// waitForPodsReady).
const queueTimeout = 30 * time.Minute

// A gangLoad describes the gang that a load belongs to.
type gangLoad struct {
	name            string
	restartsMax     int32 // negative means no limit
	ready, recovery time.Duration
	total           int // stated number of pods of the group, 0 if not stated
	doc             *document
	totalPath       []string
}

// gangOfJob makes a gang of all pods of a standalone job if they have ranks and all run at once;
// see [kube.Ranked]. If Kueue admits the job, its timeouts apply.
func gangOfJob(doc *document, l *load, s *batchv1.JobSpec, meta *metav1.ObjectMeta, a *annotations) {
	queued := l.queueOf(doc, meta.Labels, meta.CreationTimestamp)
	l.suspended = l.suspended && !queued // Kueue resumes the job
	if !kube.Ranked(s) {
		return
	}
	l.gang = &gangLoad{name: l.Name, restartsMax: -1, doc: doc}
	l.gang.queue(queued, a)
}

// queue sets the timeouts of a gang that Kueue admits.
func (g *gangLoad) queue(queued bool, a *annotations) {
	if !queued {
		return
	}
	g.ready, g.recovery = queueTimeout, queueTimeout
	text, stated := a.Values[annotationReadyMax]
	if !stated {
		return
	}
	var own struct {
		Timeout  *int32 `json:"timeoutSeconds"`
		Recovery *int32 `json:"recoveryTimeoutSeconds"`
	}
	if err := json.Unmarshal([]byte(text), &own); err != nil || own.Timeout == nil || *own.Timeout < 1 ||
		own.Recovery != nil && *own.Recovery < 1 {
		a.fail(annotationReadyMax,
			`want {"timeoutSeconds": N} with N above 0 and perhaps recoveryTimeoutSeconds, got %q`, text)
		return
	}
	g.ready = time.Duration(*own.Timeout) * time.Second
	if own.Recovery != nil {
		g.recovery = time.Duration(*own.Recovery) * time.Second
	}
}

// readPodObject reads a plain pod. A pod of a Kueue pod group becomes a job with one pod that
// belongs to a gang.
func (sc *Scenario) readPodObject(doc *document, o *corev1.Pod) []error {
	group := o.Labels[kube.LabelPodGroup]
	if group == "" {
		return sc.readBarePod(doc, o)
	}
	s := &source{kind: policy.KindJob, meta: &o.ObjectMeta,
		pod: &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}}
	return sc.readWork(doc, s, []string{"spec"}, &batchv1.JobSpec{}, func(l *load, a *annotations) []error {
		at := []string{"metadata", "annotations", kube.AnnotationPodGroupTotal}
		total, err := strconv.Atoi(o.Annotations[kube.AnnotationPodGroupTotal])
		l.gang = &gangLoad{name: doc.qualified(group), restartsMax: -1, doc: doc, total: total, totalPath: at}
		l.gang.queue(l.queueOf(doc, o.Labels, o.CreationTimestamp), a)
		if err != nil || total < 1 || total > podsMax {
			return []error{doc.problem(at, "want the number of pods of the group %q, from 1 to %d, got %q", group, podsMax,
				o.Annotations[kube.AnnotationPodGroupTotal])}
		}
		return nil
	})
}

// checkGangs returns errors for inconsistent gangs: a pod group with missing pods, or members with
// different running times or releases.
func (sc *Scenario) checkGangs() []error {
	var errs []error
	first, pods := map[string]*load{}, map[string]int{}
	for i := range sc.loads {
		if l := &sc.loads[i]; l.gang != nil {
			pods[l.gang.name] += int(l.Job.Pods)
		}
	}
	for i := range sc.loads {
		l := &sc.loads[i]
		if l.gang == nil {
			continue
		}
		g := l.gang
		if g.total != 0 && g.total != pods[g.name] {
			errs = append(errs, g.doc.problem(g.totalPath, "the group %s has a size of %d pods, but the file has %d", g.name,
				g.total, pods[g.name]))
		}
		f := first[g.name]
		if f == nil {
			first[g.name] = l
			continue
		}
		if f.gang.doc.kind() != g.doc.kind() {
			if sc.loads[i-1].gang != nil && sc.loads[i-1].gang.doc == g.doc {
				continue // another job of the same JobSet
			}
			errs = append(errs, g.doc.problem([]string{"metadata", "name"},
				"the gang %s of this %s has the same name as the gang of a %s, %s",
				g.name, g.doc.kind(), f.gang.doc.kind(), f.gang.doc.place(g.doc)))
			continue
		}
		if f.Job.Work != l.Job.Work || f.Job.Checkpoint != l.Job.Checkpoint || f.Job.Deadline != l.Job.Deadline ||
			!slices.Equal(f.listed, l.listed) {
			errs = append(errs, g.doc.problem([]string{"metadata", "annotations"},
				"%s and %s belong to the gang %s and differ in %s, %s, %s or %s", f.Name, l.Name, g.name,
				kube.AnnotationDuration, kube.AnnotationCheckpoint, kube.AnnotationDeadline, AnnotationReleases))
		}
	}
	return errs
}

// sizeGangs sets the gang size in each template of a gang.
func (sc *Scenario) sizeGangs() {
	queues := sc.queueSetup()
	for _, g := range sc.gangs() {
		for _, w := range g.Workloads {
			sc.templates[w].Gang = g.Size
			if queues == nil {
				continue
			}
			for _, v := range queues.Of[w].Variants {
				sc.templates[v.Workload].Gang = g.Size
			}
		}
	}
}

// gangs returns the gangs of the loads, ascending by name. The loads must be numbered.
func (sc *Scenario) gangs() []Gang {
	var all []Gang
	for i := range sc.loads {
		l := &sc.loads[i]
		if l.gang == nil {
			continue
		}
		k := slices.IndexFunc(all, func(g Gang) bool { return g.Name == l.gang.name })
		if k < 0 {
			k = len(all)
			all = append(all, Gang{Name: l.gang.name, RestartsMax: l.gang.restartsMax, ReadyTimeout: l.gang.ready,
				RecoveryTimeout: l.gang.recovery})
		}
		all[k].Workloads = append(all[k].Workloads, l.ID)
		all[k].Size += l.Job.Pods
	}
	slices.SortFunc(all, func(a, b Gang) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
