package scenarios

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// The labels and annotations of Kueue that are read.
const (
	labelQueue         = "kueue.x-k8s.io/queue-name"
	annotationReadyMax = "kueue.x-k8s.io/wait-for-pods-ready" // JSON
)

// queueTimeout is how long Kueue waits by default for all pods of what it admitted
// to be ready, and again after one was lost, before it evicts and requeues it
// (Kueue's documentation, "Setup All-or-nothing with ready Pods": timeout and
// recoveryTimeout of waitForPodsReady).
const queueTimeout = 30 * time.Minute

// A gangLoad is what a load says of the gang that it belongs to.
type gangLoad struct {
	name            string
	restartsMax     int32 // below zero without end
	ready, recovery time.Duration
	total           int // pods that the group is said to have; 0 where nothing is said
	doc             *document
	totalPath       []string
}

// gangOfJob returns the gang of a job on its own: all of its pods where these have
// a rank each and run at once; see [kube.Ranked]. Kueue's queue, if it has one,
// bounds how long it waits.
func gangOfJob(doc *document, l *load, s *batchv1.JobSpec, labels map[string]string, a *annotations) {
	queued := labels[labelQueue] != ""
	l.suspended = l.suspended && !queued // Kueue lets it continue
	if !kube.Ranked(s) {
		return
	}
	l.gang = &gangLoad{name: l.Name, restartsMax: -1, doc: doc}
	l.gang.queue(queued, a)
}

// queue bounds how long a gang waits for its pods where Kueue admits it.
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

// readPodObject reads a plain pod. One of a group of Kueue's is a job of one pod that belongs to a
// gang.
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
		l.gang.queue(o.Labels[labelQueue] != "", a)
		if err != nil || total < 1 || total > podsMax {
			return []error{doc.problem(at, "want the number of pods of the group %q, from 1 to %d, got %q", group, podsMax,
				o.Annotations[kube.AnnotationPodGroupTotal])}
		}
		return nil
	})
}

// checkGangs refuses gangs whose parts do not go together: pods that are missing
// from a group, and pods that work for different times or are released at
// different ones.
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

// sizeGangs notes in each template how many pods its gang has.
func (sc *Scenario) sizeGangs() {
	for _, g := range sc.gangs() {
		for _, w := range g.Workloads {
			sc.templates[w].Gang = g.Size
		}
	}
}

// gangs returns the gangs of the loads, ascending by name. Loads are numbered.
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
