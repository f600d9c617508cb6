package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/internal/nearest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// readPod sets the fields of t, whose Name and Namespace are set, from the pod template at path,
// and returns errors in it.
func (sc *Scenario) readPod(doc *document, path []string, t *policy.Template, pod *corev1.PodTemplateSpec) []error {
	var errs []error
	fail := func(at []string, format string, args ...any) {
		errs = append(errs, doc.problem(append(slices.Clip(path), at...), format, args...))
	}
	priority := func(class string) (kube.Priority, error) { return sc.priority(class, t.Name, pod.Spec.Priority) }
	r := kube.Reader{Fail: fail, Warn: sc.warn, Priority: priority}
	r.Template(t, pod.Labels, sc.admit(t.Name, t.Namespace, &pod.Spec))
	readNodeLabels(t, fail)
	if len(pod.Spec.ResourceClaims) > 0 {
		sc.warn("%s: its resource claims are ignored: scenarios have no devices by claims, and budgets count none of them", t.Name)
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		sc.warn("%s: its scheduling gates are taken to be open", t.Name)
	}
	if len(pod.Spec.Containers) == 0 {
		fail([]string{"spec", "containers"}, "must not be empty")
	}
	return errs
}

// priority returns the priority class with this name, or the default one if class is empty. If the
// class is not in the input, value, the priority that the API server set in the pods, is used
// unless it is nil.
func (sc *Scenario) priority(class, workload string, value *int32) (kube.Priority, error) {
	p, ok := sc.priorities[class]
	_, mistyped := nearest.Of(class, slices.Collect(maps.Keys(sc.priorities)))
	switch {
	case class == "":
		return sc.defaultPriority, nil
	case ok:
		return p, nil
	case value != nil:
		return kube.Priority{Name: class, Value: *value}, nil
	case mistyped:
		return p, fmt.Errorf("there is no PriorityClass %q%s", class, suggestion(class, sc.priorities))
	}
	sc.note(fmt.Sprintf("PriorityClass %s is not given, and pods of it have the priority 0", class), workload)
	return kube.Priority{Name: class}, nil
}

func needsGPU(t policy.Template) bool { return t.Requests.GPU > 0 }

// Index returns the element of a path that refers to entry i of a list, counted from 0.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }
