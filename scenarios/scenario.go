package scenarios

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Settings are the parts of a scenario that do not depend on prices.
type Settings struct {
	Name string

	// Digest is the SHA-256 of the scenario file. It is part of every run's hash.
	Digest [32]byte

	// Captured reports that the scenario was captured from a cluster. Deviation describes how much
	// a simulation of it deviates from the observed behaviour; empty if unknown.
	Captured  bool
	Deviation string

	// The run is metered from Start to Start+Duration, after a warm-up of WarmUp. A Start of 0
	// means the first time of the trace.
	Start            policy.Time
	Duration, WarmUp time.Duration

	// StartCluster is the cluster in which the warm-up starts.
	StartCluster StartCluster

	// ReadyGrace is the time for which pods missing after an increase of replicas do not count as
	// unserved.
	ReadyGrace time.Duration

	// Intensity multiplies reclaim rates and the frequency of shortages. Slots, if above zero,
	// replaces the drawn capacity limit of every market.
	Intensity float64
	Slots     int

	// OnDemandShortages makes on-demand launches of scarce types fail at times, according to a
	// model.
	OnDemandShortages bool

	// AzureAllocationFailures makes attempts to launch nodes of Azure fail for an exhausted quota or
	// a lack of capacity, according to a model.
	AzureAllocationFailures bool

	// GoogleNotice is the time from a notice to the reclaim of nodes of Google Cloud: 0, 30 s or
	// 120 s. Nil means that of [policy.NoticeLead].
	GoogleNotice *time.Duration

	// Karpenter is the version of Karpenter that manages Karpenter pools.
	Karpenter KarpenterVersion

	// Groups are the size limits of every Auto Scaling group that is not described.
	Groups GroupBounds

	// NodeFee is the cost per hour of a node in addition to its price, for pools that state no fee.
	NodeFee policy.Money

	// GPUBudgets limit the accelerators that pods may use, ascending by name. They are the same for
	// every policy.
	GPUBudgets []policy.Budget

	// Warnings describe settings that have no effect and objects that were left out, with the
	// reason.
	Warnings []string
}

// A Scenario is the content of a scenario file before it is bound to prices. It is immutable after
// it was loaded.
type Scenario struct {
	Settings

	// Trace is the file, folder or embedded trace that the scenario names. If it is empty, the
	// caller selects the trace.
	Trace string

	// Reserve is the minimum price of a node from an auction, per hour.
	Reserve policy.Money

	// CPUUtilisation is the average CPU use of a pod as a part of its CPU request, unless its
	// annotation states one. CPUCredits is the mode of burstable types.
	CPUUtilisation float64
	CPUCredits     CreditMode

	// Skipped lists in one line the objects that are not simulated; empty if all are.
	Skipped string

	ofNoCloud       int     // number of Nodes; see document.ofNoCloud
	unknown         []error // one error for each object of a kind that is not simulated
	reserveStated   bool    // false if Reserve is the default
	file            string
	statedIn        string // the file of the Scenario object
	pools           []pool
	classes         []*nodeClass
	overlays        []overlay
	nodes           []nodesSpec
	commitments     []policy.Commitment // ascending by name
	faults          []Fault
	faultsAt        []time.Duration // from Start, for each fault
	templates       []policy.Template
	loads           []load  // one for each template
	queues          *queues // nil without a ClusterQueue
	pdbs            []policy.PDB
	limitRanges     map[string][]*corev1.LimitRange // by namespace
	runtimeClasses  map[string]*nodev1.RuntimeClass
	notes           map[string][]string // names of workloads by the text of the warning
	priorities      map[string]kube.Priority
	defaultPriority kube.Priority
}

// A pool is a CapacityPool or a NodePool, with its document.
type pool struct {
	name string
	doc  *document
	base policy.Pool // its settings, without markets

	capacity *v1alpha1.CapacityPool // nil for a NodePool
	own      *ownPool               // nil for a CapacityPool
	group    *ScalingGroup          // nil except for a described Auto Scaling group
	disks    *nodeClass             // node class with the volumes of a CapacityPool's nodes, nil if unknown
}

// Load reads the embedded scenario with this name, or else the file at this path.
func Load(nameOrPath string) (*Scenario, error) {
	data, err := Source(nameOrPath)
	if err != nil {
		return nil, err
	}
	return ParseAt(nameOrPath, data)
}

// ParseAt reads a scenario from data as if it were the text of the embedded scenario with this name
// or of the file at this path.
func ParseAt(nameOrPath string, data []byte) (*Scenario, error) {
	file := nameOrPath
	if Embedded(nameOrPath) {
		file += ".yaml"
	}
	sc, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(sc.Trace) && !trace.IsEmbedded(sc.Trace) {
		sc.Trace = filepath.Join(filepath.Dir(sc.statedIn), sc.Trace)
	}
	return sc, nil
}

