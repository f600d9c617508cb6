package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/spotter-dev/spotter/policy"
)

// An auditEvent is the part of an audit log entry that is used.
type auditEvent struct {
	Kind, Stage, Verb string

	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	}
	ResponseStatus struct {
		Code int `json:"code"`
	}

	RequestObject, ResponseObject json.RawMessage
	StageTimestamp                time.Time
}

// auditOf decodes an entry, or a row of the table AKSAudit of Azure, which has the fields as
// columns but no kind, and a different name for the time.
func auditOf(x fields) (e auditEvent, err error) {
	e.Kind = kindEvent
	for _, f := range []struct {
		name string
		v    any
	}{
		{"kind", &e.Kind}, {"stage", &e.Stage}, {"verb", &e.Verb}, {"objectRef", &e.ObjectRef}, {"responseStatus",
			&e.ResponseStatus},
		{"requestObject", &e.RequestObject}, {"responseObject", &e.ResponseObject}, {"StageReceivedTime",
			&e.StageTimestamp}, {"stageTimestamp", &e.StageTimestamp},
	} {
		if err := x.decode(f.name, f.v); err != nil {
			return e, err
		}
	}
	return e, nil
}

// kindEvent is the kind of an entry of an audit log.
const kindEvent = "Event"

// An auditObject is the part of a Kubernetes object that is used.
type auditObject struct {
	Metadata struct {
		Name              string            `json:"name"`
		Labels            map[string]string `json:"labels"`
		CreationTimestamp *time.Time        `json:"creationTimestamp"`
		OwnerReferences   []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Reason   string `json:"reason"` // Event only
	Involved struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"involvedObject"`
	Spec struct {
		Replicas    *int32 `json:"replicas"`
		Parallelism *int32 `json:"parallelism"`
		Completions *int32 `json:"completions"`
		ProviderID  string `json:"providerID"` // Node only
		Taints      []struct {
			Key string `json:"key"`
		} `json:"taints"`
		Template struct {
			Spec struct {
				Containers []struct {
					Resources struct {
						Requests map[string]resource.Quantity `json:"requests"`
					} `json:"resources"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Replicas       *int32     `json:"replicas"`
		StartTime      *time.Time `json:"startTime"`
		CompletionTime *time.Time `json:"completionTime"`
	} `json:"status"`
}

// requests returns the requests of a pod of the template of o, and the resource name of its
// accelerators.
func (o *auditObject) requests() (r policy.Resources, gpu string) {
	for _, c := range o.Spec.Template.Spec.Containers {
		for name, q := range c.Resources.Requests {
			switch name {
			case "cpu":
				r.CPU += q.MilliValue()
			case "memory":
				r.Memory += q.Value()
			case "ephemeral-storage":
				r.Storage += q.Value()
			default:
				for _, known := range accelerators {
					if name == known {
						r.GPU, gpu = r.GPU+q.Value(), known
					}
				}
			}
		}
	}
	return r, gpu
}

// A logChange is a change of an object.
type logChange struct {
	at             policy.Time
	verb, resource string
	name           string // "namespace/name", or the name of a node

	// replicas is the number after the change, before the number before it. Nil means unknown.
	replicas, before *int32

	requests policy.Resources
	gpu      string

	owner          string // of a job
	pods, work     int32
	started, ended policy.Time
	labels         map[string]string
	instance       string // instance ID of a node
}

