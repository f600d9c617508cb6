package try

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
)

// A fleet is the result for several clusters in machine-readable form.
type fleet struct {
	Clusters []*result `json:"clusters"`

	// Sum is the sum of their costs.
	Sum sum `json:"sum"`
}

// A sum is the cost of all clusters in dollars per month.
type sum struct {
	Now      float64    `json:"now_usd_month"`
	Policies []sumOfRow `json:"policies"`
}

// A sumOfRow is the sum of the medians of one policy, which has no interval.
type sumOfRow struct {
	Policy string  `json:"policy"`
	Month  float64 `json:"usd_month"`
	Change float64 `json:"change_pct"`
}

// contexts returns the contexts of --context.
func (f *call) contexts() ([]string, error) {
	all := strings.Split(f.cluster.Context, ",")
	for i, name := range all {
		all[i] = strings.TrimSpace(name)
		if len(all) > 1 && all[i] == "" || slices.Contains(all[:i], all[i]) {
			return nil, cli.Invalid(fmt.Errorf("--context: %q: a context is empty or named twice", f.cluster.Context),
				"name each context once, with commas between them")
		}
	}
	return all, nil
}

// runFleet reads all clusters before it simulates any, so that a cluster that cannot be read is
// reported early.
func runFleet(ctx context.Context, p *cli.Program, f *call, contexts []string) error {
	var trials []*trial
	var read []*sight
	for _, name := range contexts {
		one := *f
		one.cluster = access.Cluster{Kubeconfig: f.cluster.Kubeconfig, Context: name}
		one.dir = filepath.Join(f.dir, folderOf(name, trials))
		t := &trial{p: p, f: &one, folder: folder{one.dir, f.noFiles}, began: time.Now(), patient: defaultLimits()}
		if err := t.folder.check(f.force); err != nil {
			return err
		}
		seen, err := t.read(ctx)
		if err != nil {
			return fmt.Errorf("context %s: %w", name, err)
		}
		trials, read = append(trials, t), append(read, seen)
	}
	all := &fleet{}
	for i, t := range trials {
		t.began = time.Now()
		s, err := t.scenario(ctx, read[i])
		if err != nil {
			return err
		}
		r, err := t.on(ctx, s)
		if err != nil {
			return err
		}
		all.Clusters = append(all.Clusters, r)
	}
	all.add()
	return p.Print(&f.form, all, func(w io.Writer, wide bool) error {
		return all.answer().Write(w, format.Options{Width: p.Width(""), Color: p.Colors(""), Details: wide ||
			f.form.Details()})
	})
}

// folderOf returns a folder name for a context that differs from those of earlier trials.
func folderOf(name string, before []*trial) string {
	plain := capture.Plain(name)
	for k := 2; plain == "" ||
		slices.ContainsFunc(before, func(t *trial) bool { return filepath.Base(t.folder.dir) == plain }); k++ {
		plain = strings.Trim(fmt.Sprintf("%s-%d", capture.Plain(name), k), "-")
	}
	return plain
}

// add computes the sum.
func (x *fleet) add() {
	for i := range x.Clusters[0].Policies {
		x.Sum.Policies = append(x.Sum.Policies, sumOfRow{Policy: x.Clusters[0].Policies[i].Policy})
	}
	for _, r := range x.Clusters {
		x.Sum.Now += r.Now.Month
		for i := range r.Policies {
			x.Sum.Policies[i].Month += r.Policies[i].Month
		}
	}
	for i := range x.Sum.Policies {
		if p := &x.Sum.Policies[i]; x.Sum.Now > 0 {
			p.Change = 100 * (p.Month/x.Sum.Now - 1)
		}
	}
}
