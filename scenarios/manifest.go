package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// A manifest is the Scenario object of a file. It contains the settings for which Kubernetes
// objects have no field.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              manifestSpec `json:"spec"`
}

type manifestSpec struct {
	// Start contains the time at which metering starts, and the cluster in which the warm-up
	// starts.
	Start startSpec `json:"start"`

	// Duration is the metered duration.
	Duration *metav1.Duration `json:"duration"`

	// WarmUp is the duration that is simulated before Start and not metered.
	WarmUp *metav1.Duration `json:"warmUp"`

	// ReadyGrace is the time for which pods missing after an increase of replicas do not count as
	// unserved.
	ReadyGrace *metav1.Duration `json:"readyGrace"`

	// Nodes are the nodes of the cluster when the warm-up starts.
	Nodes []nodesSpec `json:"nodes"`

	// Commitments are the reserved instances and savings plans of the account.
	Commitments []commitmentSpec `json:"commitments"`

	// NodeFee is a cost of each node in addition to its price, such as a licence: dollars per hour,
	// or per month as in $15/month.
	NodeFee feeText `json:"nodeFee"`

	// CPUUtilisation is the average CPU use of a pod as a part of its CPU request, unless its
	// annotation states one. CPUCredits is "standard" or "unlimited" for all burstable types; empty
	// means the default of AWS for each type.
	CPUUtilisation *float64 `json:"cpuUtilisation"`
	CPUCredits     string   `json:"cpuCredits"`

	// Trace is a file or folder, relative to the folder of the scenario. If it is empty, the caller
	// selects the trace.
	Trace string `json:"trace"`

	// Groups contains the size limits of Auto Scaling groups that are not described. In a cloud,
	// the groups themselves specify them.
	Groups groupsSpec `json:"groups"`

	Market marketSpec  `json:"market"`
	Faults []faultSpec `json:"faults"`
}

// A nodesSpec is a number of equal nodes. Unset fields are set to those of the pool's cheapest
// matching market at the start.
type nodesSpec struct {
	Pool         string `json:"pool"`
	Count        int32  `json:"count"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`

	// Reservation is the capacity reservation of the nodes, for capacity type reserved.
	Reservation string `json:"reservation"`

	// Pods is the number of pods per workload that run on each of the nodes at the start. Pods that
	// it does not mention are placed by the scheduler.
	Pods map[string]int32 `json:"pods"`
}

// A groupsSpec contains the bounds of the desired size of every Auto Scaling group. Each pair of
// Spot and on-demand groups has one group of each kind.
type groupsSpec struct {
	MinSize *int32 `json:"minSize"` // nil means 0
	MaxSize *int32 `json:"maxSize"` // nil means that the limits of the pool apply
}

type marketSpec struct {
	Intensity *float64 `json:"intensity"`
	Slots     *int32   `json:"slots"`

	// OnDemandShortages makes on-demand launches of scarce types fail at times; nil means true.
	OnDemandShortages *bool `json:"onDemandShortages"`

	// AzureAllocationFailures makes attempts to launch nodes of Azure fail; nil means false.
	AzureAllocationFailures *bool `json:"azureAllocationFailures"`

	// Reserve is the minimum price of a node from an auction, in dollars per hour; nil means one
	// bid step.
	Reserve *float64 `json:"reserve"`
}

// A faultSpec is one fault. At is relative to Start, so that the fault occurs at the same time in
// every window.
type faultSpec struct {
	Kind     string           `json:"kind"`
	At       metav1.Duration  `json:"at"`
	Duration metav1.Duration  `json:"duration"`
	Zone     string           `json:"zone"`
	Type     string           `json:"instanceType"`
	Capacity string           `json:"capacityType"`
	Share    *float64         `json:"share"`
	Factor   *float64         `json:"factor"`
	Delay    *metav1.Duration `json:"delay"`

	// ZoneNumber replaces Zone in a scenario that does not name zones. 1 is the first zone by name
	// of those that its pools may buy in.
	ZoneNumber *int32 `json:"zoneNumber"`

	// How is the way in which a model fails; empty means gone.
	How string `json:"how"`
}

