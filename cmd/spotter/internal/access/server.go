package access

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spotter-dev/spotter/internal/cli"
)

// answerWait is the timeout for the first response of the API server.
const answerWait = 10 * time.Second

// QuietClients keeps the Kubernetes client libraries from writing to standard error.
func QuietClients() {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
}

// A Server describes an API server that responded.
type Server struct {
	// Version is the Kubernetes version, or empty if the user may not read it.
	Version string

	// Ahead is the time by which the server's clock is ahead of the local clock, to the second.
	// Dated reports whether it is known.
	Ahead time.Duration
	Dated bool
}

// Ask requests the version of the API server, which every user may read. A server that cannot be
// reached is reported within seconds.
func Ask(ctx context.Context, config *rest.Config) (Server, error) {
	config = rest.CopyConfig(config)
	config.Timeout = answerWait
	clock := &serverClock{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { clock.next = next; return clock })
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Server{}, cli.Invalid(fmt.Errorf("the kubeconfig cannot be used: %w", err),
			"check that `kubectl get nodes` works with this kubeconfig and context")
	}
	v, err := c.ServerVersion()
	switch {
	case err == nil:
		clock.seen.Version = v.GitVersion
	case ctx.Err() != nil:
		return Server{}, ctx.Err()
	case apierrors.IsUnauthorized(err):
		return clock.seen, err
	case !apierrors.IsForbidden(err):
		return clock.seen, &cli.UnreachableError{Server: "the API server at " + config.Host, Err: err}
	}
	return clock.seen, nil
}

// A serverClock reads the Date header of responses.
type serverClock struct {
	next http.RoundTripper
	seen Server
}

// RoundTrip sends a request and compares the date of the response with the middle of the time that
// the request took. A date has no fractions of a second.
func (s *serverClock) RoundTrip(q *http.Request) (*http.Response, error) {
	sent := time.Now()
	answer, err := s.next.RoundTrip(q)
	if err != nil {
		return answer, err
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		here := sent.Add(time.Since(sent) / 2)
		s.seen.Ahead, s.seen.Dated = date.Add(time.Second/2).Sub(here).Round(time.Second), true
	}
	return answer, nil
}

// WrappedRoundTripper gives clients access to the wrapped transport.
func (s *serverClock) WrappedRoundTripper() http.RoundTripper { return s.next }
