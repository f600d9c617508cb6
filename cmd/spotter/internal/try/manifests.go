package try

import (
	"bytes"
	"context"
	_ "embed" // the demonstration
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
	text, err := textOf(path)
	if err != nil {
		return nil, cli.Invalid(err, "give a file or folder with manifests")
	}
	d, err := dumpOf(text)
	if err != nil || d == nil {
		return t.ofManifests("the manifests in "+path, path, text) // which says what is wrong with them
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

// textOf returns the text of a file, of an embedded scenario, or of all manifests in a folder.
func textOf(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return scenarios.Source(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, e := range entries {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) || e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: there is no file that ends with .yaml, .yml or .json", path)
	}
	return bytes.Join(all, []byte("\n---\n")), nil
}

// demonstration is what is tried in place of a cluster.
const demonstration = "a demonstration: this cluster does not exist"

// ofManifests makes a trial of the text of manifests, which errors call name.
func (t *trial) ofManifests(what, name string, text []byte) (*staged, error) {
	x := &sight{Cluster: &capture.Cluster{Snapshot: &policy.Snapshot{Now: policy.TimeOf(t.began.UTC().Truncate(time.Second))}}, taken: &capture.Captured{}, withoutCluster: true}
	x.manifests = what
	s := &staged{file: t.folder.scenario(), text: text, seen: x, taken: x.taken, times: 1}
	sc, err := input.ParseScenario(name, text)
	if err != nil {
		return nil, err
	}
	t.say("trying %s", what)
	var market input.MarketFlags
	market.Register(pflag.NewFlagSet("try", pflag.ContinueOnError)) // all of them by default
	if s.bound, err = market.Bind(sc, input.Traces{}, 0); err != nil {
		return nil, err
	}
	if len(s.bound.Workloads) == 0 {
		return nil, cli.Invalid(fmt.Errorf("%s: there is no workload in it", name), "give a folder with manifests of Deployments, StatefulSets or Jobs")
	}
	s.length = s.bound.Duration
	return s, nil
}

// demoName is that of the demonstration in errors.
const demoName = "demo.yaml"

// errTwoSources says that one thing is to be tried.
var errTwoSources = errors.New("-f, --demo and --context: each names something else to try")
