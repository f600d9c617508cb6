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
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A fleet is several clusters, as programs read it.
type fleet struct {
	Clusters []*result `json:"clusters"`

	// Sum adds up what they cost.
	Sum sum `json:"sum"`
}

// A sum is what all clusters cost in $ a month.
type sum struct {
	Now      float64    `json:"now_usd_month"`
	Policies []sumOfRow `json:"policies"`
}

// A sumOfRow is that of one policy: medians are added, which leaves no interval.
type sumOfRow struct {
	Policy string  `json:"policy"`
	Month  float64 `json:"usd_month"`
	Change float64 `json:"change_pct"`
}

// contexts returns the contexts that the flag names.
func (f *call) contexts() ([]string, error) {
	all := strings.Split(f.cluster.Context, ",")
	for i, name := range all {
		all[i] = strings.TrimSpace(name)
		if len(all) > 1 && all[i] == "" || slices.Contains(all[:i], all[i]) {
			return nil, cli.Invalid(fmt.Errorf("--context: %q: a context is empty or named twice", f.cluster.Context), "name each context once, with commas between them")
		}
	}
	return all, nil
}

// runFleet reads all clusters before it simulates any, so that one that cannot be read costs
// no time.
func runFleet(ctx context.Context, p *cli.Program, f *call, contexts []string) error {
	var trials []*trial
	var read []*sight
	for _, name := range contexts {
		one := *f
		one.cluster = access.Cluster{Kubeconfig: f.cluster.Kubeconfig, Context: name}
		one.dir = filepath.Join(f.dir, folderOf(name, trials))
		t := &trial{p: p, f: &one, folder: folder{one.dir}, began: time.Now(), patient: defaultLimits()}
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
	return p.Print(&f.form, all, func(w io.Writer, _ bool) error { return all.text(w) })
}

// folderOf returns a name for the folder of a context that no trial before has.
func folderOf(name string, before []*trial) string {
	plain := capture.Plain(name)
	for k := 2; plain == "" || slices.ContainsFunc(before, func(t *trial) bool { return filepath.Base(t.folder.dir) == plain }); k++ {
		plain = strings.Trim(fmt.Sprintf("%s-%d", capture.Plain(name), k), "-")
	}
	return plain
}

// add fills in the sum.
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

// text writes a row for each cluster and their sum.
func (x *fleet) text(w io.Writer) error {
	head := []string{"$ A MONTH", "TODAY", "OWN POOLS, CONSOLIDATED", "ON DEMAND ONLY", "SPOT ALLOWED", "SPOTTER"}
	var rows [][]string
	for _, r := range x.Clusters {
		row := []string{r.Context, figures.Dollars(r.Now.Month)}
		for i := range r.Policies {
			row = append(row, figures.Dollars(r.Policies[i].Month)+" ("+figures.PercentChange(r.Policies[i].Change, 1)+")")
		}
		rows = append(rows, row)
	}
	row := []string{"all", figures.Dollars(x.Sum.Now)}
	for _, p := range x.Sum.Policies {
		row = append(row, figures.Dollars(p.Month)+" ("+figures.PercentChange(p.Change, 1)+")")
	}
	if err := cli.Columns(w, head, append(rows, row)); err != nil {
		return err
	}
	for _, r := range x.Clusters {
		fmt.Fprintf(w, "\n%s: %s prices, %s; next: %s\n", r.Context, r.Prices, figures.Count(r.Seeds, "draw"), r.Next.Do)
		for _, c := range r.Next.Commands {
			fmt.Fprintf(w, "  %s\n", c)
		}
	}
	_, err := fmt.Fprintf(w, "\nWritten: a folder for each in %s\n", filepath.Dir(filepath.Dir(x.Clusters[0].Files[0])))
	return err
}