// faultKinds maps the names of faults in scenarios to their kinds.
var faultKinds = map[string]FaultKind{
	"zone-outage":       FaultZoneOutage,
	"squeeze":           FaultCapacityShortage,
	"price-ramp":        FaultPriceRamp,
	"api-throttle":      FaultAPIThrottle,
	"api-error":         FaultAPIError,
	"late-notice":       FaultLateNotice,
	"slow-nodes":        FaultSlowNodes,
	"controller-down":   FaultControllerDown,
	"model-fails":       FaultModelFails,
	"on-demand-refused": FaultOnDemandRefused,
	"zonal-shift":       FaultZonalShift,
}

// String returns the name of k in scenarios.
func (k FaultKind) String() string {
	for name, other := range faultKinds {
		if other == k {
			return name
		}
	}
	return fmt.Sprintf("fault %d", uint8(k))
}

// modelFailures maps the names of model failures in scenarios to their values.
var modelFailures = map[string]ModelFailure{"gone": ModelGone, "late": ModelLate, "nan": ModelNaN}

// faultNeeds maps kinds of fault to the field that they require.
var faultNeeds = map[FaultKind]string{
	FaultCapacityShortage: "share", FaultAPIThrottle: "share", FaultPriceRamp: "factor", FaultSlowNodes: "factor",
}

// reserveMost is the maximum reserve price, in dollars per hour. A greater value is assumed to be a
// typing error.
const reserveMost = 1000

// AnnotationCaptured on a Scenario captured from a cluster is the time of the capture, such as
// 2026-01-03T14:00:00Z.
const AnnotationCaptured = kube.OwnPrefix + "captured"

// AnnotationDeviation on a captured Scenario describes in a few words how much a simulation of
// the cluster's current setup deviates from the observed behaviour.
const AnnotationDeviation = kube.OwnPrefix + "deviation"

// DefaultReadyGrace is the ready grace of a scenario that states none and in which no pod has
// accelerators.
const DefaultReadyGrace = 10 * time.Minute

const (
	defaultWarmUp        = 24 * time.Hour
	defaultReadyGraceGPU = 20 * time.Minute
)

// apply sets the fields of sc from the Scenario object.
func (m *manifest) apply(sc *Scenario, doc *document) []error {
	var errs []error
	fail := func(format string, value any, path ...string) {
		errs = append(errs, doc.problem(append([]string{"spec"}, path...), format, value))
	}
	s := &m.Spec
	sc.Name, sc.statedIn = m.Name, doc.file
	errs = append(errs, m.readAnnotations(sc, doc)...)
	if s.Duration == nil {
		fail("must be set%s", "", "duration")
	} else if sc.Duration = s.Duration.Duration; sc.Duration <= 0 {
		fail("%v is not above 0", sc.Duration, "duration")
	} else if sc.Duration < durationLeast || sc.Duration > durationMost {
		fail("%v is not from 1m to 87600h", sc.Duration, "duration")
	}
	sc.WarmUp, sc.ReadyGrace = defaultWarmUp, DefaultReadyGrace
	if slices.ContainsFunc(sc.templates, needsGPU) {
		sc.ReadyGrace = defaultReadyGraceGPU
	}
	for _, x := range []struct {
		name string
		from *metav1.Duration
		to   *time.Duration
	}{{"warmUp", s.WarmUp, &sc.WarmUp}, {"readyGrace", s.ReadyGrace, &sc.ReadyGrace}} {
		if x.from == nil {
			continue
		}
		if *x.to = x.from.Duration; *x.to < 0 {
			fail("%v is negative", *x.to, x.name)
		} else if *x.to > durationMost {
			fail("%v is more than 87600h", *x.to, x.name)
		}
	}
	if s.Start.At != nil {
		sc.Start = policy.TimeOf(s.Start.At.Time)
	}
	if sc.StartCluster = s.Start.cluster(); sc.StartCluster == StartOnDemand && len(s.Nodes) > 0 {
		fail("%q contradicts spec.nodes, which lists the nodes that every policy starts from", string(s.Start.Cluster),
			"start")
	}
	sc.Trace = s.Trace
	if s.NodeFee != "" {
		var err error
		if sc.NodeFee, err = policy.ParseFee(string(s.NodeFee)); err != nil {
			errs = append(errs, doc.problem([]string{"spec", "nodeFee"}, "%v", err))
		}
	}
	return slices.Concat(errs, sc.readCredits(s, doc), sc.readMarket(&s.Market, doc), sc.readGroups(&s.Groups, doc),
		sc.readNodes(s.Nodes, doc), sc.readCommitments(s.Commitments, doc), sc.readFaults(s.Faults, doc))
}

