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

// Options say how a snapshot is read.
type Options struct {
	// Name is that of the scenario.
	Name string

	// Pools and GPUBudgets are the manifests of the cluster where they are known. A
	// snapshot alone says of a pool which markets it buys in and not why.
	Pools      []v1alpha1.CapacityPool
	GPUBudgets []v1alpha1.GPUBudget

	// NodePools are those of Karpenter, where they may be read.
	NodePools []karpv1.NodePool

	// Unread says by the name of a NodePool why it could not be read.
	Unread map[string]string

	// NodeClasses are the EC2NodeClasses, and the NodeClasses of EKS Auto Mode, where they may be read.
	NodeClasses []unstructured.Unstructured

	// Apart says by the name of a node why it is left out.
	Apart map[string]string

	// DoNotDisrupt are the annotations [kube.AnnotationDoNotDisrupt] of pods, by "namespace/name".
	// A snapshot alone knows which pods they protect at its time.
	DoNotDisrupt map[string]string

	// Instances are what their provider calls nodes, by their names.
	Instances map[string]string

	// Provider sells the nodes that have no market, and Capacity distinguishes Spot nodes among
	// them.
	Provider string
	Capacity kube.CapacityResolver

	// JobDuration is the running time of jobs that state none.
	JobDuration time.Duration

	// Priced leaves out nodes whose price on demand the catalog does not have. It is for
	// prices that are drawn.
	Priced bool

	// OnDemand starts with on-demand nodes in place of the cluster's Spot nodes.
	OnDemand bool

	// History is what went on before the snapshot, nil for a still picture: the
	// scenario is then what the cluster did, by the rules that it has now.
	History *history.History

	// Anonymise replaces every name that people chose.
	Anonymise bool
}

// A Captured is a cluster as a scenario that has no prices yet.
type Captured struct {
	// Nodes, Pools, Workloads and Pods count what is in it, and Spot the nodes that
	// are spot.
	Nodes, Spot, Pools, Workloads, Pods int

	// Assumed says what the snapshot does not have and was chosen, Left what of the
	// snapshot is not in the scenario.
	Assumed, Left []string

	name        string
	at          policy.Time // of the snapshot
	seeds       []seed
	seen        []seed // and those of later
	commitments []commitment
	objects     []any
	pools       []v1alpha1.CapacityPool // with defaults, and their own names
	own         []*ownPool
}

// A source is a snapshot being read, with what there is to say of the reading.
type source struct {
	s     *policy.Snapshot
	o     *Options
	names *names
	out   *Captured

	// left counts what is left out, by why.
	left map[string]int
}

// Take makes a scenario of s. It fails where nothing could be run: a cluster none of
// whose nodes is of a type that the catalog knows.
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
	c.out.objects = slices.Concat(manifests, w.pods.priorityClasses(), work, w.disruptionBudgets(), c.gpuBudgets())
	c.out.seeds, c.out.seen, c.out.commitments = pools.seeds(w.onNodes(), false), pools.seeds(nil,
		true), slices.Concat(c.commitmentsOf(), pools.paidFor())
	c.out.Left = append(c.out.Left, c.reasonList()...)
	return c.out, nil
}

// leave counts n things that are left out.
func (c *source) leave(n int, format string, args ...any) {
	c.left[fmt.Sprintf(format, args...)] += n
}

func (c *source) assume(format string, args ...any) {
	c.out.Assumed = append(c.out.Assumed, fmt.Sprintf(format, args...))
}

// reasonList says what was left out, what is most first.
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
