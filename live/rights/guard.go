package rights

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed guard.yaml
var guard string

// The names that the file of the guard has, which an installation replaces.
const (
	guardUser   = "system:serviceaccount:spotter:spotter"
	guardSwitch = "name: spotter-kill-switch, namespace: spotter,"
)

// SwitchPolicy is the name of the policy that holds the kill switch.
const SwitchPolicy = "kill-switch.spotter.dev"

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

// Guard returns the policies of [GuardFile] and their bindings, in the order of the file.
func Guard(g Guarded) []client.Object {
	var all []client.Object
	for i, text := range bytes.Split(GuardFile(g), []byte("\n---\n")) {
		var o client.Object = &admissionv1.ValidatingAdmissionPolicy{}
		if i%2 == 1 {
			o = &admissionv1.ValidatingAdmissionPolicyBinding{}
		}
		if err := yaml.UnmarshalStrict(text, o); err != nil {
			panic(fmt.Sprintf("rights: guard.yaml, which is embedded: %v", err))
		}
		all = append(all, o)
	}
	return all
}