// readAnnotations reads the annotations that a capture adds.
func (m *manifest) readAnnotations(sc *Scenario, doc *document) (errs []error) {
	if text, stated := m.Annotations[AnnotationCaptured]; stated {
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			errs = append(errs, doc.problem([]string{"metadata", "annotations", AnnotationCaptured},
				"%q is not a time such as 2026-01-03T14:00:00Z", text))
		}
		sc.Captured = true
	}
	sc.Deviation = m.Annotations[AnnotationDeviation]
	if text, stated := m.Annotations[AnnotationKarpenterVersion]; stated {
		v, err := ParseKarpenterVersion(text)
		if err != nil {
			errs = append(errs, doc.problem([]string{"metadata", "annotations", AnnotationKarpenterVersion}, "%v", err))
		}
		sc.Karpenter = v
	}
	return errs
}

// readMarket reads the market settings of a scenario.
func (sc *Scenario) readMarket(m *marketSpec, doc *document) []error {
	var errs []error
	fail := func(format string, value any, field string) {
		errs = append(errs, doc.problem([]string{"spec", "market", field}, format, value))
	}
	sc.Intensity = 1
	if x := m.Intensity; x != nil {
		if sc.Intensity = *x; !(*x >= 0 && *x <= 1000) {
			fail("%v is not from 0 to 1000", *x, "intensity")
		}
	}
	if x := m.Slots; x != nil {
		if sc.Slots = int(*x); *x < 1 {
			fail("%v is not above 0", *x, "slots")
		}
	}
	sc.OnDemandShortages = m.OnDemandShortages == nil || *m.OnDemandShortages
	sc.AzureAllocationFailures = m.AzureAllocationFailures != nil && *m.AzureAllocationFailures
	sc.Reserve = policy.BidStep
	if x := m.Reserve; x != nil {
		if !(*x >= 0 && *x <= reserveMost) {
			fail("%v is not from 0 to 1000 dollars per hour", *x, "reserve")
		} else {
			sc.Reserve, sc.reserveStated = policy.Dollars(*x), true
		}
	}
	return errs
}

func (sc *Scenario) readGroups(g *groupsSpec, doc *document) []error {
	var errs []error
	for _, x := range []struct {
		name  string
		from  *int32
		least int32
		to    *int
	}{{"minSize", g.MinSize, 0, &sc.Groups.Min}, {"maxSize", g.MaxSize, 1, &sc.Groups.Max}} {
		if x.from == nil {
			continue
		}
		if why := outside(*x.from, x.least, nodesMax); why != "" {
			errs = append(errs, doc.problem([]string{"spec", "groups", x.name}, "%s", why))
		}
		*x.to = int(*x.from)
	}
	if sc.Groups.Max > 0 && sc.Groups.Max < sc.Groups.Min {
		errs = append(errs, doc.problem([]string{"spec", "groups", "maxSize"}, "%d is below minSize %d", sc.Groups.Max,
			sc.Groups.Min))
	}
	if sc.Groups != (GroupBounds{}) && !slices.ContainsFunc(sc.pools,
		func(p pool) bool { return p.capacity != nil && p.capacity.Spec.Backend.AutoScalingGroups != nil }) {
		sc.warn("groups have no effect: no CapacityPool has Auto Scaling groups")
	}
	return errs
}

func (sc *Scenario) readNodes(nodes []nodesSpec, doc *document) []error {
	var errs []error
	for i, n := range nodes {
		at := func(field string) []string { return []string{"spec", "nodes", Index(i), field} }
		if !slices.ContainsFunc(sc.pools, func(p pool) bool { return p.name == n.Pool }) {
			errs = append(errs, doc.problem(at("pool"), "there is no CapacityPool or NodePool %q", n.Pool))
		}
		if why := outside(n.Count, 1, nodesMax); why != "" {
			errs = append(errs, doc.problem(at("count"), "%s", why))
		}
		if _, ok := capacityTypes[n.CapacityType]; !ok {
			errs = append(errs, doc.problem(at("capacityType"), "%q is not spot, on-demand or reserved", n.CapacityType))
		}
		if n.Reservation != "" && n.CapacityType != policy.Reserved.String() {
			errs = append(errs, doc.problem(at("reservation"), "is for nodes of the capacityType reserved"))
		}
		errs = append(errs, sc.checkPods(n.Pods, doc, at("pods"))...)
	}
	sc.nodes = nodes
	return errs
}

