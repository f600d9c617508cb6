package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/karpenter"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A reading is a kind of object that is listed once.
type reading struct {
	name string // plural name with the API group, such as "deployments.apps"
	list client.ObjectList

	// without describes the consequence if the kind may not be listed. If empty, the capture fails.
	without string
}

// readings returns the kinds that an observer lists.
func readings() []reading {
	return []reading{
		{"nodes", &corev1.NodeList{}, ""},
		{"pods", &corev1.PodList{}, ""},
		{"namespaces", &corev1.NamespaceList{}, "terms of affinity that select namespaces by label select none"},
		{"persistentvolumeclaims", &corev1.PersistentVolumeClaimList{}, "every claim is taken for a volume of one zone"},
		{"persistentvolumes", &corev1.PersistentVolumeList{}, "the zones of volumes are not known"},
		{"replicasets.apps", &appsv1.ReplicaSetList{}, "each ReplicaSet is a workload of its own"},
		{"deployments.apps", &appsv1.DeploymentList{}, "as many pods are wanted of a Deployment as it has"},
		{"statefulsets.apps", &appsv1.StatefulSetList{}, "as many pods are wanted of a StatefulSet as it has"},
		{"daemonsets.apps", &appsv1.DaemonSetList{}, "a DaemonSet is known by its pods alone"},
		{"jobs.batch", &batchv1.JobList{}, "what is left of jobs is what their pods show"},
		{"poddisruptionbudgets.policy", &policyv1.PodDisruptionBudgetList{}, "there are no disruption budgets"},
		{"priorityclasses.scheduling.k8s.io", &schedulingv1.PriorityClassList{}, "priorities are those that pods carry"},
		{"capacitypools.spotter.dev", &v1alpha1.CapacityPoolList{}, "pools are made of the nodes that there are"},
		{"nodepools.karpenter.sh", &karpv1.NodePoolList{}, "a NodePool allows the capacity types that its nodes have"},
		{"ec2nodeclasses.karpenter.k8s.aws", untyped("karpenter.k8s.aws", "v1", "EC2NodeClass"),
			"EC2NodeClasses have their default settings"},
		{"nodeclasses.eks.amazonaws.com", untyped("eks.amazonaws.com", "v1", "NodeClass"),
			"NodeClasses have their default settings"},
		{"gcenodeclasses.karpenter.k8s.gcp", untyped("karpenter.k8s.gcp", "v1alpha1", "GCENodeClass"),
			"GCENodeClasses have their default settings"},
		{"gpubudgets.spotter.dev", &v1alpha1.GPUBudgetList{}, "there are no accelerator budgets"},
		{"resourceflavors." + groupKueue, untyped(groupKueue, kueueVersions[0], kindFlavor), withoutQueues},
		{"clusterqueues." + groupKueue, untyped(groupKueue, kueueVersions[0], kindClusterQueue), withoutQueues},
		{"localqueues." + groupKueue, untyped(groupKueue, kueueVersions[0], kindLocalQueue), withoutQueues},
		{"cohorts." + groupKueue, untyped(groupKueue, kueueVersions[0], kindCohort),
			"cohorts of Kueue have neither quota nor parents"},
		{"workloadpriorityclasses." + groupKueue, untyped(groupKueue, kueueVersions[0], kindPriority),
			"queued jobs have the priority of their pods"},
	}
}

const withoutQueues = "jobs in queues of Kueue start at once"

// kueueVersions are the versions of Kueue's API in the order in which they are tried. A Cohort is
// v1alpha1 before Kueue 0.13.
var kueueVersions = [...]string{"v1beta2", "v1beta1", "v1alpha1"}

// untyped returns an empty list of objects of other projects, which are read as unstructured objects.
func untyped(group, version, kind string) *unstructured.UnstructuredList {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	return &list
}

// read lists the kind, one of Kueue in the first of its versions that the cluster has.
func (x *reading) read(ctx context.Context, c client.Reader) error {
	err := c.List(ctx, x.list)
	kind := x.list.GetObjectKind().GroupVersionKind()
	for i := 1; i < len(kueueVersions) && kind.Group == groupKueue && isAbsent(err); i++ {
		kind.Version = kueueVersions[i]
		x.list.GetObjectKind().SetGroupVersionKind(kind)
		err = c.List(ctx, x.list)
	}
	return err
}

