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
	text, err := input.ReadManifests(ctx, path, false)
	if err != nil {
		return nil, err
	}
	name := input.FileName(path)
	d, err := dumpOf(text)
	if err != nil || d == nil {
		return t.ofManifests("the manifests in "+name, path, text) // which reports what is wrong with them
	}
	x := &sight{server: name, manifests: "the objects in " + name}
	t.say("reading the cluster in %s", name)
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

// ofManifests makes a trial of the text of manifests, which errors call name.
func (t *trial) ofManifests(what, name string, text []byte) (*staged, error) {
	x := &sight{Cluster: &capture.Cluster{Snapshot: &policy.Snapshot{Now: policy.TimeOf(t.began.UTC().Truncate(time.Second))}}, taken: &capture.Captured{}, withoutCluster: true}
	x.manifests = what
	text, sc, notes, err := input.ScenarioOf(name, text)
	if err != nil {
		return nil, err
	}
	t.say("trying %s", what)
	for _, line := range notes {
		t.say("%s", line)
	}
	s := &staged{file: t.folder.scenario(), text: scenarios.WithoutOrigins(text), seen: x, taken: x.taken, times: 1}
	var market input.MarketFlags
	market.Register(pflag.NewFlagSet("try", pflag.ContinueOnError)) // all of them by default
	if s.bound, err = market.Bind(sc, input.Traces{}, 0); err != nil {
		return nil, err
	}
	for _, warning := range s.bound.Warnings {
		t.say("warning: %s", warning)
	}
	if len(s.bound.Workloads) == 0 {
		return nil, cli.Invalid(fmt.Errorf("%s: there is no workload in it", name), "give a folder with manifests of Deployments, StatefulSets or Jobs")
	}
	s.length = s.bound.Duration
	return s, nil
}

// demoName is that of the demonstration in errors.
const demoName = "demo.yaml"

// errTwoSources is returned where several things to try are named.
var errTwoSources = errors.New("-f, --demo and --context: each names something else to try")