func (sc *Scenario) readFaults(faults []faultSpec, doc *document) []error {
	var errs []error
	for i := range faults {
		f := &faults[i]
		at := func(field string) []string { return []string{"spec", "faults", Index(i), field} }
		kind, ok := faultKinds[f.Kind]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(faultKinds)), ", ")
			errs = append(errs, doc.problem(at("kind"), "%q is not a kind of fault; known are %s", f.Kind, known))
			continue
		}
		errs = append(errs, f.check(kind, doc, at)...)
		errs = append(errs, sc.checkSpan(f, doc, at)...)
		fault := Fault{Kind: kind, Duration: f.Duration.Duration, Zone: f.Zone, Type: f.Type, Capacity: f.Capacity}
		if f.Share != nil {
			fault.Share = *f.Share
		}
		if f.Factor != nil {
			fault.Factor = *f.Factor
		}
		if f.Delay != nil {
			fault.Delay = f.Delay.Duration
		}
		if f.ZoneNumber != nil {
			fault.ZoneNumber = int(*f.ZoneNumber)
		}
		if kind == FaultModelFails {
			fault.Model = modelFailures[cmp.Or(f.How, "gone")]
		}
		sc.faults = append(sc.faults, fault)
		sc.faultsAt = append(sc.faultsAt, f.At.Duration)
	}
	return errs
}

// checkSpan returns an error for a fault that does not overlap the run, including its warm-up.
func (sc *Scenario) checkSpan(f *faultSpec, doc *document, at func(string) []string) []error {
	begin, end := f.At.Duration, f.At.Duration+f.Duration.Duration
	switch {
	case sc.Duration <= 0 || f.Duration.Duration <= 0: // another error reports this
	case begin >= sc.Duration:
		return []error{doc.problem(at("at"), "%v is not before the end of the run, %v after its start", begin, sc.Duration)}
	case end <= -sc.WarmUp:
		return []error{doc.problem(at("at"), "%v is so early that the fault is over at %v, when warm-up starts at %v",
			begin, end, -sc.WarmUp)}
	}
	return nil
}

func (f *faultSpec) check(kind FaultKind, doc *document, at func(string) []string) []error {
	var errs []error
	if f.Duration.Duration <= 0 {
		errs = append(errs, doc.problem(at("duration"), "%v is not above 0", f.Duration.Duration))
	}
	if need := faultNeeds[kind]; need == "share" && f.Share == nil || need == "factor" && f.Factor == nil {
		errs = append(errs, doc.problem(at(need), "must be set for a %s", f.Kind))
	}
	if kind == FaultZonalShift && f.Zone == "" && f.ZoneNumber == nil {
		errs = append(errs, doc.problem(at("zone"), "must be set for a %s", f.Kind))
	}
	if f.Share != nil && !(*f.Share > 0 && *f.Share <= 1) {
		errs = append(errs, doc.problem(at("share"), "%v is not above 0 and at most 1", *f.Share))
	}
	if f.Factor != nil && !(*f.Factor > 0 && *f.Factor <= 1000) {
		errs = append(errs, doc.problem(at("factor"), "%v is not above 0 and at most 1000", *f.Factor))
	}
	switch {
	case f.ZoneNumber == nil:
	case *f.ZoneNumber < 1:
		errs = append(errs, doc.problem(at("zoneNumber"), "%d is not above 0", *f.ZoneNumber))
	case f.Zone != "":
		errs = append(errs, doc.problem(at("zoneNumber"), "zone is set too"))
	}
	if f.Delay != nil && f.Delay.Duration < 0 {
		errs = append(errs, doc.problem(at("delay"), "%v is negative", f.Delay.Duration))
	}
	if f.Capacity != "" && f.Capacity != "spot" && f.Capacity != "on-demand" {
		errs = append(errs, doc.problem(at("capacityType"), "%q is not spot or on-demand", f.Capacity))
	}
	switch _, known := modelFailures[f.How]; {
	case f.How == "":
	case kind != FaultModelFails:
		errs = append(errs, doc.problem(at("how"), "a %s fails in one way only", f.Kind))
	case !known:
		errs = append(errs, doc.problem(at("how"), "%q is not gone, late or nan", f.How))
	}
	return errs
}
