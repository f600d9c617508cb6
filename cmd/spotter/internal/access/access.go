// Package access determines which cluster a command connects to, and with which identity.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
)

// A Cluster selects an API server. The zero value selects the API server that kubectl would use, or
// that of the pod if there is no kubeconfig.
type Cluster struct{ Kubeconfig, Context string }

// Register adds the flags that set c.
func (c *Cluster) Register(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"reach the cluster by `FILE` (default: KUBECONFIG, the pod's service account, ~/.kube/config)")
	flags.StringVar(&c.Context, "context", c.Context, "use the context `NAME` of the kubeconfig")
	cli.Section(flags, "Cluster", "kubeconfig", "context")
}

// Name returns the name of the kubeconfig context that is used. It is empty in a pod.
func (c *Cluster) Name() string {
	if c.Context != "" {
		return c.Context
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// Config returns the client configuration for the API server. The user agent contains version.
func (c *Cluster) Config(version string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, cli.Invalid(fmt.Errorf("no cluster: %w", ErrNoKubeconfig), clusterAdvice)
	case err != nil:
		return nil, cli.Invalid(fmt.Errorf("no cluster: %w", err), clusterAdvice)
	}
	cfg.UserAgent = "spotter/" + version
	server := "the API server at " + cfg.Host
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return reporter{next, server} })
	return cfg, nil
}

const clusterAdvice = "give --kubeconfig, set KUBECONFIG, or run in a pod with a service account"

// ErrNoKubeconfig means that there is no kubeconfig and that the process does not run in a pod.
var ErrNoKubeconfig = errors.New("no kubeconfig was found")

// A reporter adds the name of the server to the errors of requests that received no response.
type reporter struct {
	next   http.RoundTripper
	server string
}

// RoundTrip sends a request. A request that its caller cancelled is not an error of the server.
func (r reporter) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(q)
	if err != nil && !errors.Is(q.Context().Err(), context.Canceled) {
		err = &cli.UnreachableError{Server: r.server, Err: err}
	}
	return answer, err
}

// WrappedRoundTripper gives clients access to the wrapped transport.
func (r reporter) WrappedRoundTripper() http.RoundTripper { return r.next }

// Client returns a client for the built-in kinds of Kubernetes and for those that kinds add to the
// scheme.
func Client(cfg *rest.Config, kinds ...func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range append(kinds, clientgoscheme.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// RegisterNamespace adds the flag for the namespace of the controller's lease.
func RegisterNamespace(flags *pflag.FlagSet, namespace *string) {
	flags.StringVarP(namespace, "namespace", "n", "",
		"the controller keeps its lease in namespace `NAME` (default: the pod's own, else spotter)")
}

// ownNamespaceFile is the file that contains the namespace of the pod in which the process runs.
const ownNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// OwnNamespace returns the namespace of the pod in which this process runs, or "spotter" outside a
// pod.
func OwnNamespace() string {
	if b, err := os.ReadFile(ownNamespaceFile); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b))
	}
	return "spotter"
}

// Identity returns the name of this process in the lease. A restarted container has the same host
// name but is another leader, so the identity contains the process ID and the time.
func Identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s_%d_%d", host, os.Getpid(), time.Now().UnixNano())
}
