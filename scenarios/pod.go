package scenarios

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// readPod fills t, whose Name and Namespace are set, from the pod template at
// path, and returns what is wrong with it.
func (sc *Scenario) readPod(doc *document, path []string, t *policy.Template, pod *corev1.PodTemplateSpec) []error {
	var errs []error
	fail := func(at []string, format string, args ...any) {
		errs = append(errs, doc.problem(append(slices.Clip(path), at...), format, args...))
	}
	r := kube.Reader{Fail: fail, Warn: sc.warn, Priority: sc.priority}
	r.Template(t, pod.Labels, &pod.Spec)
	readNodeLabels(t, fail)
	if len(pod.Spec.SchedulingGates) > 0 {
		sc.warn("%s: its scheduling gates are taken to be open", t.Name)
	}
	if len(pod.Spec.Containers) == 0 {
		fail([]string{"spec", "containers"}, "must not be empty")
	}
	return errs
}

// priority returns the priority class of that name, the default for none.
func (sc *Scenario) priority(class string) (kube.Priority, error) {
	if class == "" {
		return sc.defaultPriority, nil
	}
	p, ok := sc.priorities[class]
	if !ok {
		return p, fmt.Errorf("no PriorityClass is called %q%s", class, suggestion(class, sc.priorities))
	}
	return p, nil
}

func needsGPU(t policy.Template) bool { return t.Requests.GPU > 0 }

// Index is the part of a path that stands for the i-th entry of a list.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }
