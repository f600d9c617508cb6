package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler"
	preemptexpectations "sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/routine"
	utiltesting "sigs.k8s.io/kueue/pkg/util/testing"
	"sigs.k8s.io/kueue/pkg/util/wait"
	"sigs.k8s.io/kueue/pkg/workload"
)

// Kueue runs its cycles in a loop only; these are one cycle, and how it writes admissions.
//
//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(s *scheduler.Scheduler, ctx context.Context) wait.SpeedSignal

//go:linkname setAdmissionRoutineWrapper sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).setAdmissionRoutineWrapper
func setAdmissionRoutineWrapper(s *scheduler.Scheduler, w routine.Wrapper)

// A realKueue is Kueue without its controllers, which realKueue acts for (pkg/controller/core).
type realKueue struct {
	client    client.Client
	clock     *testingclock.FakeClock
	cache     *schdcache.Cache
	queues    *qcache.Manager
	requeuer  interface{ ProcessRequeues(context.Context) int }
	scheduler *scheduler.Scheduler
	stopped   map[kueue.ClusterQueueReference]bool
	writes    sync.WaitGroup
	seen      map[string]kueue.Workload // as the controllers last saw them
	problem   error
}

func newReal(ctx context.Context, st *state) (*realKueue, error) {
	r := &realKueue{clock: testingclock.NewFakeClock(start), stopped: map[kueue.ClusterQueueReference]bool{},
		seen: map[string]kueue.Workload{}}
	var now []kueue.Workload
	for i := range st.Workloads {
		if w := &st.Workloads[i]; !st.later(w.Name) {
			now = append(now, *w.DeepCopy())
		}
	}
	r.client = utiltesting.NewClientBuilder().
		WithLists(&kueue.WorkloadList{Items: now}).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}).
		WithStatusSubresource(&kueue.Workload{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: utiltesting.TreatSSAAsStrategicMerge}).
		Build()
	r.cache = schdcache.New(r.client)
	expected := preemptexpectations.New()
	r.queues, r.requeuer = qcache.NewManagerForUnitTestsWithRequeuer(r.client, r.cache,
		qcache.WithPreemptionExpectations(expected))
	if err := r.configure(ctx, st); err != nil {
		return nil, err
	}
	r.scheduler = scheduler.New(r.queues, r.cache, r.client, &utiltesting.EventRecorder{}, scheduler.WithClock(nil, r.clock),
		scheduler.WithPreemptionExpectations(expected))
	setAdmissionRoutineWrapper(r.scheduler, routine.NewWrapper(func() { r.writes.Add(1) }, r.writes.Done))
	return r, r.observe(ctx)
}

// configure adds the objects of a state, from which Kueue takes the workloads that there are.
func (r *realKueue) configure(ctx context.Context, st *state) error {
	for _, q := range st.localQueues() {
		if err := errors.Join(r.client.Create(ctx, q.DeepCopy()), r.queues.AddLocalQueue(ctx, &q)); err != nil {
			return err
		}
	}
	for i := range st.Flavors {
		r.cache.AddOrUpdateResourceFlavor(logr.Discard(), st.Flavors[i].DeepCopy())
	}
	for i := range st.Queues {
		q := st.Queues[i].DeepCopy()
		if err := errors.Join(r.cache.AddClusterQueue(ctx, q), r.queues.AddClusterQueue(ctx, q)); err != nil {
			return err
		}
		r.stopped[kueue.ClusterQueueReference(q.Name)] = q.Spec.StopPolicy != nil && *q.Spec.StopPolicy != kueue.None
	}
	for i := range st.Cohorts {
		c := st.Cohorts[i].DeepCopy()
		if err := r.cache.AddOrUpdateCohort(c); err != nil {
			return err
		}
		r.queues.AddOrUpdateCohort(ctx, c)
	}
	r.requeuer.ProcessRequeues(ctx)
	return nil
}

// observe does what the controllers do for the workloads that changed. Kueue's Pending condition
// alone changes nothing: that its event may make a workload forget the flavors that it tried depends
// on when it arrives.
func (r *realKueue) observe(ctx context.Context) error {
	var all kueue.WorkloadList
	if err := r.client.List(ctx, &all); err != nil {
		return err
	}
	for i := range all.Items {
		w := &all.Items[i]
		before, known := r.seen[w.Name]
		had, has := known && workload.HasQuotaReservation(&before), workload.HasQuotaReservation(w)
		switch key := workload.Key(w); {
		case known && !had && has:
			r.queues.DeleteWorkload(logr.Discard(), key)
			r.cache.AddOrUpdateWorkload(logr.Discard(), w.DeepCopy())
		case known && has && !workload.IsEvicted(&before) && workload.IsEvicted(w):
			r.cache.AddOrUpdateWorkload(logr.Discard(), w.DeepCopy())
		}
		r.seen[w.Name] = *w
	}
	return nil
}

// cycle runs one cycle, unless no workload waits to be tried, for which Kueue would wait.
func (r *realKueue) cycle(ctx context.Context) error {
	r.clock.Step(time.Second)
	waits := false
	for queue, of := range r.queues.Dump() {
		waits = waits || len(of) > 0 && !r.stopped[queue]
	}
	if !waits {
		return nil
	}
	schedule(r.scheduler, ctx)
	r.writes.Wait()
	return r.observe(ctx)
}

func (r *realKueue) get(ctx context.Context, name string) (*kueue.Workload, error) {
	var w kueue.Workload
	return &w, r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &w)
}

// submit creates a workload.
func (r *realKueue) submit(ctx context.Context, w *kueue.Workload) error {
	if err := r.client.Create(ctx, w.DeepCopy()); err != nil {
		return err
	}
	made, err := r.get(ctx, w.Name)
	if err != nil {
		return err
	}
	r.seen[w.Name] = *made
	return r.queues.AddOrUpdateWorkload(logr.Discard(), made)
}

// finish deletes a workload.
func (r *realKueue) finish(ctx context.Context, name string) error {
	w, err := r.get(ctx, name)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil {
		return nil
	}
	key := workload.Key(w)
	if err := r.client.Delete(ctx, w); err != nil {
		return err
	}
	delete(r.seen, name)
	r.queues.DeleteWorkload(logr.Discard(), key)
	r.queues.QueueAssociatedInadmissibleWorkloadsAfter(ctx, key, func() {
		r.problem = errors.Join(r.problem, r.cache.DeleteWorkload(logr.Discard(), key))
	})
	r.requeuer.ProcessRequeues(ctx)
	return r.problem
}

// requeue takes the quota of a workload that is being evicted.
func (r *realKueue) requeue(ctx context.Context, name string) error {
	w, err := r.get(ctx, name)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if !workload.IsEvicted(w) || !workload.HasQuotaReservation(w) {
		return nil
	}
	workload.UnsetQuotaReservationWithCondition(w, "Pending", "evicted", r.clock.Now())
	if err := r.client.Status().Update(ctx, w); err != nil {
		return err
	}
	r.seen[name] = *w
	key := workload.Key(w)
	r.queues.QueueAssociatedInadmissibleWorkloadsAfter(ctx, key, func() {
		r.problem = errors.Join(r.problem, r.cache.DeleteWorkload(logr.Discard(), key),
			r.queues.AddOrUpdateWorkloadWithoutLock(logr.Discard(), w.DeepCopy()))
	})
	r.requeuer.ProcessRequeues(ctx)
	return r.problem
}

// report describes every workload, by name.
func (r *realKueue) report() map[string]string {
	out, parked := map[string]string{}, map[workload.Reference]bool{}
	for _, of := range r.queues.DumpInadmissible() {
		for _, key := range of {
			parked[key] = true
		}
	}
	for name, w := range r.seen {
		switch {
		case !workload.HasQuotaReservation(&w) && parked[workload.Key(&w)]:
			out[name] = "parked"
		case !workload.HasQuotaReservation(&w):
			out[name] = "waits"
		case workload.IsEvicted(&w):
			out[name] = "evicted: " + meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPreempted).Reason
		default:
			out[name] = "admitted:" + flavorsOf(w.Status.Admission)
		}
	}
	return out
}

// message returns why Kueue says that a workload is pending.
func (r *realKueue) message(name string) string {
	w := r.seen[name]
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved); c != nil && c.Status != metav1.ConditionTrue {
		return "; " + c.Message
	}
	return ""
}

// flavorsOf prints the flavors of an admission, by pod set and resource.
func flavorsOf(a *kueue.Admission) (text string) {
	for _, set := range a.PodSetAssignments {
		var parts []string
		for r, f := range set.Flavors {
			parts = append(parts, fmt.Sprintf("%s=%s", r, f))
		}
		slices.Sort(parts)
		text += fmt.Sprintf(" %v", parts)
	}
	return text
}
