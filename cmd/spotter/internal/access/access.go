// Package access says which cluster a command reaches, and as whom.
package access

import (
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/cli"
)

// A Cluster says which API server is meant. The zero value means the one that kubectl
// would reach, else that of the pod.
type Cluster struct{ Kubeconfig, Context string }

// Config returns how a program of a version reaches the API server.
func (c *Cluster) Config(version string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("no cluster: %w", err), "give --kubeconfig, set KUBECONFIG, or run in a pod with a service account")
	}
	cfg.UserAgent = "spotter/" + version
	return cfg, nil
}

// ownNamespaceFile is where a pod finds the namespace that it runs in.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace of the pod that this process runs in, "spotter"
// outside one.
func OwnNamespace() string {
	if b, err := os.ReadFile(ownNamespaceFile); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b))
	}
	return "spotter"
}

// Identity names this process in the lease: a pod that is restarted keeps its name
// and is another leader all the same.
func Identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano())
}
