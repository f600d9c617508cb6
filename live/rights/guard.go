package rights

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed guard.yaml
var guard string

// Names in the manifest of the guard, which each installation replaces.
const (
	guardUser   = "system:serviceaccount:spotter:spotter"
	guardSwitch = "name: spotter-kill-switch, namespace: spotter,"
)

// A Guarded identifies the controller whose rights the guard limits.
type Guarded struct {
	// User is the user name of the controller at the API server.
	User string

	// Namespace is the namespace of the ConfigMap KillSwitch.
	Namespace, KillSwitch string
}

// GuardFile returns the manifests of the admission policies that limit the rights of a controller.
// The policies that enforce the kill switch are last.
func GuardFile(g Guarded) []byte {
	text := strings.ReplaceAll(guard, guardUser, g.User)
	return []byte(strings.ReplaceAll(text, guardSwitch, fmt.Sprintf("name: %q, namespace: %s,", g.KillSwitch,
		g.Namespace)))
}
