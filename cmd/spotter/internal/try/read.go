package try

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A sight is the data read from a cluster.
type sight struct {
	*capture.Cluster
	options capture.Options
	taken   *capture.Captured

	// context and server identify the cluster. remarks describe objects that cannot be used.
	context, server string
	remarks         []string

	// manifests describes what is tried instead of a cluster; empty for a cluster.
	manifests string

	// withoutCluster reports that there is no cluster that can be changed.
	withoutCluster bool
}

const (
	// readWait is the timeout for reading all objects of a large cluster.
	readWait = 2 * time.Minute

	// remarksMax is the maximum number of remarks that are kept.
	remarksMax = 20
)

const (
	withoutCluster = "name one with --kubeconfig or --context, or set KUBECONFIG; " + tryDemo
	notReached     = "check that `kubectl get nodes` works with this kubeconfig and context; " + tryDemo
	tryDemo        = "without a cluster `spotter try --demo` shows what it prints"
)

func sayTo(w io.Writer, format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// read reads the cluster that the flags select.
func (t *trial) read(ctx context.Context) (*sight, error) {
	config, err := t.f.cluster.Config(t.p.Version)
	switch {
	case errors.Is(err, access.ErrNoKubeconfig):
		return nil, cli.Invalid(fmt.Errorf("there is no cluster to try: %w", access.ErrNoKubeconfig), withoutCluster)
	case err != nil:
		return nil, err
	}
	access.QuietClients()
	x := &sight{context: t.f.cluster.Name(), server: config.Host}
	t.say("reading context %s at %s: lists %s; nothing is changed", cmp.Or(x.context, "of the pod"), x.server,
		strings.Join(capture.Kinds(), ", "))
	if _, err := access.Ask(ctx, config); err != nil { // fails within seconds, before the longer lists
		return nil, cli.Invalid(err, notReached)
	}
	ctx, stop := context.WithTimeout(ctx, readWait)
	defer stop()
	read := func(o *capture.Options, log io.Writer) (*capture.Cluster, error) {
		return capture.Read(ctx, config, o, log)
	}
	return x, x.take(ctx, read)
}

// take calls read and makes a scenario of the cluster, which has no prices yet.
func (x *sight) take(ctx context.Context, read func(*capture.Options, io.Writer) (*capture.Cluster, error)) error {
	x.options = capture.Options{Name: "cluster", Provider: catalog.AWS, JobDuration: time.Hour, Priced: true}
	var log bytes.Buffer
	var err error
	if x.Cluster, err = read(&x.options, &log); err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return cli.Invalid(fmt.Errorf("the cluster at %s was not read within %v", x.server, readWait), notReached)
		}
		return cli.Invalid(err, notReached)
	}
	for line := range strings.Lines(log.String()) {
		if len(x.remarks) < remarksMax {
			x.remarks = append(x.remarks, strings.TrimSpace(strings.TrimPrefix(line, "level=WARN ")))
		}
	}
	if len(x.Snapshot.Nodes) == 0 {
		return cli.Invalid(errors.New("the cluster has no nodes: nothing is paid, and nothing can be tried"),
			"try it again when it has nodes, or `spotter try --demo` without a cluster")
	}
	if x.taken, err = capture.Take(x.Snapshot, x.options); err != nil {
		return cli.Invalid(fmt.Errorf("the cluster cannot be tried: %w", err),
			"see the nodes with `kubectl get nodes --show-labels`; `spotter capture --help` says what can be stated of them, and `spotter schedule --help` how to place pods on nodes of any kind")
	}
	return nil
}

// forbidSpot returns the names of the NodePools that do not allow Spot, ascending.
func (x *sight) forbidSpot() (out []string) {
	for i := range x.options.NodePools {
		if p := &x.options.NodePools[i]; !capture.Permits(p, policy.Spot.String()) {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return out
}
