// Package access says which cluster a command reaches, and as whom.
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

// A Cluster says which API server is meant. The zero value means the one that kubectl
// would reach, else that of the pod.
type Cluster struct{ Kubeconfig, Context string }

// Register adds the flags that say it.
func (c *Cluster) Register(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"reach the cluster by `FILE` (default: KUBECONFIG, the pod's service account, ~/.kube/config)")
	flags.StringVar(&c.Context, "context", c.Context, "use the context `NAME` of the kubeconfig")
	cli.Section(flags, "Cluster", "kubeconfig", "context")
}

// Name returns the context of the kubeconfig that is used, empty in a pod.
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

// Config returns how a program of a version reaches the API server.
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

// ErrNoKubeconfig means that nothing says which cluster is meant.
var ErrNoKubeconfig = errors.New("no kubeconfig was found")

// A reporter reports requests that got no answer by the server that gave none.
type reporter struct {
	next   http.RoundTripper
	server string
}

// RoundTrip sends a request. One that its caller gave up is no fault of the server.
func (r reporter) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(q)
	if err != nil && !errors.Is(q.Context().Err(), context.Canceled) {
		err = &cli.UnreachableError{Server: r.server, Err: err}
	}
	return answer, err
}

// WrappedRoundTripper lets clients find the transport below.
func (r reporter) WrappedRoundTripper() http.RoundTripper { return r.next }

// Client returns a client of the kinds that Kubernetes has and of those that kinds add.
func Client(cfg *rest.Config, kinds ...func(*runtime.Scheme) error) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range append(kinds, clientgoscheme.AddToScheme) {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(cfg, client.Options{Scheme: scheme})
}

// RegisterNamespace adds the flag that says where a controller keeps its lease.
func RegisterNamespace(flags *pflag.FlagSet, namespace *string) {
	flags.StringVarP(namespace, "namespace", "n", "",
		"the controller keeps its lease in namespace `NAME` (default: the pod's own, else spotter)")
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
