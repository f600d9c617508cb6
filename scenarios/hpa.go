package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A horizontalPodAutoscaler is a HorizontalPodAutoscaler of API version 2 or 1.
type horizontalPodAutoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		autoscalingv2.HorizontalPodAutoscalerSpec `json:",inline"`

		CPUPercent *int32 `json:"targetCPUUtilizationPercentage"` // version 1 only
	} `json:"spec"`
}

// A scaleRef identifies the workload that an autoscaler scales.
type scaleRef struct{ kind, name string }

// autoscaled returns the workload that the object scales. If there is no such workload, it returns
// nil and adds a warning.
func (sc *Scenario) autoscaled(doc *document, ref scaleRef) *load {
	l := sc.loadOf(ref.kind, doc.qualified(ref.name))
	if l == nil || l.Job != nil || l.Kind == policy.KindDaemonSet {
		sc.warn("%s has no effect: there is no %s %s that it could scale", doc.title(), ref.kind, doc.qualified(ref.name))
		return nil
	}
	return l
}

// loadSchedule returns the load schedule in the annotation of the autoscaler or of its workload;
// nil if neither has one.
func (sc *Scenario) loadSchedule(doc *document, values map[string]string, l *load) (*schedule, []error) {
	a := newAnnotations(doc)
	a.add(nil, values)
	for _, key := range slices.Sorted(maps.Keys(ownAnnotations)) {
		if key != AnnotationLoad {
			a.refuse(doc.kind(), key)
		}
	}
	s := parsed(a, AnnotationLoad, parseLoadSchedule)
	if s != nil && l.loadSchedule != nil {
		a.fail(AnnotationLoad, "the workload states one too")
	}
	l.loadUnused = nil
	if s == nil {
		s = l.loadSchedule
	}
	if s != nil && l.schedule != nil {
		a.fail(AnnotationLoad, "the workload has %s, which says how many replicas there are", AnnotationReplicas)
	}
	return s, a.errs
}

// readHPA makes a HorizontalPodAutoscaler scale its workload.
func (sc *Scenario) readHPA(doc *document, o *horizontalPodAutoscaler) []error {
	s := &o.Spec
	lowest := int32(1)
	if s.MinReplicas != nil {
		lowest = *s.MinReplicas
	}
	errs := checkReplicas(doc, lowest, s.MaxReplicas, "minReplicas", "maxReplicas")
	errs = append(errs, checkBehavior(doc, s.Behavior, "spec", "behavior")...)
	l := sc.autoscaled(doc, scaleRef{s.ScaleTargetRef.Kind, s.ScaleTargetRef.Name})
	if l == nil || len(errs) > 0 {
		return errs
	}
	if l.scaler != nil || l.scaled != nil {
		return append(errs, doc.problem([]string{"spec", "scaleTargetRef"}, "%s is also scaled by another object", l.Name))
	}
	a := &autoscaler{min: lowest, max: s.MaxReplicas}
	a.up, a.down = rulesOf(s.Behavior)
	schedule, more := sc.loadSchedule(doc, o.Annotations, l)
	errs = append(errs, more...)
	l.scaled = a
	if l.schedule != nil || len(errs) > 0 {
		return errs
	}
	metrics := s.Metrics
	if s.CPUPercent != nil {
		metrics = append(metrics, cpuMetric(s.CPUPercent))
	}
	if schedule == nil {
		sc.withoutLoad(l, doc)
		return errs
	}
	at, err := metricOf(doc, l, metrics)
	if err != nil {
		return append(errs, err)
	}
	if len(metrics) > 1 {
		name, _ := metricTargetOf(&metrics[at.index])
		sc.warn("%s: only metric %s is simulated, which %s is taken for", doc.title(), name, AnnotationLoad)
	}
	a.targets = []scaleTarget{{schedule.steps, at.perReplica}}
	l.scaler = a
	return errs
}

func cpuMetric(percent *int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
				AverageUtilization: percent},
		}}
}

// withoutLoad keeps the replicas of a workload without a load schedule constant, within the bounds
// of its autoscaler, and notes this for a warning.
func (sc *Scenario) withoutLoad(l *load, doc *document) {
	l.replicas = l.scaled.bounded(l.replicas)
	sc.note(fmt.Sprintf("autoscaled, and the number of replicas stays, since nothing says how the load changes: state %s, or take the recorded replicas with `spotter capture --since`", AnnotationLoad),
		fmt.Sprintf("%s (%d of %d to %d)", l.Name, l.replicas, l.scaled.min, l.scaled.max))
}

// A metricTarget is the metric to which a load schedule applies, and its target load per replica.
type metricTarget struct {
	index      int
	perReplica float64
}