// Parse reads a scenario from data; file identifies it in errors. All errors are joined in the
// order of their lines.
func Parse(file string, data []byte) (*Scenario, error) {
	docs, err := split(file, data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, &FieldError{File: file, Line: 1, Problem: "the file holds no object"}
	}
	docs, notes, err := convertOld(docs)
	if err != nil {
		return nil, InOrder([]error{err})
	}
	sc := &Scenario{
		Settings: Settings{Digest: sha256.Sum256(data), Warnings: notes},
		file:     file,

		CPUUtilisation: kube.CPUUtilisation,

		priorities: kube.SystemPriorities(),
	}
	for i := range docs {
		if docs[i].ofNoCloud() {
			sc.ofNoCloud++
		}
	}
	docs, left, errs := sift(docs)
	sc.Skipped, sc.unknown = left.line(), left.unknown
	objects, more := decodeAll(docs)
	if errs = append(errs, more...); len(errs) > 0 {
		return nil, InOrder(errs)
	}
	left.warn(sc, ownersOf(docs))
	if errs := sc.read(objects); len(errs) > 0 {
		return nil, InOrder(errs)
	}
	sc.warnOfNotes()
	sc.order()
	sc.sizeGangs()
	sc.limits()
	return sc, nil
}

// Validate returns an error if a scenario that was read without errors cannot be run because it has
// no workloads or no pools.
func (sc *Scenario) Validate() error {
	switch {
	case len(sc.pools) == 0 && sc.ofNoCloud > 0:
		return fmt.Errorf("%s: %d of its Nodes are of types of no known price, and there is no CapacityPool and no NodePool that buys others: "+
			"costs cannot be compared, but `spotter schedule -f %s` places pods on these nodes", sc.file, sc.ofNoCloud, sc.file)
	case len(sc.pools) == 0:
		return fmt.Errorf("%s: there is no CapacityPool and no NodePool, so nothing can be bought", sc.file)
	case len(sc.templates) == 0:
		return fmt.Errorf("%s: there is no workload, so no pods are needed", sc.file)
	}
	return nil
}

// Strict returns an error that lists every object of a kind that is not simulated, or nil.
func (sc *Scenario) Strict() error { return InOrder(sc.unknown) }

// Commitments returns the reserved instances and savings plans, ascending by name.
func (sc *Scenario) Commitments() []policy.Commitment { return slices.Clone(sc.commitments) }

// Pools returns the pools of the manifests, ascending by name. They have no markets, since these
// depend on the trace.
func (sc *Scenario) Pools() []policy.Pool {
	pools := make([]policy.Pool, len(sc.pools))
	for i := range sc.pools {
		pools[i] = sc.pools[i].base
		pools[i].ID = policy.PoolID(i)
	}
	return pools
}

func (sc *Scenario) warn(format string, args ...any) {
	sc.Warnings = append(sc.Warnings, fmt.Sprintf(format, args...))
}

// note adds the name of a workload to the warning what, which applies to several workloads.
func (sc *Scenario) note(what, name string) {
	if sc.notes == nil {
		sc.notes = map[string][]string{}
	}
	sc.notes[what] = append(sc.notes[what], name)
}

func (sc *Scenario) warnOfNotes() {
	for _, what := range slices.Sorted(maps.Keys(sc.notes)) {
		sc.warn("%s: %s", what, some(sc.notes[what]))
	}
}

// An object is one decoded document.
type object struct {
	doc   *document
	value metav1.Object
}

// decodeAll decodes every document, and returns errors for documents with the same kind and name.
func decodeAll(docs []document) ([]object, []error) {
	var objects []object
	var errs []error
	fields := map[reflect.Type]map[string][]int{}
	firsts := map[string]*document{}
	for i := range docs {
		d := &docs[i]
		o, err := d.object(fields)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if o.value.GetName() == "" {
			o.value.SetName(d.name())
		}
		if o.value.GetName() == "" {
			errs = append(errs, d.problem([]string{"metadata", "name"}, "must be set"))
			continue
		}
		name := d.kind() + " " + o.value.GetName()
		if !kinds[d.kind()].cluster {
			name = d.kind() + " " + cmp.Or(o.value.GetNamespace(), "default") + "/" + o.value.GetName()
		}
		if first := firsts[name]; first != nil {
			errs = append(errs, d.problem([]string{"metadata", "name"}, "%s appears twice, first %s", name, first.place(d)))
			continue
		}
		firsts[name] = d
		objects = append(objects, o)
	}
	return objects, errs
}

// place describes the position of d, for an error about other.
func (d *document) place(other *document) string {
	if d.file != other.file {
		return fmt.Sprintf("in %s:%d", d.file, d.node.Line)
	}
	return fmt.Sprintf("on line %d", d.node.Line)
}