// object sets the fields of c that o has.
func (c *logChange) object(o *auditObject) {
	if o.Spec.Replicas != nil {
		c.replicas = o.Spec.Replicas
	}
	if r, gpu := o.requests(); r != (policy.Resources{}) {
		c.requests, c.gpu = r, gpu
	}
	for _, w := range o.Metadata.OwnerReferences {
		c.owner = w.Name
	}
	for _, x := range []struct {
		from *int32
		to   *int32
	}{{o.Spec.Parallelism, &c.pods}, {o.Spec.Completions, &c.work}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	for _, x := range []struct {
		from *time.Time
		to   *policy.Time
	}{{o.Status.StartTime, &c.started}, {o.Status.CompletionTime, &c.ended}} {
		if x.from != nil {
			*x.to = policy.TimeOf(*x.from)
		}
	}
	if o.Metadata.Labels != nil {
		c.labels = o.Metadata.Labels
	}
	c.instance = cmp.Or(LastOf(o.Spec.ProviderID), c.instance)
}

// A logReading is the state of converting logs to a history.
type logReading struct {
	*builder
	changes     []logChange
	first, last policy.Time // times of the first and the last event

	evictions int64
	reclaimed map[string]bool // by name of the node
	bare      int             // number of changes without an effect, since only metadata was logged

	claims claims
}

// add records a change within the interval.
func (r *logReading) add(c *logChange) {
	if c.at < r.from || c.at >= r.to || c.resource == "" {
		return
	}
	if r.first == 0 || c.at < r.first {
		r.first = c.at
	}
	r.last = max(r.last, c.at)
	r.changes = append(r.changes, *c)
}

// resourcesRead are the resources whose changes are recorded.
var resourcesRead = []string{"deployments", "replicasets", "statefulsets", "jobs", "nodes", "pods", "events"}

// event records the change that an API call made.
func (r *logReading) event(e *auditEvent) {
	ref := &e.ObjectRef
	if e.Kind != kindEvent || e.Stage != "ResponseComplete" || e.ResponseStatus.Code < 200 ||
		e.ResponseStatus.Code >= 300 || !slices.Contains(resourcesRead, ref.Resource) {
		return
	}
	c := logChange{at: policy.TimeOf(e.StageTimestamp), verb: e.Verb, resource: ref.Resource, name: ref.Namespace + "/" +
		ref.Name}
	within := c.at >= r.from && c.at < r.to
	var request, response auditObject
	_ = json.Unmarshal(e.RequestObject, &request) // a patch may be a list
	_ = json.Unmarshal(e.ResponseObject, &response)
	switch {
	case !within || !slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb):
		return
	case ref.Resource == "replicasets" && e.Verb != "create": // Deployments scale them
		return
	case ref.Resource == "pods":
		if ref.Subresource == "eviction" && e.Verb == "create" {
			r.evictions++
		}
		return
	case ref.Resource == "events" || ref.Resource == "nodes":
		r.interrupted(ref.Name, &request)
		if ref.Resource == "events" || ref.Subresource != "" {
			return
		}
		c.name = ref.Name
	}
	if c.name == "" || strings.HasSuffix(c.name, "/") { // the server chose the name
		c.name += response.Metadata.Name
	}
	c.object(&request)
	c.object(&response)
	if ref.Subresource == "scale" && response.Status.Replicas != nil {
		c.before = response.Status.Replicas
	}
	if c.resource == "replicasets" && c.owner == "" {
		return
	}
	if e.RequestObject == nil && e.ResponseObject == nil && e.Verb != "delete" {
		r.bare++
	}
	if e.Verb == "delete" {
		c.labels, c.replicas = response.Metadata.Labels, nil
	}
	r.add(&c)
}

// spotTaint is the taint that the AWS Node Termination Handler puts on an interrupted node.
const spotTaint = "aws-node-termination-handler/spot-itn"

// interrupted records a node that the provider reclaims, as reported by an interruption handler.
func (r *logReading) interrupted(name string, o *auditObject) {
	is := o.Reason == "SpotInterrupted" && o.Involved.Kind == "Node"
	if is {
		name = o.Involved.Name
	}
	for _, t := range o.Spec.Taints {
		is = is || t.Key == spotTaint
	}
	if is {
		r.reclaimed[name] = true
	}
}

// apply applies one change. Changes must be applied in order of time.
func (r *logReading) apply(c *logChange) {
	switch c.resource {
	case "nodes":
		r.applyNode(c)
	case "jobs":
		r.applyJob(c)
	case "replicasets":
		namespace, _, _ := strings.Cut(c.name, "/")
		w := r.workload(workloadKey{namespace + "/" + c.owner, policy.KindDeployment})
		w.made = append(w.made, c.at)
	default:
		kind := policy.KindDeployment
		if c.resource == "statefulsets" {
			kind = policy.KindStatefulSet
		}
		r.applyService(c, workloadKey{c.name, kind})
	}
}