// metricOf returns the metric to which a load schedule applies: CPU if it is in the list, or else
// the first metric other than memory.
func metricOf(doc *document, l *load, metrics []autoscalingv2.MetricSpec) (metricTarget, error) {
	called := func(name string) func(autoscalingv2.MetricSpec) bool {
		return func(m autoscalingv2.MetricSpec) bool { n, _ := metricTargetOf(&m); return n == name }
	}
	best := slices.IndexFunc(metrics, called("cpu"))
	if best < 0 {
		isMemory := called("memory")
		best = slices.IndexFunc(metrics, func(m autoscalingv2.MetricSpec) bool { return !isMemory(m) })
	}
	if best < 0 {
		return metricTarget{}, doc.problem([]string{"spec", "metrics"},
			"there is no metric of CPU or of another load that %s could state", AnnotationLoad)
	}
	m, path := &metrics[best], []string{"spec", "metrics", Index(best)}
	_, target := metricTargetOf(m)
	request := int64(0) // of a pod, in milli-CPU; a utilisation target is a share of it
	if m.Resource != nil {
		request = l.cpu
	} else if m.ContainerResource != nil {
		request = l.containerCPU[m.ContainerResource.Container]
	}
	var each float64
	switch {
	case target.AverageUtilization != nil && request == 0:
		return metricTarget{}, doc.problem(path, "its utilization is of requests for CPU, and %s requests none", l.Name)
	case target.AverageUtilization != nil:
		each = float64(request) / 1000 * float64(*target.AverageUtilization) / 100
	case target.AverageValue != nil:
		each = target.AverageValue.AsApproximateFloat64()
	case target.Value != nil:
		each = target.Value.AsApproximateFloat64()
	}
	if each <= 0 {
		return metricTarget{}, doc.problem(path, "its target states no averageUtilization, averageValue or value above 0")
	}
	return metricTarget{best, each}, nil
}

// metricTargetOf returns the name of a metric and its target.
func metricTargetOf(m *autoscalingv2.MetricSpec) (name string, target autoscalingv2.MetricTarget) {
	switch {
	case m.Resource != nil:
		return string(m.Resource.Name), m.Resource.Target
	case m.ContainerResource != nil:
		return string(m.ContainerResource.Name), m.ContainerResource.Target
	case m.Pods != nil:
		return m.Pods.Metric.Name, m.Pods.Target
	case m.Object != nil:
		return m.Object.Metric.Name, m.Object.Target
	case m.External != nil:
		return m.External.Metric.Name, m.External.Target
	}
	return string(m.Type), target
}

// checkReplicas returns errors for invalid bounds of an autoscaler.
func checkReplicas(doc *document, lowest, most int32, minField, maxField string) (errs []error) {
	for _, x := range []struct {
		field string
		value int32
		least int32
	}{{minField, lowest, 0}, {maxField, most, 1}} {
		if why := outside(x.value, x.least, podsMax); why != "" {
			errs = append(errs, doc.problem([]string{"spec", x.field}, "%s", why))
		}
	}
	if len(errs) == 0 && most < lowest {
		errs = append(errs, doc.problem([]string{"spec", maxField}, "%d is below %s %d", most, minField, lowest))
	}
	return errs
}

// checkBehavior returns errors for invalid scaling rules.
func checkBehavior(doc *document, b *autoscalingv2.HorizontalPodAutoscalerBehavior, path ...string) (errs []error) {
	if b == nil {
		return nil
	}
	for _, x := range []struct {
		field string
		rules *autoscalingv2.HPAScalingRules
	}{{"scaleUp", b.ScaleUp}, {"scaleDown", b.ScaleDown}} {
		if x.rules == nil {
			continue
		}
		at := func(fields ...string) []string { return append(append(path[:len(path):len(path)], x.field), fields...) }
		if s := x.rules.StabilizationWindowSeconds; s != nil && (*s < 0 || *s > 3600) {
			errs = append(errs, doc.problem(at("stabilizationWindowSeconds"), "%d is not from 0 to 3600", *s))
		}
		switch s := cmp.Or(valueOf(x.rules.SelectPolicy), autoscalingv2.MaxChangePolicySelect); s {
		case autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect:
		default:
			errs = append(errs, doc.problem(at("selectPolicy"), "%q is not Max, Min or Disabled", s))
		}
		for i, p := range x.rules.Policies {
			if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
				errs = append(errs, doc.problem(at("policies", Index(i), "type"), "%q is not Pods or Percent", p.Type))
			}
			if why := outside(p.Value, 1, podsMax); why != "" {
				errs = append(errs, doc.problem(at("policies", Index(i), "value"), "%s", why))
			}
			if why := outside(p.PeriodSeconds, 1, int32(scaleEventsMax.Seconds())); why != "" {
				errs = append(errs, doc.problem(at("policies", Index(i), "periodSeconds"), "%s", why))
			}
		}
	}
	return errs
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// cpuRequests maps the name of each container to its CPU request, in milli-CPU.
func cpuRequests(s *corev1.PodSpec) map[string]int64 {
	requests := map[string]int64{}
	for i := range s.Containers {
		c := &s.Containers[i]
		q, ok := c.Resources.Requests[corev1.ResourceCPU]
		if !ok {
			q = c.Resources.Limits[corev1.ResourceCPU]
		}
		requests[c.Name] = q.MilliValue()
	}
	return requests
}