// isAbsent reports whether err is that the cluster does not have a kind.
func isAbsent(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// Kinds returns the plural names of the kinds that are listed.
func Kinds() (out []string) {
	for _, x := range readings() {
		kind, _, _ := strings.Cut(x.name, ".")
		out = append(out, kind)
	}
	return out
}

// captureWait bounds the time for reading a cluster.
const captureWait = 2 * time.Minute

// runningCluster reads a cluster once and returns it as the controller would see it.
func runningCluster(ctx context.Context, p *cli.Program, f *captureFlags) (captureSource, error) {
	ctx, stop := context.WithTimeout(ctx, captureWait)
	defer stop()
	config, err := f.cluster.Config(p.Version)
	if err != nil {
		return captureSource{}, err
	}
	c, err := Read(ctx, config, &f.Options, p.Stderr)
	if err != nil {
		return captureSource{}, err
	}
	p.Warn(map[string]bool{}, c.Missing)
	return captureSource{snapshot: c.Snapshot, from: "the cluster at " + hostOf(config.Host, f.Anonymise) + " held"}, nil
}

// A Cluster is a running cluster that was read once.
type Cluster struct {
	Snapshot *policy.Snapshot

	// Missing lists the missing rights, each with its consequence, and objects and API versions
	// that could not be read completely.
	Missing []string

	// Installed reports whether the cluster has Spotter's custom resource definitions.
	Installed bool
}

// Read reads a cluster once, as the controller would see it. It sets the fields of o that the
// cluster states, and logs to log which objects cannot be used.
func Read(ctx context.Context, config *rest.Config, o *Options, log io.Writer) (*Cluster, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("reaching %s: %w", config.Host, err),
			"check that `kubectl get nodes` works with this kubeconfig")
	}
	return ReadBy(ctx, c, o, log)
}

// Scheme returns a scheme with the kinds that are read.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
		karpenter.AddToScheme(scheme))
}

// ReadBy is like [Read] with a given client.
func ReadBy(ctx context.Context, c client.Reader, o *Options, log io.Writer) (*Cluster, error) {
	read, err := readCluster(ctx, c, o)
	if err != nil {
		return nil, err
	}
	markets := livemarket.DefaultConfig()
	markets.Log = slog.New(slog.DiscardHandler) // the trace determines which markets exist
	book, err := livemarket.New(markets)
	if err != nil {
		return nil, err
	}
	view := cluster.DefaultConfig()
	view.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: untimed}))
	view.Provider, view.Capacity = o.Provider, o.Capacity
	observer, err := cluster.New(view, book)
	if err != nil {
		return nil, err
	}
	if err := observer.Follow(ctx, read); err != nil {
		return nil, err
	}
	if _, err := observer.Observe(ctx); err != nil { // the first observation adds the markets of the nodes to the book
		return nil, err
	}
	s, err := observer.Observe(ctx)
	if err != nil {
		return nil, err
	}
	return &Cluster{Snapshot: s, Missing: read.missing, Installed: read.installed}, nil
}

// untimed removes the time, since warnings of a command have none.
func untimed(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// hostOf returns the name of the API server for the head of a file.
func hostOf(host string, hide bool) string {
	if hide {
		return "an address of its own"
	}
	return host
}

// readCluster lists everything once. It records kinds that may not be listed as missing rights.
// Without nodes or pods it returns an error.
func readCluster(ctx context.Context, c client.Reader, f *Options) (*listed, error) {
	out := &listed{objects: map[reflect.Type][]client.Object{}}
	var missing []error
	for _, x := range readings() {
		err := x.read(ctx, c)
		if err != nil && !isAnswer(err) {
			if out.takeEach(ctx, c, x.list, f) == nil {
				continue
			}
		}
		switch {
		case isAbsent(err): // a kind that the cluster does not have
		case apierrors.IsForbidden(err) && x.without != "":
			out.missing = append(out.missing, fmt.Sprintf("the right to list %s is missing: %s", x.name, x.without))
		case apierrors.IsForbidden(err):
			missing = append(missing, fmt.Errorf("the right to list %s is missing: %w", x.name, err))
		case err != nil:
			return nil, cli.Invalid(fmt.Errorf("listing %s: %w", x.name, err),
				"check that `kubectl get nodes` works with this kubeconfig")
		}
		if _, ours := x.list.(*v1alpha1.CapacityPoolList); ours {
			out.installed = err == nil || apierrors.IsForbidden(err)
		}
		if err := out.take(x.list); err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil,
			cli.Invalid(errors.Join(missing...),
				"grant `list` on nodes and pods of all namespaces, as the ClusterRole view and one for nodes do")
	}
	out.fillDefaults(ctx, c)
	out.readBeta(ctx, c)
	out.state(f)
	return out, nil
}

// state sets the options that the objects state.
func (l *listed) state(f *Options) {
	f.Apart = l.apart()
	f.Instances = map[string]string{}
	for _, n := range objectsOf[*corev1.Node](l) {
		f.Instances[n.Name] = history.LastOf(n.Spec.ProviderID)
	}
	f.DoNotDisrupt = map[string]string{}
	for _, p := range objectsOf[*corev1.Pod](l) {
		if value := p.Annotations[kube.AnnotationDoNotDisrupt]; value != "" {
			f.DoNotDisrupt[p.Namespace+"/"+p.Name] = value
		}
	}
	for _, p := range objectsOf[*v1alpha1.CapacityPool](l) {
		f.Pools = append(f.Pools, *p)
	}
	for _, p := range objectsOf[*karpv1.NodePool](l) {
		f.NodePools = append(f.NodePools, *p)
	}
	for _, u := range objectsOf[*unstructured.Unstructured](l) {
		if u.GroupVersionKind().Group == groupKueue {
			f.Queues = append(f.Queues, *u)
		} else {
			f.NodeClasses = append(f.NodeClasses, *u)
		}
	}
	f.Queued = map[string]Queued{}
	for _, j := range objectsOf[*batchv1.Job](l) {
		if q, waits := queuedJob(j); waits {
			f.Queued[j.Namespace+"/"+j.Name] = q
		}
	}
	for _, b := range objectsOf[*v1alpha1.GPUBudget](l) {
		f.GPUBudgets = append(f.GPUBudgets, *b)
	}
}

// objectsOf returns the objects of a type.
func objectsOf[T client.Object](l *listed) (all []T) {
	for _, o := range l.objects[reflect.TypeFor[T]()] {
		all = append(all, o.(T)) //nolint:forcetypeassert // it is filed by its type
	}
	return all
}

// isAnswer reports whether err is a response of the API server: that the kind does not exist or may
// not be listed, or another status.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return meta.IsNoMatchError(err) || errors.As(err, &status)
}