func (r *logReading) applyService(c *logChange, key workloadKey) {
	if c.requests != (policy.Resources{}) {
		r.workload(key).request(c.requests, c.gpu)
	}
	n := c.replicas
	switch one := int32(1); {
	case c.verb == "delete":
		n = new(int32)
	case n == nil && c.verb == "create":
		n = &one
	case n == nil:
		return
	}
	t := r.replicas(key, "")
	if t.changes == nil {
		first := *n // the previous number is unknown
		switch {
		case c.verb == "create":
			first = 0
		case c.before != nil:
			first = *c.before
		}
		t.changes = []Change{{r.from, first}}
	}
	t.set(c.at, *n)
	t.last = r.to
}

func (r *logReading) applyNode(c *logChange) {
	l := r.nodes.open[c.name]
	if l == nil {
		l = &life{node: Node{Name: c.name, From: r.from}, last: r.to}
		if c.verb == "create" {
			l.node.From = c.at
		}
		r.nodes.open[c.name] = l
	}
	found := map[string]string{}
	for _, k := range nodeLabels {
		if v := c.labels[k]; v != "" {
			found[k] = v
		}
	}
	r.nodes.describe(c.name, found)
	l.node.Instance = cmp.Or(c.instance, l.node.Instance)
	if c.verb == "delete" {
		l.node.To = c.at
		r.nodes.done = append(r.nodes.done, l.node)
		delete(r.nodes.open, c.name)
	}
}

func (r *logReading) applyJob(c *logChange) {
	if r.jobs.open[c.name] == nil && c.verb != "create" {
		if c.started == 0 || c.verb == "delete" {
			return // it ran before the interval
		}
	}
	if j := r.jobs.open[c.name]; j != nil && j.to != 0 && c.verb == "create" { // a new job of the same name
		r.jobs.done = append(r.jobs.done, *j)
		delete(r.jobs.open, c.name)
	}
	j := r.jobs.job(c.name)
	if j.from == 0 {
		j.from = max(c.started, r.from)
		if c.started == 0 {
			j.from = c.at
		}
	}
	j.last = r.to
	if c.owner != "" {
		namespace, _, _ := strings.Cut(c.name, "/")
		j.group = namespace + "/" + c.owner
	}
	if c.pods > 0 {
		j.pods = c.pods
	}
	if c.work > 0 {
		j.work = c.work
	}
	if c.requests != (policy.Resources{}) {
		r.workload(workloadKey{j.group, policy.KindJob}).request(c.requests, c.gpu)
	}
	if j.to == 0 && c.ended > 0 {
		j.to = max(c.ended, j.from.Add(time.Second))
	} else if j.to == 0 && c.verb == "delete" {
		j.to = max(c.at, j.from.Add(time.Second))
	}
}

// conclude adds notes on what the logs do not contain and returns the history.
func (r *logReading) conclude(jobDuration time.Duration) *History {
	if r.first > 0 {
		r.note(fmt.Sprintf("the logs have events from %v to %v; what they do not name is taken to have been as it is now, and what is changed first to have been so before",
			r.first.Std().Format(time.RFC3339), r.last.Std().Format(time.RFC3339)))
	} else {
		r.note("the logs have nodes only: workloads, their replicas and where pods ran are taken to have been as they are now")
	}
	if r.bare > 0 {
		r.note(fmt.Sprintf("%d changes were logged without what was changed: audit workloads and nodes at the level Request or RequestResponse", r.bare))
	}
	ended := false
	for _, j := range r.jobs.open {
		ended = ended || j.to != 0
	}
	if len(r.jobs.open) > 0 && !ended {
		r.note(fmt.Sprintf("no job ended in the logs: each is taken to run for %v", jobDuration))
		for _, j := range r.jobs.open {
			j.to = j.from.Add(jobDuration)
		}
	}
	r.note("DaemonSets are those of now: pods of theirs come and go with nodes",
		"how long pods take to start is measured on those of now")
	if r.evictions > 0 {
		r.out.Evictions = Count{N: r.evictions, Source: "pods/eviction in the logs"}
	}
	if len(r.reclaimed) > 0 {
		r.out.Reclaims = Count{N: int64(len(r.reclaimed)), Source: "interruptions in the logs"}
	}
	return r.finish()
}
