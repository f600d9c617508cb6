package capture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Options control how a snapshot is captured.
type Options struct {
	// Name is the name of the scenario.
	Name string

	// Pools and GPUBudgets are the manifests of the cluster, where known. A snapshot alone lists
	// the markets of a pool but not the rules that allow them.
	Pools      []v1alpha1.CapacityPool
	GPUBudgets []v1alpha1.GPUBudget

	// NodePools are the Karpenter NodePools, where they may be read.
	NodePools []karpv1.NodePool

	// Unread maps the name of a NodePool that could not be read to the reason.
	Unread map[string]string

	// NodeClasses are the EC2NodeClasses, the NodeClasses of EKS Auto Mode and the GCENodeClasses,
	// where they may be read.
	NodeClasses []unstructured.Unstructured

	// Apart maps the name of a node that is left out to the reason.
	Apart map[string]string

	// Queues are the objects of Kueue, where they may be read, and Queued maps "namespace/name" of a
	// Job to its queue. A snapshot alone contains neither.
	Queues []unstructured.Unstructured
	Queued map[string]Queued

	// DoNotDisrupt maps "namespace/name" of a pod to its annotation [kube.AnnotationDoNotDisrupt].
	// A snapshot alone contains only which pods are protected at its time.
	DoNotDisrupt map[string]string

	// Instances maps the name of a node to its instance ID at the provider.
	Instances map[string]string

	// Provider is the provider of nodes that have no market, and Capacity determines which of them
	// are Spot nodes.
	Provider string
	Capacity kube.CapacityResolver

	// JobDuration is the running time of jobs that do not state one.
	JobDuration time.Duration

	// Priced leaves out nodes whose on-demand price is not in the catalog. It is for synthetic
	// prices.
	Priced bool

	// OnDemand starts on-demand nodes instead of the cluster's Spot nodes.
	OnDemand bool

	// History is what happened before the snapshot, or nil to capture only the snapshot. With a
	// history, the scenario repeats what the cluster did, under the rules that it has now.
	History *history.History

	// Anonymise replaces every name that a person chose.
	Anonymise bool
}

// A Captured is a captured cluster: a scenario that has no prices yet.
type Captured struct {
	// Nodes, Pools, Workloads and Pods are the numbers of captured objects, and Spot is the number
	// of Spot nodes.
	Nodes, Spot, Pools, Workloads, Pods int

	// Assumed lists the values that the snapshot does not have and that were assumed. Left lists
	// what the scenario omits from the snapshot.
	Assumed, Left []string

	name        string
	at          policy.Time // time of the snapshot
	seeds       []seed
	seen        []seed // with nodes that were launched later
	commitments []commitment
	objects     []any
	pools       []v1alpha1.CapacityPool // with defaults and their original names
	own         []*ownPool
}

// A source is a snapshot that is being captured, with the notes made so far.
type source struct {
	s     *policy.Snapshot
	o     *Options
	names *names
	out   *Captured

	// queues are those of Kueue, nil without any. admitted counts the jobs whose pods were captured
	// without what Kueue added to them.
	queues   *queueSet
	admitted int

	// left maps a reason to the number of objects that were left out for it.
	left map[string]int
}

// Take makes a scenario of s. It returns an error if nothing could be simulated, such as for a
// cluster without a node of an instance type in the catalog.
func Take(s *policy.Snapshot, o Options) (*Captured, error) {
	c := &source{s: s, o: &o, names: newNames(o.Anonymise), out: &Captured{name: o.Name, at: s.Now},
		left: map[string]int{}}
	pools := &poolSet{source: c, unread: map[string]*unreadPool{}}
	for name, why := range o.Unread {
		pools.unread[name] = &unreadPool{why: why}
	}
	if h := o.History; h != nil {
		c.s, pools.began = withNodes(s, h)
		c.out.Assumed = append(c.out.Assumed, h.Uncertain...)
	}
	c.readQueues()
	pools.placeNodes()
	if len(pools.all) == 0 {
		return nil,
			fmt.Errorf("nothing can be bought: there is neither a CapacityPool nor a node of a known instance type%s",
				c.reasons())
	}
	pools.labelPools()
	manifests := pools.manifests()
	w := &workWriter{source: c, nodes: pools, pods: podWriter{c, map[string]priorityClass{}}, taken: map[string]bool{},
		pdbs: map[policy.PDBID]bool{}, then: map[string][]*load{}}
	work := w.workloads()
	if len(work) == 0 {
		return nil, fmt.Errorf("nothing is wanted: there is no workload with pods on nodes that are captured%s", c.reasons())
	}
	pools.checkSelectors()
	c.out.objects = slices.Concat(manifests, w.pods.priorityClasses(), c.queues.manifests(c), work, w.disruptionBudgets(), c.gpuBudgets())
	c.out.seeds, c.out.seen, c.out.commitments = pools.seeds(w.onNodes(), false), pools.seeds(nil,
		true), slices.Concat(c.commitmentsOf(), pools.paidFor())
	c.out.Left = append(c.out.Left, c.reasonList()...)
	return c.out, nil
}

// leave records that n objects are left out; format is the reason.
func (c *source) leave(n int, format string, args ...any) {
	c.left[fmt.Sprintf(format, args...)] += n
}

func (c *source) assume(format string, args ...any) {
	c.out.Assumed = append(c.out.Assumed, fmt.Sprintf(format, args...))
}

// reasonList returns what was left out and why, the most frequent reason first.
func (c *source) reasonList() []string {
	var all []string
	for why := range c.left {
		all = append(all, why)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(c.left[b], c.left[a]), cmp.Compare(a, b)) })
	for i, why := range all {
		all[i] = fmt.Sprintf("%d %s", c.left[why], why)
	}
	return all
}

func (c *source) reasons() string {
	all := slices.Concat(c.out.Left, c.reasonList())
	if len(all) == 0 {
		return ""
	}
	return "; omitted: " + strings.Join(all, "; ")
}