// takeEach lists a kind whose list cannot be decoded, and keeps the objects that can. It records
// the errors of the others: for NodePools in f.Unread, since their nodes are left out too.
func (l *listed) takeEach(ctx context.Context, c client.Reader, list client.ObjectList, f *Options) error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	kinds, _, err := scheme.ObjectKinds(list)
	if err != nil {
		return err
	}
	var raw unstructured.UnstructuredList
	raw.SetGroupVersionKind(kinds[0])
	if err := c.List(ctx, &raw); err != nil {
		return err
	}
	kind := strings.TrimSuffix(kinds[0].Kind, "List")
	for i := range raw.Items {
		o, err := scheme.New(kinds[0].GroupVersion().WithKind(kind))
		if err != nil {
			return err
		}
		err = Decode(&raw.Items[i], o)
		name := raw.Items[i].GetName()
		switch x, ok := o.(client.Object); {
		case ok && err == nil:
			l.objects[reflect.TypeOf(x)] = append(l.objects[reflect.TypeOf(x)], x)
		case kind == "NodePool":
			if f.Unread == nil {
				f.Unread = map[string]string{}
			}
			f.Unread[name] = fmt.Sprintf("it cannot be read: %v", err)
		default:
			l.missing = append(l.missing, fmt.Sprintf("%s %s cannot be read and is skipped: %v", kind,
				strings.TrimPrefix(raw.Items[i].GetNamespace()+"/"+name, "/"), err))
		}
	}
	return nil
}

// Decode converts an unstructured object to o.
func Decode(u *unstructured.Unstructured, o runtime.Object) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, o)
}

// A listed is the result of listing a cluster. It implements informers that deliver each object
// once, for the kinds that an observer requests.
type listed struct {
	cache.Informers
	objects map[reflect.Type][]client.Object

	// missing lists the missing rights, and installed reports whether Spotter's custom resource
	// definitions are installed.
	missing   []string
	installed bool
}

func (l *listed) take(list client.ObjectList) error {
	return meta.EachListItem(list, func(x runtime.Object) error {
		o, ok := x.(client.Object)
		if !ok {
			return fmt.Errorf("a %T of a list is no object", x)
		}
		l.objects[reflect.TypeOf(o)] = append(l.objects[reflect.TypeOf(o)], o)
		return nil
	})
}

// GetInformer returns the informer of the kind of an object.
func (l *listed) GetInformer(_ context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer,
	error) {
	return &listInformer{objects: l.objects[reflect.TypeOf(of)]}, nil
}

// A listInformer is an informer that delivers a list as soon as a handler is added, and nothing
// after it.
type listInformer struct {
	cache.Informer
	objects []client.Object
}

// AddEventHandler delivers every object to h.
func (t *listInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	for _, o := range t.objects {
		h.OnAdd(o, true)
	}
	return t, nil
}

// HasSynced returns true, since the list is complete from the start.
func (t *listInformer) HasSynced() bool { return true }
