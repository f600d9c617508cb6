package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// A leftReason is the reason why an object is not simulated.
type leftReason uint8

const (
	kept      leftReason = iota
	leftOther            // no run depends on objects of its kind
	leftOwned            // another object of the input creates it
	leftEnded            // it has finished
	leftHook             // a tool runs it during an installation only
	leftNode             // the kubelet creates it, or a DaemonSet that is not in the input
	leftReasons
)

// leftWords describe the reason in the line about skipped objects.
var leftWords = [leftReasons]string{
	leftOwned: "made by other objects: ", leftEnded: "finished: ", leftHook: "run only by an installation: ",
	leftNode: "of the kubelet or of DaemonSets that are not given: ",
}

// An unsimulated kind has an effect on a cluster, but is not simulated.
type unsimulated struct{ group, why string }

// unsimulatedKinds cause a warning, as does any unknown kind that appears to run pods.
var unsimulatedKinds = map[string]unsimulated{
	"CapacityBuffer": {"autoscaling.x-k8s.io",
		"capacity that is kept free is not simulated (Karpenter has it since 1.14, behind a feature gate)"},
	classAKS: {"karpenter.azure.com",
		"its settings are not simulated: nodes have the disk and the pod limit that AKS has by default"},
	classGCE: {"karpenter.k8s.gcp",
		"its settings are not simulated: nodes have the disk and the pod limit that GKE has by default"},
	"ResourceQuota":         {"", "quotas are not enforced"},
	"VerticalPodAutoscaler": {"autoscaling.k8s.io", "sizes of pods stay as stated"},
	"ScaledJob":             {"keda.sh", "its Jobs are not simulated: state a Job with " + AnnotationReleases},
	"ReplicationController": {"", "its pods are not simulated: state a Deployment"},
}

// leftOut contains the objects of an input that are not simulated.
type leftOut struct {
	counts   [leftReasons]map[string]int
	unknown  []error // for each object of leftOther
	running  []*document
	warnings map[string][]string // names of objects by the reason in unsimulatedKinds
}

func (l *leftOut) add(why leftReason, d *document) {
	if l.counts[why] == nil {
		l.counts[why] = map[string]int{}
	}
	l.counts[why][cmp.Or(d.kind(), "document without a kind")]++
	if why != leftOther {
		return
	}
	l.unknown = append(l.unknown, d.problem([]string{"kind"}, "%q is not simulated%s", d.kind(),
		suggestion(d.kind(), kinds)))
	switch x, known := unsimulatedKinds[d.kind()]; {
	case known && x.group == groupOf(d.version()):
		if l.warnings == nil {
			l.warnings = map[string][]string{}
		}
		l.warnings[x.why] = append(l.warnings[x.why], d.title())
	case d.runsPods():
		l.running = append(l.running, d)
	}
}

// line lists the numbers of skipped objects by kind, in descending order; "" if none were skipped.
func (l *leftOut) line() string {
	var parts []string
	for why, counts := range l.counts {
		if len(counts) == 0 {
			continue
		}
		parts = append(parts, leftWords[why]+kindCounts(counts))
	}
	if len(parts) == 0 {
		return ""
	}
	return "skipped: " + strings.Join(parts, "; ")
}

// SkippedLine lists the numbers of skipped objects by kind, in descending order.
func SkippedLine(counts map[string]int) string { return "skipped: " + kindCounts(counts) }

func kindCounts(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, kind := range names {
		names[i] = fmt.Sprintf("%s %d", kind, counts[kind])
	}
	return strings.Join(names, ", ")
}

// warn warns of skipped objects that would have an effect on a cluster. Owners are the keys of
// objects that own a simulated object.
func (l *leftOut) warn(sc *Scenario, owners map[string]bool) {
	for _, why := range slices.Sorted(maps.Keys(l.warnings)) {
		sc.warn("%s: %s", some(l.warnings[why]), why)
	}
	var running []string
	for _, d := range l.running {
		if !owners[d.key()] {
			running = append(running, d.title())
		}
	}
	if len(running) > 0 {
		sc.warn("not simulated, though their controllers seem to run pods: %s; add the workloads that these make, as `kubectl get all -o yaml` prints them", some(running))
	}
}