// ownersOf returns the set of keys of the objects that own one of docs.
func ownersOf(docs []document) map[string]bool {
	owners := map[string]bool{}
	for i := range docs {
		if kind, name, owned := docs[i].owner(); owned {
			owners[kind+" "+docs[i].qualified(name)] = true
		}
	}
	return owners
}

func (d *document) object(fields map[reflect.Type]map[string][]int) (object, error) {
	name := d.kind()
	k, ok := d.known()
	if !ok {
		return object{}, d.problem([]string{"kind"}, "%q is not read here%s%s", name, suggestion(name, kinds),
			newVersion(d.version()))
	}
	if v := d.version(); v != k.apiVersion && !slices.Contains(otherVersions[name], v) {
		return object{}, d.problem([]string{"apiVersion"}, "%q of a %s, want %q%s", v, name, k.apiVersion, newVersion(v))
	}
	value := k.make()
	dec := &decoder{doc: d, fields: fields, skipStatus: d.is == ""}
	err := dec.into(value)
	switch v := value.(type) {
	case *awsGroup:
		v.SetName(v.Name)
	case *eksGroup:
		v.SetName(v.Name)
	}
	return object{d, value}, err
}

// read sets the fields of sc from objects, in the order of their dependencies: priority classes,
// pools, workloads, budgets, and the Scenario last.
func (sc *Scenario) read(objects []object) []error {
	var errs []error
	managed, groups := managedBy(objects)
	for i := range objects {
		doc := objects[i].doc
		switch v := objects[i].value.(type) {
		case *awsGroup:
			errs = append(errs, sc.readGroup(doc, v, managed[v.Name])...)
		case *eksGroup:
			errs = append(errs, sc.readNodegroup(doc, v, groups)...)
		case *schedulingv1.PriorityClass:
			sc.readPriority(v)
		case *corev1.LimitRange:
			sc.readLimitRange(v)
		case *nodev1.RuntimeClass:
			sc.readRuntimeClass(v)
		case *v1alpha1.CapacityPool:
			errs = append(errs, sc.readCapacityPool(doc, v)...)
		case *nodePool:
			errs = append(errs, sc.readNodePool(doc, v)...)
		case *ec2NodeClass:
			errs = append(errs, sc.readNodeClass(doc, v)...)
		case *gceNodeClass:
			errs = append(errs, sc.readGCENodeClass(doc, v)...)
		case *eksNodeClass:
			errs = append(errs, sc.readEKSNodeClass(doc, v)...)
		case *nodeOverlay:
			errs = append(errs, sc.readNodeOverlay(doc, v)...)
		case *v1alpha1.GPUBudget:
			errs = append(errs, sc.readGPUBudget(doc, v)...)
		}
	}
	for i := range objects {
		errs = append(errs, sc.readLoad(&objects[i])...)
	}
	sc.readAuto()
	errs = append(errs, sc.readScalers(objects)...)
	errs = append(errs, sc.checkPoolNames()...)
	errs = append(errs, sc.resolveClasses()...)
	errs = append(errs, sc.checkGangs()...)
	errs = append(errs, sc.readQueues(objects)...)
	return append(errs, sc.readRest(objects)...)
}

func (sc *Scenario) readCapacityPool(doc *document, o *v1alpha1.CapacityPool) []error {
	var errs []error
	o.Default()
	for _, e := range o.Validate() {
		errs = append(errs, doc.problem(splitPath(e.Field), "%s", e.ErrorBody()))
	}
	sc.pools = append(sc.pools, pool{name: o.Name, doc: doc, base: o.Pool(), capacity: o})
	return errs
}

func (sc *Scenario) readGPUBudget(doc *document, o *v1alpha1.GPUBudget) []error {
	var errs []error
	o.Default()
	for _, e := range o.Validate() {
		errs = append(errs, doc.problem(splitPath(e.Field), "%s", e.ErrorBody()))
	}
	selector, err := kube.Selector(&o.Spec.Selector)
	if err != nil {
		errs = append(errs, doc.problem([]string{"spec", "selector"}, "%v", err))
	}
	sc.GPUBudgets = append(sc.GPUBudgets, o.Budget(cmp.Or(o.Namespace, "default"), selector))
	return errs
}

