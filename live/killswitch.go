package live

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KillSwitchAnnotation on the ConfigMap of the kill switch says "true" to stop and
// "false" to go on.
const KillSwitchAnnotation = "spotter.dev/kill-switch"

// A killSwitch is the state of the switch as it was last seen. The object only says
// so: while it is not there, or cannot be read, what it said last holds, and that
// stands in the memory, so that a new leader knows it too.
type killSwitch struct {
	reader client.Reader
	key    client.ObjectKey

	stopped bool

	// missing says that the object is not there or cannot be read, and why.
	missing string
}

// read reads the switch and reports whether its state has changed.
func (k *killSwitch) read(ctx context.Context) (changed bool) {
	if k.key.Name == "" {
		return false
	}
	var x corev1.ConfigMap
	if err := k.reader.Get(ctx, k.key, &x); err != nil {
		k.missing = err.Error()
		if apierrors.IsNotFound(err) {
			k.missing = fmt.Sprintf("ConfigMap %s is not there", k.key)
		}
		return false
	}
	k.missing = ""
	value, there := x.Annotations[KillSwitchAnnotation]
	if !there {
		k.missing = fmt.Sprintf("ConfigMap %s has no annotation %s", k.key, KillSwitchAnnotation)
		return false
	}
	on, err := strconv.ParseBool(value)
	if err != nil { // somebody meant something, and doing nothing harms least
		on = true
		k.missing = fmt.Sprintf("annotation %s of ConfigMap %s is %q, neither true nor false: taken for true", KillSwitchAnnotation, k.key, value)
	}
	changed = on != k.stopped
	k.stopped = on
	return changed
}
