package cluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A stream is the source of one kind of object.
type stream struct {
	name string

	// synced reports whether all initial objects have been handled.
	synced func() bool

	// version returns the last version of the stream; nil if it is not known.
	version func() string

	// heard is the last version that was observed, and at the time at which it was first observed.
	heard string
	at    policy.Time
}

// A streamTable tracks how current the objects of each kind are.
type streamTable struct {
	clock *snapshotClock
	max   time.Duration // Config.DataMax
	all   []*stream
}

// SetupWithManager subscribes the observer to all objects that it reads. Every replica does so,
// whether it leads or not.
func (o *Observer) SetupWithManager(mgr manager.Manager) error {
	return o.Follow(context.Background(), mgr.GetCache())
}

// Follow subscribes the observer to all objects in c, including future ones.
func (o *Observer) Follow(ctx context.Context, c cache.Informers) error {
	x, w := o.work, o.work.workloads
	for _, err := range []error{
		follow(ctx, o, c, "nodes", &corev1.Node{}, o.nodes.set, o.nodes.drop),
		follow(ctx, o, c, "pods", &corev1.Pod{}, x.pods.set, x.pods.drop),
		follow(ctx, o, c, "namespaces", &corev1.Namespace{}, x.namespaces.set, x.namespaces.drop),
		follow(ctx, o, c, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, x.volumes.setClaim, x.volumes.dropClaim),
		follow(ctx, o, c, "persistentvolumes", &corev1.PersistentVolume{}, x.volumes.setVolume, x.volumes.dropVolume),
		follow(ctx, o, c, "csinodes", &storagev1.CSINode{}, o.limits.set, o.limits.drop),
		follow(ctx, o, c, "replicasets", &appsv1.ReplicaSet{}, w.setReplicaSet, w.dropReplicaSet),
		follow(ctx, o, c, "deployments", &appsv1.Deployment{}, w.setDeployment,
			forgets[*appsv1.Deployment](w, policy.KindDeployment)),
		follow(ctx, o, c, "statefulsets", &appsv1.StatefulSet{}, w.setStatefulSet,
			forgets[*appsv1.StatefulSet](w, policy.KindStatefulSet)),
		follow(ctx, o, c, "daemonsets", &appsv1.DaemonSet{}, w.setDaemonSet,
			forgets[*appsv1.DaemonSet](w, policy.KindDaemonSet)),
		follow(ctx, o, c, "jobs", &batchv1.Job{}, w.setJob, forgets[*batchv1.Job](w, policy.KindJob)),
		follow(ctx, o, c, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, x.pdbs.set, x.pdbs.drop),
		follow(ctx, o, c, "priorityclasses", &schedulingv1.PriorityClass{}, x.priorities.set, x.priorities.drop),
		follow(ctx, o, c, "capacitypools", &v1alpha1.CapacityPool{}, o.pools.set, o.pools.drop),
		follow(ctx, o, c, "gpubudgets", &v1alpha1.GPUBudget{}, o.budgets.set, o.budgets.drop),
	} {
		if err != nil {
			return err
		}
	}
	return o.followClaims(ctx, c)
}

// followClaims subscribes the observer to resource claims if the API server supports the version of
// Kubernetes 1.34 and later.
func (o *Observer) followClaims(ctx context.Context, c cache.Informers) error {
	t := o.work.claims
	err := follow(ctx, o, c, "resourceclaims", &resourcev1.ResourceClaim{}, t.setClaim, t.dropClaim)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return follow(ctx, o, c, "resourceslices", &resourcev1.ResourceSlice{}, t.setSlice, t.dropSlice)
}

// follow calls set and drop, under the lock, for the objects that the informer of like delivers.
func follow[T client.Object](ctx context.Context, o *Observer, c cache.Informers, name string, like T, set,
	drop func(T)) error {
	informer, err := c.GetInformer(ctx, like, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %s: %w", name, err)
	}
	s := &stream{name: name}
	handle := func(do func(T)) func(any) {
		return func(x any) {
			if gone, ok := x.(toolscache.DeletedFinalStateUnknown); ok {
				x = gone.Obj
			}
			obj, ok := x.(T)
			if !ok {
				return
			}
			heard := o.clock.wall() // before waiting for a snapshot that is being built
			o.mu.Lock()
			defer o.mu.Unlock()
			s.at, o.clock.heard = heard, heard
			do(obj)
		}
	}
	reg, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: handle(set), DeleteFunc: handle(drop),
		UpdateFunc: func(_, x any) { handle(set)(x) },
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", name, err)
	}
	s.synced = reg.HasSynced
	if v, ok := informer.(interface{ LastSyncResourceVersion() string }); ok {
		s.version = v.LastSyncResourceVersion
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams.all = append(o.streams.all, s)
	return nil
}

// late returns the name of a stream that is not yet synced; empty if all are.
func (o *Observer) late() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streams.late()
}

// Stalled returns the kinds of object that had no update for longer than Config.DataMax, as of the
// last snapshot.
func (o *Observer) Stalled() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.streams.stalled()
}

// Await waits until all initial objects have been handled, and reads most of them. It returns an
// error if ctx ends first.
func (o *Observer) Await(ctx context.Context) error {
	for {
		late := o.late()
		if late == "" {
			o.readAhead()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reading %s of the cluster: %w", late, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// late returns the name of a stream that is not yet synced; empty if all are.
func (t *streamTable) late() string {
	for _, s := range t.all {
		if !s.synced() {
			return s.name
		}
	}
	return ""
}

// sources returns the time of the last update of each kind of object. The API server advances the
// version of a live stream about once a minute, even without changes. A stream whose version does
// not change for longer than max is therefore disconnected, and stale.
func (t *streamTable) sources() []policy.Source {
	all := make([]policy.Source, len(t.all))
	for i, s := range t.all {
		if s.version == nil {
			s.at = t.clock.now
		} else if v := s.version(); v == "" || v != s.heard || s.at == 0 {
			s.heard, s.at = v, t.clock.now
		}
		all[i] = policy.Source{Name: s.name, At: min(s.at, t.clock.now), Stale: t.silent(s)}
	}
	return all
}

// silent reports whether s had no update for longer than max.
func (t *streamTable) silent(s *stream) bool { return t.clock.now.Sub(s.at) > t.max }

// stalled returns the kinds of object that had no update for longer than max.
func (t *streamTable) stalled() []string {
	var names []string
	for _, s := range t.all {
		if t.silent(s) {
			names = append(names, s.name)
		}
	}
	return names
}
