package rights

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed guard.yaml
var guard string

// The names that the file of the guard has, which an installation replaces.
const (
	guardUser   = "system:serviceaccount:spotter:spotter"
	guardSwitch = "name: spotter-kill-switch, namespace: spotter,"
)

// A Guarded is the controller that the guard narrows.
type Guarded struct {
	// User is the name under which the API server knows the controller.
	User string

	// Namespace holds the ConfigMap KillSwitch.
	Namespace, KillSwitch string
}

// GuardFile returns the manifests of the admission policies that narrow the rights of a
// controller, those that hold the kill switch last.
func GuardFile(g Guarded) []byte {
	text := strings.ReplaceAll(guard, guardUser, g.User)
	return []byte(strings.ReplaceAll(text, guardSwitch, fmt.Sprintf("name: %q, namespace: %s,", g.KillSwitch,
		g.Namespace)))
}
