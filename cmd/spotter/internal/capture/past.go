package capture

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A past is the history of a workload.
type past struct {
	schedule string // replicas over time, in the form of the annotation
	first    int32  // replicas at the start
	rollouts string // in the form of the annotation, empty if there were none

	job *history.Job // nil for a service
}

// withNodes returns s with the nodes of the history added after its own. began maps the added nodes
// to whether they existed at the start of the history. Of the later ones, one of each kind is
// added: they show what a pool bought.
func withNodes(s *policy.Snapshot, h *history.History) (out *policy.Snapshot, began map[policy.NodeID]bool) {
	same := *s
	same.Nodes, began = slices.Clone(s.Nodes), map[policy.NodeID]bool{}
	now, byGroup := map[string]*policy.Node{}, map[string]policy.PoolID{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() {
			continue
		}
		now[n.Name] = n
		if g := groupOf(n); g != "" && n.Pool >= 0 {
			byGroup[g] = n.Pool
		}
	}
	seen := map[string]bool{}
	for i := range h.Nodes {
		x := &h.Nodes[i]
		n := policy.Node{Name: x.Name, Pool: policy.None, Market: policy.None}
		if known := now[x.Name]; known != nil {
			n.Pool, n.Market, n.Labels, n.Taints = known.Pool, known.Market, known.Labels, known.Taints
		} else if x.Kind != nil {
			n.Labels = nodeLabels(x.Kind.Labels)
			if pool, ok := byGroup[groupOf(&n)]; ok {
				n.Pool = pool
			}
		}
		n.ID, n.Phase = policy.NodeID(len(same.Nodes)), policy.NodeInitialized
		there := x.From <= h.From
		if key := fmt.Sprint(n.Pool, n.Market, n.Labels); !there && seen[key] {
			continue
		} else if !there {
			seen[key] = true
		}
		began[n.ID] = there
		same.Nodes = append(same.Nodes, n)
	}
	return &same, began
}

// nodeLabels returns the labels of a node from metrics, and derives the region from the zone if it
// is missing.
func nodeLabels(labels map[string]string) (out []policy.Label) {
	if zone := labels[corev1.LabelTopologyZone]; zone != "" && labels[corev1.LabelTopologyRegion] == "" {
		labels = maps.Clone(labels)
		labels[corev1.LabelTopologyRegion] = regionOf(zone)
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, policy.Label{Key: k, Value: labels[k]})
	}
	return out
}

var zoneEnding = regexp.MustCompile(`-?[a-z]$`)

// regionOf returns the region of a zone: from the catalog, otherwise the zone without its letter.
func regionOf(zone string) string {
	for _, provider := range catalog.Providers() {
		for _, region := range catalog.Regions(provider) {
			if slices.Contains(catalog.Zones(provider, region), zone) {
				return region
			}
		}
	}
	return zoneEnding.ReplaceAllString(zone, "")
}

// withPast sets the past of each load, removes those that the history does not have, and adds those
// that no longer exist.
func (c *workWriter) withPast(all []*load) []*load {
	services, jobs := map[string]*load{}, map[string]*load{}
	var out []*load
	for _, x := range all {
		switch {
		case x.kind == policy.KindDaemonSet || x.t.DaemonSet:
			out = append(out, x)
		case x.kind == policy.KindJob:
			jobs[history.Stem(x.name)] = x
		case x.kind != policy.KindBare:
			services[x.kind.String()+x.name] = x
		case slices.ContainsFunc(c.o.History.Workloads, func(w history.Workload) bool {
			return w.Kind == policy.KindBare && namespaceOf(w.Name) == x.t.Namespace
		}):
			c.leave(int(x.pods),
				"pods of now that no Deployment, StatefulSet or Job made: those that the metrics counted are used instead")
		default:
			out = append(out, x)
		}
	}
	then, unknown := c.servicesThen(services)
	ran, more := c.jobsThen(jobs)
	out = slices.Concat(out, then, ran)
	if unknown = slices.Compact(append(unknown, more...)); len(unknown) > 0 {
		c.assume("rules unknown: %d workloads are not there now, and have requests and replicas only, as metrics had them: %s", len(unknown), c.someNames(unknown))
	}
	slices.SortStableFunc(out, byName)
	return out
}

// servicesThen returns the services of the history. Those that still exist have their current
// rules; unknown are the names of the others.
func (c *workWriter) servicesThen(now map[string]*load) (out []*load, unknown []string) {
	h := c.o.History
	for i := range h.Workloads {
		w := &h.Workloads[i]
		x := now[w.Kind.String()+w.Name]
		if x == nil {
			if x = unruled(w.Name, w.Kind, &w.Pod); x == nil {
				c.leave(1, "workloads that were there then, of whose pods the metrics have no requests")
				continue
			}
			unknown = append(unknown, w.Name)
		}
		delete(now, w.Kind.String()+w.Name)
		x.then(&w.Pod)
		x.past = &past{schedule: scheduleOf(h.From, w.Replicas), first: w.Replicas[0].N,
			rollouts: releasesOf(h.From, w.Rollouts)}
		c.then[keyThen(w.Kind, w.Name)] = []*load{x}
		out = append(out, x)
	}
	if len(now) > 0 {
		c.leave(len(now), "workloads that the history does not have, or had no replicas then")
	}
	return out, unknown
}

// jobsThen is like servicesThen for the jobs of the history.
func (c *workWriter) jobsThen(now map[string]*load) (out []*load, unknown []string) {
	h, named := c.o.History, map[string]int{}
	for i := range h.Jobs {
		j := &h.Jobs[i]
		x := unruled(j.Name, policy.KindJob, &j.Pod)
		switch known := now[j.Name]; {
		case known != nil:
			same := *known
			x = &same
		case x == nil:
			c.leave(len(j.Runs), "jobs of whose pods the metrics have no requests")
			continue
		default:
			unknown = append(unknown, j.Name)
		}
		x.name = j.Name
		if named[j.Name]++; named[j.Name] > 1 {
			x.name += fmt.Sprintf("-%d", named[j.Name])
		}
		x.then(&j.Pod)
		x.past = &past{job: j}
		c.then[keyThen(policy.KindJob, j.Name)] = append(c.then[keyThen(policy.KindJob, j.Name)], x)
		out = append(out, x)
	}
	for name := range now {
		if named[name] == 0 {
			c.leave(1, "jobs of now that the history does not have")
		}
	}
	return out, unknown
}

// someNames lists at most 12 names of workloads.
func (c *workWriter) someNames(list []string) string {
	const most = 12
	var out []string
	for _, name := range list[:min(len(list), most)] {
		out = append(out, c.names.qualified(name, "app"))
	}
	if n := len(list) - most; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}

func namespaceOf(name string) string { namespace, _ := split(name); return namespace }

// unruled returns a load with only the data of metrics, or nil if these do not have the requests of
// its pods.
func unruled(name string, kind policy.WorkloadKind, p *history.Pod) *load {
	if p.Requests.CPU == 0 && p.Requests.Memory == 0 {
		return nil
	}
	r := p.Requests
	r.Pods = 1
	return &load{name: name, kind: kind, t: &policy.Template{
		Name: name, Namespace: namespaceOf(name), Requests: r, GPUResource: p.GPUResource,
		Grace: graceDefault, OutagePenalty: -1, MigrationTier: -1,
	}}
}

// then sets the requests and the start time of x to those of the history.
func (x *load) then(p *history.Pod) {
	t := *x.t
	scale := func(now *int64, mean, latest int64) {
		if latest > 0 && mean != latest {
			*now = int64(float64(*now)*(float64(mean)/float64(latest)) + 0.5)
		}
	}
	scale(&t.Requests.CPU, p.Requests.CPU, p.Latest.CPU)
	scale(&t.Requests.Memory, p.Requests.Memory, p.Latest.Memory)
	x.t = &t
	if p.Start > 0 {
		x.starts = []time.Duration{p.Start}
	}
}

// scheduleOf returns replicas over time in the form of the annotation of a workload.
func scheduleOf(from policy.Time, changes []history.Change) string {
	var words []string
	last := time.Duration(-1)
	for _, c := range changes {
		after := c.At.Sub(from).Round(time.Second)
		if after <= last { // of two changes within a second, the later one is kept
			words = words[:len(words)-1]
		}
		last = after
		words = append(words, fmt.Sprintf("+%v=%d", after, c.N))
	}
	return strings.Join(words, " ")
}

// jobThen returns a Job that runs as often as it did in the history.
func (c *workWriter) jobThen(x *load, j *history.Job) any {
	m, pod := c.parts(x, "Job")
	m.Annotations[kube.AnnotationDuration] = j.Took.String()
	if x.t.Checkpoint > 0 {
		m.Annotations[kube.AnnotationCheckpoint] = x.t.Checkpoint.String()
	}
	m.Annotations[scenarios.AnnotationReleases] = releasesOf(c.o.History.From, j.Runs)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	spec := batchv1.JobSpec{Parallelism: &j.Parallelism, Completions: &j.Completions, Template: pod}
	if x.t.Gang > 1 && j.Parallelism == j.Completions {
		spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	}
	c.out.Pods += len(j.Runs) * int(j.Completions)
	return &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: m, Spec: spec}
}

// releasesOf returns the start times of jobs in the form of the annotation of a Job, or the times
// of rollouts in that of a Deployment.
func releasesOf(from policy.Time, runs []policy.Time) string {
	var words []string
	for i := 0; i < len(runs); {
		after := runs[i].Sub(from).Round(time.Second)
		n := 1
		for i+n < len(runs) && runs[i+n].Sub(from).Round(time.Second) == after {
			n++
		}
		word := after.String()
		if n > 1 {
			word += fmt.Sprintf("*%d", n)
		}
		words = append(words, word)
		i += n
	}
	return strings.Join(words, " ")
}
