package scenarios

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A scaledObject contains the supported fields of a KEDA ScaledObject.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              scaledObjectSpec `json:"spec"`
}

type scaledObjectSpec struct {
	ScaleTargetRef   scaledTarget     `json:"scaleTargetRef"`
	CooldownPeriod   *int32           `json:"cooldownPeriod"`
	IdleReplicaCount *int32           `json:"idleReplicaCount"`
	MinReplicaCount  *int32           `json:"minReplicaCount"`
	MaxReplicaCount  *int32           `json:"maxReplicaCount"`
	Advanced         scaledAdvanced   `json:"advanced"`
	Triggers         []scalingTrigger `json:"triggers"`

	PollingInterval       anything `json:"pollingInterval"`
	InitialCooldownPeriod anything `json:"initialCooldownPeriod"`
	Fallback              anything `json:"fallback"`
}

type scaledTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`

	EnvSourceContainerName anything `json:"envSourceContainerName"`
}

type scaledAdvanced struct {
	HPA scaledHPA `json:"horizontalPodAutoscalerConfig"`

	RestoreToOriginalReplicaCount anything `json:"restoreToOriginalReplicaCount"`
	ScalingModifiers              anything `json:"scalingModifiers"`
}

type scaledHPA struct {
	Name     anything                                       `json:"name"`
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
}

type scalingTrigger struct {
	Type       string            `json:"type"`
	MetricType string            `json:"metricType"`
	Metadata   map[string]string `json:"metadata"`

	Name              anything `json:"name"`
	AuthenticationRef anything `json:"authenticationRef"`
	UseCachedMetrics  anything `json:"useCachedMetrics"`
}

// New versions of KEDA add fields. Fields that are not read have no effect on a run.
func (*scaledObjectSpec) openEnded() {}
func (*scaledTarget) openEnded()     {}
func (*scaledAdvanced) openEnded()   {}
func (*scaledHPA) openEnded()        {}
func (*scalingTrigger) openEnded()   {}

// The defaults of KEDA.
const (
	kedaMaxReplicas = 100
	kedaCooldown    = 300
)

// The annotations that pause KEDA.
const (
	kedaPaused         = "autoscaling.keda.sh/paused"
	kedaPausedReplicas = "autoscaling.keda.sh/paused-replicas"
)

// A kedaScaler is an autoscaler that KEDA disables while no trigger is active.
type kedaScaler struct {
	autoscaler
	idle     int32 // replicas while it is disabled; negative if it is always enabled
	cooldown time.Duration
}

// readScaledObject makes a ScaledObject scale its workload.
func (sc *Scenario) readScaledObject(doc *document, o *scaledObject) []error {
	s := &o.Spec
	lowest, most := valueOf(s.MinReplicaCount), int32(kedaMaxReplicas)
	if s.MaxReplicaCount != nil {
		most = *s.MaxReplicaCount
	}
	errs := checkReplicas(doc, lowest, most, "minReplicaCount", "maxReplicaCount")
	behavior := s.Advanced.HPA.Behavior
	errs = append(errs, checkBehavior(doc, behavior, "spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")...)
	k := &kedaScaler{autoscaler: autoscaler{min: max(lowest, 1), max: most}, idle: -1,
		cooldown: kedaCooldown * time.Second}
	k.up, k.down = rulesOf(behavior)
	if s.CooldownPeriod != nil {
		k.cooldown = time.Duration(*s.CooldownPeriod) * time.Second
	}
	if lowest == 0 {
		k.idle = 0
	}
	if n := s.IdleReplicaCount; n != nil {
		if k.idle = *n; *n < 0 || *n >= max(lowest, 1) {
			errs = append(errs, doc.problem([]string{"spec", "idleReplicaCount"},
				"%d is not from 0 to below minReplicaCount %d", *n, lowest))
		}
	}
	l := sc.autoscaled(doc, scaleRef{cmp.Or(s.ScaleTargetRef.Kind, "Deployment"), s.ScaleTargetRef.Name})
	if l == nil || len(errs) > 0 {
		return errs
	}
	if l.scaler != nil || l.scaled != nil {
		return append(errs, doc.problem([]string{"spec", "scaleTargetRef"}, "%s is also scaled by another object", l.Name))
	}
	schedule, more := sc.loadSchedule(doc, o.Annotations, l)
	errs = append(errs, more...)
	l.scaled = &autoscaler{min: lowest, max: most}
	if text, paused := o.Annotations[kedaPausedReplicas]; paused {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 || n > podsMax {
			return append(errs, doc.problem([]string{"metadata", "annotations", kedaPausedReplicas},
				"%q is not a number of replicas", text))
		}
		l.replicas = int32(n)
		return errs
	}
	if l.schedule != nil || o.Annotations[kedaPaused] == "true" || len(errs) > 0 {
		return errs
	}
	more, others := k.readTriggers(doc, s.Triggers, schedule, l)
	errs = append(errs, more...)
	switch {
	case len(errs) > 0:
	case len(k.targets) == 0:
		sc.withoutLoad(l, doc)
	default:
		l.scaler = k
		if len(others) > 0 {
			sc.warn("%s: the triggers %s are not simulated, since no load is set for them", doc.title(), some(others))
		}
	}
	return errs
}

// readTriggers reads cron triggers, and applies the load schedule to the first other trigger. It
// returns the types of the triggers that remain unused.
func (k *kedaScaler) readTriggers(doc *document, triggers []scalingTrigger, load *schedule, l *load) (errs []error,
	others []string) {
	used := false
	for i := range triggers {
		t := &triggers[i]
		path := []string{"spec", "triggers", Index(i)}
		switch {
		case t.Type == "cron":
			c, more := readCronTrigger(doc, t, path)
			if errs = append(errs, more...); len(more) == 0 {
				k.targets = append(k.targets, scaleTarget{c.steps, 1})
			}
		case load == nil || used || t.Type == "memory":
			others = append(others, t.Type)
		default:
			each, err := t.perReplica(doc, path, l)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			used = true
			k.targets = append(k.targets, scaleTarget{load.steps, each})
		}
	}
	if load != nil && !used && len(errs) == 0 {
		errs = append(errs, doc.problem([]string{"spec", "triggers"}, "there is no trigger of a load that %s could state",
			AnnotationLoad))
	}
	return errs, others
}

// thresholdKeys are the metadata keys of KEDA scalers for the target load per replica.
var thresholdKeys = []string{
	"threshold", "targetValue", "targetMetricValue", "targetQueryValue", "queueLength", "targetQueueLength", "lagThreshold",
	"listLength", "messageCount", "subscriptionSize", "shardCount", "value",
}

// perReplica returns the target load per replica of a trigger.
func (t *scalingTrigger) perReplica(doc *document, path []string, l *load) (float64, error) {
	for _, key := range thresholdKeys {
		text, stated := t.Metadata[key]
		if !stated {
			continue
		}
		q, err := resource.ParseQuantity(text)
		at := slices.Concat(path, []string{"metadata", key})
		switch {
		case err != nil || q.Sign() <= 0:
			return 0, doc.problem(at, "%q is not a number above 0", text)
		case t.Type != "cpu" || t.MetricType == string(autoscalingv2.AverageValueMetricType):
			return q.AsApproximateFloat64(), nil
		case l.cpu == 0:
			return 0, doc.problem(at, "it is a share of requests for CPU, and %s requests none", l.Name)
		}
		return q.AsApproximateFloat64() / 100 * float64(l.cpu) / 1000, nil
	}
	return 0, doc.problem(path, "its metadata has no target of a trigger of type %q that is known", t.Type)
}

// A cronTrigger requests replicas from each start to the next end.
type cronTrigger struct {
	start, end cron.Schedule
	replicas   int64
}

func readCronTrigger(doc *document, t *scalingTrigger, path []string) (*cronTrigger, []error) {
	var errs []error
	at := func(key string) []string { return append(path[:len(path):len(path)], "metadata", key) }
	c := &cronTrigger{}
	zone := t.Metadata["timezone"]
	if _, err := time.LoadLocation(zone); err != nil || zone == "" {
		errs = append(errs, doc.problem(at("timezone"), "%q is not a time zone such as Europe/Berlin", zone))
		zone = "UTC"
	}
	for _, x := range []struct {
		key string
		to  *cron.Schedule
	}{{"start", &c.start}, {"end", &c.end}} {
		s, err := cron.ParseStandard("CRON_TZ=" + zone + " " + t.Metadata[x.key])
		if err != nil {
			errs = append(errs, doc.problem(at(x.key), "%q is not a cron schedule: %v", t.Metadata[x.key], err))
		}
		*x.to = s
	}
	n, err := strconv.ParseInt(t.Metadata["desiredReplicas"], 10, 32)
	if err != nil || n < 0 || n > podsMax {
		errs = append(errs, doc.problem(at("desiredReplicas"), "%q is not a number of replicas",
			t.Metadata["desiredReplicas"]))
	}
	c.replicas = n
	return c, errs
}

// steps returns the replicas that the trigger requests, in thousandths; 0 while it is not active.
func (c *cronTrigger) steps(from, _, to policy.Time) []scheduleStep {
	value := func(at time.Time) int64 {
		if c.start.Next(at).Before(c.end.Next(at)) {
			return 0
		}
		return 1000 * c.replicas
	}
	steps := []scheduleStep{{from, value(from.Std())}}
	for now := from.Std(); ; {
		start, end := c.start.Next(now), c.end.Next(now)
		if start.IsZero() || !end.IsZero() && end.Before(start) {
			start = end
		}
		if now = start; now.IsZero() || policy.TimeOf(now) >= to {
			return steps
		}
		steps = change(steps, policy.TimeOf(now), to, value(now))
	}
}

// steps returns the replicas between two instants: those of the autoscaler, or the idle replicas
// once no trigger has been active for the cooldown.
func (k *kedaScaler) steps(from, start, to policy.Time) []scheduleStep {
	base := k.autoscaler.steps(from, start, to)
	if k.idle < 0 {
		return base
	}
	loads := make([][]scheduleStep, len(k.targets))
	instants := []policy.Time{from}
	for i := range k.targets {
		loads[i] = k.targets[i].load(from, start, to)
		for _, s := range loads[i] {
			instants = append(instants, s.at, s.at.Add(k.cooldown))
		}
	}
	for _, s := range base {
		instants = append(instants, s.at)
	}
	slices.Sort(instants)
	steps := []scheduleStep{{from, int64(k.idle)}}
	on, off := false, from // time since which no trigger is active
	for _, at := range slices.Compact(instants) {
		active := slices.ContainsFunc(loads, func(steps []scheduleStep) bool { return valueAt(steps, at) > 0 })
		if on && !active {
			off = at.Add(k.cooldown)
		}
		on = active
		if on || at < off {
			steps = change(steps, at, to, valueAt(base, at))
		} else {
			steps = change(steps, at, to, int64(k.idle))
		}
	}
	return steps
}
