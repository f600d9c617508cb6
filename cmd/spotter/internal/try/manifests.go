package try

import (
	"context"
	_ "embed" // the demonstration
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

//go:embed demo.yaml
var demo []byte

// ofFiles prepares a trial of the manifests in a file or folder. If they contain nodes, they are
// treated as a cluster.
func (t *trial) ofFiles(ctx context.Context, path string) (*staged, error) {
	text, err := input.ReadManifests(ctx, path, t.f.sources.Recursive)
	if err != nil {
		return nil, err
	}
	name := path
	if path == input.Stdin {
		name = "standard input"
	}
	d, err := dumpOf(text)
	if err != nil || d == nil {
		return t.ofManifests("the manifests in "+name, path, text) // reports the errors of the text
	}
	x := &sight{server: name, manifests: "the objects in " + name}
	t.say("reading the cluster in %s", name)
	read := func(o *capture.Options, log io.Writer) (*capture.Cluster, error) {
		return capture.ReadBy(ctx, d, o, log)
	}
	if err := x.take(ctx, read); err != nil {
		return nil, err
	}
	if skipped := d.skipped(); skipped != "" && t.f.sources.Strict {
		return nil, cli.Invalid(fmt.Errorf("%s: not simulated: %s", name, skipped),
			"take these objects out, or leave --strict out to skip them")
	} else if skipped != "" {
		t.say("skipped: %s", skipped)
	}
	return t.scenario(ctx, x)
}

// demonstration describes the example that is tried instead of a cluster.
const demonstration = "a demonstration: this cluster does not exist"

// ofManifests prepares a trial of manifests. name identifies them in errors.
func (t *trial) ofManifests(what, name string, text []byte) (*staged, error) {
	now := policy.TimeOf(t.began.UTC().Truncate(time.Second))
	x := &sight{
		Cluster: &capture.Cluster{Snapshot: &policy.Snapshot{Now: now}}, taken: &capture.Captured{},
		manifests: what, withoutCluster: true,
	}
	s := &staged{file: t.folder.scenario(), seen: x, taken: x.taken, times: 1}
	t.say("trying %s", what)
	text, sc, added, err := t.f.sources.Complete(t.p, name, text)
	if err != nil {
		return nil, err
	}
	s.text = scenarios.WithoutOrigins(text)
	var market input.MarketFlags
	market.Register(pflag.NewFlagSet("try", pflag.ContinueOnError)) // with the default values of all flags
	if s.bound, err = market.Bind(sc, input.Traces{}, 0); errors.Is(err, scenarios.ErrNoMarket) {
		return nil, noPrices(err)
	} else if err != nil {
		return nil, err
	}
	if len(s.bound.Workloads) == 0 {
		return nil, cli.Invalid(fmt.Errorf("%s: there is no workload in it", name),
			"give a folder with manifests of Deployments, StatefulSets or Jobs")
	}
	if added != "" {
		x.taken.Assumed = append(x.taken.Assumed, added)
	}
	x.taken.Assumed = append(x.taken.Assumed, s.bound.Warnings...)
	s.length = s.bound.Duration
	return s, nil
}

// noPrices adds advice to the error that the embedded prices do not cover the markets of the
// manifests, since try has no flag for other prices.
func noPrices(err error) error {
	if inner := (*cli.InvalidError)(nil); errors.As(err, &inner) {
		err = inner.Unwrap()
	}
	return cli.Invalid(err,
		"record prices of these zones with `spotter trace record`, and compare with `spotter eval PATH --trace DIR`")
}

// demoName is the name of the demonstration in errors.
const demoName = "demo.yaml"

// errTwoSources means that the flags select more than one source.
var errTwoSources = errors.New("-f, --demo and --context: each names something else to try")
