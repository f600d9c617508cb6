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

// ofFiles makes a trial of the manifests in a file or folder. With nodes among them they are a
// cluster, read from files.
func (t *trial) ofFiles(ctx context.Context, path string) (*staged, error) {
	text, err := scenarios.Source(path)
	if err != nil {
		return nil, cli.Invalid(err, "give a file or folder with manifests")
	}
	d, err := dumpOf(text)
	if err != nil || d == nil {
		return t.ofManifests(ctx, path) // which says what is wrong with them
	}
	x := &sight{server: path, manifests: "the objects in " + path}
	t.say("reading the cluster in %s", path)
	read := func(o *capture.Options, log io.Writer) (*capture.Cluster, error) {
		return capture.ReadBy(ctx, d, o, log)
	}
	if err := x.take(ctx, read); err != nil {
		return nil, err
	}
	return t.scenario(ctx, x)
}

// demonstration is what is tried in place of a cluster.
const demonstration = "a demonstration: this cluster does not exist"

// ofManifests makes a trial of the manifests in a file or folder, or of the demonstration
// where path is empty.
func (t *trial) ofManifests(ctx context.Context, path string) (*staged, error) {
	x := &sight{Cluster: &capture.Cluster{Snapshot: &policy.Snapshot{Now: policy.TimeOf(t.began.UTC().Truncate(time.Second))}}, taken: &capture.Captured{}, withoutCluster: true}
	s := &staged{file: t.folder.scenario(), seen: x, taken: x.taken, times: 1}
	var sc *scenarios.Scenario
	var err error
	if x.manifests = "the manifests in " + path; path == "" {
		x.manifests, s.text = demonstration, demo
		sc, err = input.ParseScenario(demoName, demo)
	} else {
		s.text, sc, err = input.ReadScenario(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	t.say("trying %s", x.manifests)
	var market input.MarketFlags
	market.Register(pflag.NewFlagSet("try", pflag.ContinueOnError)) // all of them by default
	if s.bound, err = market.Bind(sc, input.Traces{}, 0); err != nil {
		return nil, err
	}
	if len(s.bound.Workloads) == 0 {
		return nil, cli.Invalid(fmt.Errorf("%s: there is no workload in it", path), "give a folder with manifests of Deployments, StatefulSets or Jobs")
	}
	s.length = s.bound.Duration
	return s, nil
}

// demoName is that of the demonstration in errors.
const demoName = "demo.yaml"

// errTwoSources says that one thing is to be tried.
var errTwoSources = errors.New("-f, --demo and --context: each names something else to try")