func (sc *Scenario) readLoad(o *object) []error {
	switch v := o.value.(type) {
	case *appsv1.Deployment:
		s := templated(policy.KindDeployment, &v.ObjectMeta, &v.Spec.Template, v.Spec.Selector)
		return sc.readService(o.doc, s, v.Spec.Replicas, nil)
	case *appsv1.StatefulSet:
		s := templated(policy.KindStatefulSet, &v.ObjectMeta, &v.Spec.Template, v.Spec.Selector)
		return sc.readService(o.doc, s, v.Spec.Replicas, v.Spec.VolumeClaimTemplates)
	case *appsv1.ReplicaSet:
		s := templated(policy.KindDeployment, &v.ObjectMeta, &v.Spec.Template, v.Spec.Selector)
		return sc.readService(o.doc, s, v.Spec.Replicas, nil)
	case *appsv1.DaemonSet:
		return sc.readDaemonSet(o.doc, v)
	case *batchv1.Job:
		return sc.readJob(o.doc, v)
	case *batchv1.CronJob:
		return sc.readCronJob(o.doc, v)
	case *jobSet:
		return sc.readJobSet(o.doc, v)
	case *corev1.Pod:
		return sc.readPodObject(o.doc, v)
	}
	return nil
}

// readScalers reads the objects that set the replicas of other workloads, and Rollouts, which may
// use the pod template of a Deployment.
func (sc *Scenario) readScalers(objects []object) (errs []error) {
	for i := range objects {
		if v, is := objects[i].value.(*rollout); is {
			errs = append(errs, sc.readRollout(objects[i].doc, v, objects)...)
		}
	}
	for i := range objects {
		switch v := objects[i].value.(type) {
		case *horizontalPodAutoscaler:
			errs = append(errs, sc.readHPA(objects[i].doc, v)...)
		case *scaledObject:
			errs = append(errs, sc.readScaledObject(objects[i].doc, v)...)
		}
	}
	for i := range sc.loads {
		if err := sc.loads[i].loadUnused; err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (sc *Scenario) readRest(objects []object) []error {
	var errs []error
	var seen *document
	for i := range objects {
		doc := objects[i].doc
		switch v := objects[i].value.(type) {
		case *policyv1.PodDisruptionBudget:
			errs = append(errs, sc.readPDB(doc, v)...)
		case *manifest:
			if seen != nil {
				errs = append(errs, doc.problem([]string{"kind"}, "a second Scenario, the first on line %d", seen.node.Line))
				continue
			}
			seen = doc
			errs = append(errs, v.apply(sc, doc)...)
		}
	}
	if seen == nil {
		errs = append(errs,
			&FieldError{File: sc.file, Line: 1, Problem: "there is no object of kind Scenario, which gives name and duration"})
	}
	return errs
}

func (sc *Scenario) readPriority(o *schedulingv1.PriorityClass) {
	p := kube.PriorityOf(o)
	sc.priorities[o.Name] = p
	if o.GlobalDefault {
		sc.defaultPriority = p
	}
}

func (sc *Scenario) readPDB(doc *document, o *policyv1.PodDisruptionBudget) []error {
	var errs []error
	b := kube.PDB(o, func(path []string, format string, args ...any) {
		errs = append(errs, doc.problem(path, format, args...))
	})
	b.Allowed, b.Healthy, b.Desired, b.Expected = 0, 0, 0, 0 // status of another cluster
	sc.pdbs = append(sc.pdbs, b)
	return errs
}

// limits warns of GPU budgets that select no workload.
func (sc *Scenario) limits() {
	for i := range sc.GPUBudgets {
		b := &sc.GPUBudgets[i]
		if !slices.ContainsFunc(sc.templates, func(t policy.Template) bool { return b.Counts(&t) > 0 }) {
			sc.warn("GPUBudget %s selects no workload that requests %s", b.Name, b.Resource)
		}
	}
}

// order sorts pools, workloads and budgets by name, numbers them, and records in each template the
// budgets that select it.
func (sc *Scenario) order() {
	slices.SortFunc(sc.pools, func(a, b pool) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(sc.templates, func(a, b policy.Template) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sc.loads, func(a, b load) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sc.pdbs, func(a, b policy.PDB) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(sc.GPUBudgets, func(a, b policy.Budget) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sc.templates {
		sc.templates[i].ID, sc.templates[i].Workload = policy.TemplateID(i), policy.WorkloadID(i)
		sc.loads[i].ID = policy.WorkloadID(i)
	}
	for i := range sc.pdbs {
		b := &sc.pdbs[i]
		b.ID = policy.PDBID(i)
		selected := false
		for j := range sc.templates {
			t := &sc.templates[j]
			if t.Namespace == b.Namespace && b.Selector.Matches(t.Labels) {
				t.PDBs = append(t.PDBs, b.ID)
				selected = true
			}
		}
		if !selected {
			sc.warn("PodDisruptionBudget %s selects no workload", b.Name)
		}
	}
}

// splitPath splits a path such as "spec.taints[0].key" into its keys.
func splitPath(s string) []string {
	return strings.Split(strings.ReplaceAll(s, "[", ".["), ".")
}
