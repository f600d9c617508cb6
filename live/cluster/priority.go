package cluster

import (
	"fmt"
	"maps"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/spotter-dev/spotter/policy/kube"
)

// A priorityTable contains the PriorityClasses. All pods are marked to be read again when one
// changes.
type priorityTable struct {
	pods      *podSlots
	workloads *workloadTable

	byName map[string]kube.Priority
	preset kube.Priority // priority of pods without a class
}

func (t *priorityTable) set(c *schedulingv1.PriorityClass) {
	p := kube.PriorityOf(c)
	if t.byName[c.Name] != p || c.GlobalDefault != (t.preset.Name == c.Name) {
		t.pods.touchWhere(func(*podEntry) bool { return true })
		t.workloads.redeclare()
	}
	t.byName[c.Name] = p
	switch {
	case c.GlobalDefault:
		t.preset = p
	case t.preset.Name == c.Name:
		t.preset = kube.Priority{}
	}
}

func (t *priorityTable) drop(c *schedulingv1.PriorityClass) {
	delete(t.byName, c.Name)
	maps.Copy(t.byName, kube.SystemPriorities())
	if t.preset.Name == c.Name {
		t.preset = kube.Priority{}
	}
	t.pods.touchWhere(func(*podEntry) bool { return true })
	t.workloads.redeclare()
}

// get returns the priority of a class, or the default priority if class is empty. If the class does
// not exist, it returns an error and a priority without a value: the API server has written the
// value to the pod.
func (t *priorityTable) get(class string) (kube.Priority, error) {
	if class == "" {
		return t.preset, nil
	}
	p, ok := t.byName[class]
	if !ok {
		return kube.Priority{Name: class}, fmt.Errorf("there is no PriorityClass %q", class)
	}
	return p, nil
}