// some lists the first names, and the number of the others.
func some(names []string) string {
	const shown = 5
	if n := len(names) - shown; n > 0 {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ")
}

// sift separates the documents that are simulated from those that are not.
func sift(docs []document) (simulated []document, left *leftOut, errs []error) {
	left = &leftOut{}
	here, uids := map[string]bool{}, map[string]bool{}
	objects := false
	for i := range docs {
		objects = objects || docs[i].kind() != ""
		if _, ok := docs[i].known(); ok {
			here[docs[i].key()] = true
		}
	}
	absent := map[string]int{} // index in simulated of the first pod of an absent controller
	for i := range docs {
		d := &docs[i]
		why, err := d.leave(here, objects)
		switch uid := d.scalar("metadata", "uid"); {
		case err != nil:
			errs = append(errs, err)
			continue
		case why != kept:
			left.add(why, d)
			continue
		case uid != "" && uids[uid]:
			continue // the same object, printed twice
		case uid != "":
			uids[uid] = true
		}
		if kind, name, owned := d.owner(); d.kind() == "Pod" && owned {
			key := kind + " " + d.qualified(name)
			if at, more := absent[key]; more {
				simulated[at].pods++
				continue
			}
			absent[key], d.pods = len(simulated), 1
		}
		simulated = append(simulated, *d)
	}
	return simulated, left, errs
}

// leave returns the reason why an object is not simulated, or kept. Here contains the keys of the
// objects of supported kinds, and objects reports whether the input has any objects. An object
// whose kind appears to be mistyped is an error.
func (d *document) leave(here map[string]bool, objects bool) (leftReason, error) {
	if d.kind() == "" {
		object := d.version() != "" || d.at([]string{"metadata"}) != nil
		if d.node.Kind == yaml.MappingNode && !object && objects {
			return leftOther, nil // not an object, such as the values of a chart in a folder
		}
		return kept, d.problem([]string{"kind"}, "must be set")
	}
	if _, ok := d.known(); !ok {
		return leftOther, d.mistyped()
	}
	owner, name, owned := d.owner()
	switch kind := d.kind(); {
	case owned && here[owner+" "+d.qualified(name)]:
		return leftOwned, nil
	case kind != "Pod" && kind != "Job":
		return kept, nil
	case d.finished():
		return leftEnded, nil
	case d.at([]string{"metadata", "annotations", "helm.sh/hook"}) != nil,
		d.at([]string{"metadata", "annotations", "argocd.argoproj.io/hook"}) != nil:
		return leftHook, nil
	case d.at([]string{"metadata", "annotations", "kubernetes.io/config.mirror"}) != nil, owner == "Node", owner == "DaemonSet":
		return leftNode, nil
	}
	return kept, nil
}

// groupOf returns the API group of an apiVersion, or "" for the core group.
func groupOf(version string) string {
	group, _, named := strings.Cut(version, "/")
	if !named {
		return ""
	}
	return group
}

// known returns the kind of an object and whether it is simulated. Kinds with the same name are
// distinguished by their API group. A mistyped group, or one that Kubernetes has retired, counts as
// the group of the kind, so that its apiVersion causes an error instead of the object being
// skipped.
func (d *document) known() (kind, bool) {
	if d.is != "" {
		return describedKinds[d.is], true
	}
	k, ok := kinds[d.kind()]
	want, group := groupOf(k.apiVersion), groupOf(d.version())
	if !ok || group == want || group == "extensions" || d.version() == "" {
		return k, ok
	}
	_, near := nearest.Of(group, []string{want})
	return k, near && !strings.Contains(group, ".")
}

// mistyped returns an error for a kind that resembles a supported kind of the same API group, and
// for an unknown kind in the API group of Spotter.
func (d *document) mistyped() error {
	group := groupOf(d.version())
	if _, warned := unsimulatedKinds[d.kind()]; warned || kinds[d.kind()].make != nil {
		return nil
	}
	for form := range oldForms {
		if form[1] == d.kind() && groupOf(form[0]) == group { // of a version that is not converted
			return d.problem([]string{"kind"}, "%q is not read here%s", d.kind(), newVersion(d.version()))
		}
	}
	best, near := nearest.Of(d.kind(), slices.Sorted(maps.Keys(kinds)))
	if near && groupOf(kinds[best].apiVersion) == group || group == groupOf(kinds["Scenario"].apiVersion) {
		return d.problem([]string{"kind"}, "%q is not read here%s", d.kind(), suggestion(d.kind(), kinds))
	}
	return nil
}

// owner returns the controller that owns an object.
func (d *document) owner() (kind, name string, owned bool) {
	owners := d.at([]string{"metadata", "ownerReferences"})
	if owners == nil {
		return "", "", false
	}
	for i := range owners.Content {
		at := func(field string) string { return d.scalar("metadata", "ownerReferences", Index(i), field) }
		if at("controller") == "true" {
			return at("kind"), at("name"), true
		}
	}
	return "", "", false
}

// key identifies an object by its kind, namespace and name.
func (d *document) key() string { return d.kind() + " " + d.qualified(d.name()) }

// title returns the kind and name of an object for messages.
func (d *document) title() string {
	if namespace := d.scalar("metadata", "namespace"); namespace != "" {
		return d.kind() + " " + namespace + "/" + d.name()
	}
	return d.kind() + " " + d.name()
}

// name returns the name of the object, or the prefix of a name that the API server generates.
func (d *document) name() string {
	return cmp.Or(d.scalar("metadata", "name"), strings.TrimSuffix(d.scalar("metadata", "generateName"), "-"))
}

// qualified returns the name of an object in the namespace of d.
func (d *document) qualified(name string) string {
	return cmp.Or(d.scalar("metadata", "namespace"), "default") + "/" + name
}

// finished reports whether a Pod or Job has ended, according to its status.
func (d *document) finished() bool {
	if d.kind() == "Pod" {
		phase := d.scalar("status", "phase")
		return phase == "Succeeded" || phase == "Failed"
	}
	conditions := d.at([]string{"status", "conditions"})
	if conditions == nil {
		return false
	}
	for i := range conditions.Content {
		at := func(field string) string { return d.scalar("status", "conditions", Index(i), field) }
		if is := at("type"); (is == "Complete" || is == "Failed") && at("status") == "True" {
			return true
		}
	}
	return false
}

// runsPods reports whether an object of an unknown kind contains containers or a number of
// replicas, as the custom resources of operators do.
func (d *document) runsPods() bool {
	switch groupOf(d.version()) {
	case "", "apps", "apiextensions.k8s.io": // templates, revisions and schemas run nothing
		return false
	}
	spec := d.at([]string{"spec"})
	if spec == nil {
		return false
	}
	for _, field := range []string{"replicas", "instances"} {
		if n := child(spec, field); n != nil && n.Tag == "!!int" && n.Value != "0" {
			return true
		}
	}
	return statesContainers(spec)
}

func statesContainers(n *yaml.Node) bool {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if list := resolve(n.Content[i+1]); n.Content[i].Value == "containers" && list.Kind == yaml.SequenceNode {
			return slices.ContainsFunc(list.Content, func(c *yaml.Node) bool { return child(c, "image") != nil })
		}
		if statesContainers(n.Content[i+1]) {
			return true
		}
	}
	return false
}
