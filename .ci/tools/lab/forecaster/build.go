package forecaster

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A split is what rows are used for.
type split int

const (
	training split = iota
	choosing
	reporting
	splits
)

// String returns the name of the split in files.
func (s split) String() string { return [...]string{"train", "choose", "report"}[s] }

// The columns of labels: what each is the share of, and for which horizon.
const (
	labelRuntime = iota
	labelRuntime6
	labelCapacity
	labelCapacity6
	labelColumns
)

// LabelNames are the columns of labels, LabelTexts what they say.
var (
	LabelNames = []string{"runtime", "runtime_6h", "capacity", "capacity_6h"}
	LabelTexts = []string{
		"share of the slots held at t that are reclaimed in (t, t+1h]", "share of the slots held at t that are reclaimed in (t, t+6h]",
		"share of (t, t+1h] in which a launch would be refused", "share of (t, t+6h] in which a launch would be refused",
	}
)

// The columns of what a row is of.
const (
	rowStratum = iota
	rowCluster // of the bootstrap
	rowMinutes // since 1970
	rowMarket  // in its realisation
	rowOpen    // the market sold at t
	rowHeld    // nodes of the cluster there
	rowSource  // the recorded region that the weather is of: an index into About.Sources, or -1
	rowColumns
)

// RowNames are the columns of what a row is of, ClosedNames those of the closed
// form's forecast.
var (
	RowNames    = []string{"stratum", "cluster", "minutes", "market", "open", "held", "source"}
	ClosedNames = []string{"hazard", "runtime", "capacity"}
)

// agentFeatures is the width of a row of the SpotVortex agent's features.
const agentFeatures = 120

// A table holds rows, columns side by side.
type table struct {
	features, labels, closed, agent []float32
	rows                            []int32
}

func (t *table) len() int { return len(t.rows) / rowColumns }

func (t *table) append(u *table) {
	t.features = append(t.features, u.features...)
	t.labels = append(t.labels, u.labels...)
	t.closed = append(t.closed, u.closed...)
	t.agent = append(t.agent, u.agent...)
	t.rows = append(t.rows, u.rows...)
}

// A Dataset is what was made of a configuration.
type Dataset struct {
	cfg    Config
	tables [splits]table
}

// Build makes the rows of a configuration. Equal configurations give equal rows.
func Build(c Config) (*Dataset, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	plans := c.plans()
	tables, errs := make([]table, len(plans)), make([]error, len(plans))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(plans)) {
		workers.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(plans); k = int(next.Add(1)) - 1 {
				errs[k] = c.play(plans[k], &tables[k])
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Dataset{cfg: c}
	for k := range plans {
		d.tables[plans[k].split].append(&tables[k])
	}
	for s := range splits {
		if s != choosing && d.tables[s].len() == 0 {
			return nil,
				fmt.Errorf("there is nothing to %s: no recording has a region that is held out behind %v, and one that is not before %v", s, c.ChooseUntil, c.TrainUntil)
		}
	}
	return d, nil
}

// Seeds of the splits begin here, so that they have none in common.
const seedsOfSplit = 1_000_000

// plans lists the realisations. No split has a region or a time of another but
// training and choosing, which have regions in common.
func (c *Config) plans() []plan {
	var all []plan
	for s := range splits {
		all = append(all, c.recordedPlans(s)...)
		all = append(all, c.drawnPlans(s)...)
	}
	return all
}

// seed returns that of realisation n of a split.
func (c *Config) seed(s split, n int) uint64 {
	return c.Seed*splitsApart + uint64(s)*seedsOfSplit + uint64(n)
}

// recordedPlans lists the realisations of recorded regions.
func (c *Config) recordedPlans(s split) []plan {
	from, until, copies := policy.Time(0), never, c.Copies/2
	switch s {
	case training:
		until, copies = c.TrainUntil, c.Copies
	case choosing:
		from, until = c.TrainUntil, c.ChooseUntil
	case reporting:
		from = c.ChooseUntil
	}
	var all []plan
	n := 0
	for k, r := range c.Recordings {
		for _, region := range regionsOf(r) {
			if slices.Contains(c.HoldOut, region) != (s == reporting) {
				continue
			}
			p := plan{split: s, region: region, recording: k, cluster: int32(k) * daysApart}
			p.from, p.to = max(r.From, from), min(r.To, until).Add(-lookAhead)
			if until != never {
				p.to = p.to.Add(-history)
			}
			for range copies {
				p.seed = c.seed(s, n)
				n++
				if p.to.Sub(p.from) >= 24*time.Hour {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// drawnPlans lists the generated realisations.
func (c *Config) drawnPlans(s split) []plan {
	generated := [...]int{training: c.Generated, choosing: c.Generated / 4, reporting: c.Generated / 2}[s]
	scarce := [...]int{training: c.Scarce, choosing: c.Scarce / 4, reporting: 0}[s]
	regions := c.Regions
	if s == reporting {
		regions = c.HoldOut
	}
	span := time.Duration(c.Days) * 24 * time.Hour
	var all []plan
	for i := range generated + scarce {
		p := plan{split: s, recording: -1, seed: c.seed(s, seedsOfSplit/2+i), cluster: -1 - int32(i),
			scarce: i >= generated, region: regions[i%len(regions)]}
		week := time.Duration(i%weeks) * 7 * 24 * time.Hour
		switch s {
		case training:
			p.to = c.TrainUntil.Add(-lookAhead - history - week)
			p.from = p.to.Add(-span)
		case choosing:
			p.to = c.ChooseUntil.Add(-lookAhead - history)
			p.from = max(c.TrainUntil, p.to.Add(-span))
		case reporting:
			p.from = c.ChooseUntil.Add(week)
			p.to = p.from.Add(span)
		}
		all = append(all, p)
	}
	return all
}

const (
	weeks       = 50 // over which generated realisations begin
	splitsApart = 10 * seedsOfSplit
	daysApart   = 100_000 // more days than any time has
)

// play makes the rows of one realisation.
func (c *Config) play(p plan, into *table) error {
	w, err := c.newRealisation(p)
	if err != nil {
		return fmt.Errorf("world of %s from %v: %w", p.region, p.from, err)
	}
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return err
	}
	share := c.GeneratedShare
	if p.recording >= 0 {
		share = c.RecordedShare
	} else if p.scarce {
		share = c.ScarceShare
	} else if p.split == reporting {
		share = c.GeneratedShare / 2 // rows of the agent are wide
	}
	var rows models.MarketRows
	var s policy.Snapshot
	user, draw, sources := newCluster(w), chance.Stream(w.seed, "rows"), c.sources()
	step := policy.Time(tick.Milliseconds())
	for t := w.from + (step-w.from%step)%step; t <= w.to; t += step {
		user.advance(t)
		var asked []policy.MarketID
		for i := range w.markets {
			use := w.strata[i] != GeneratedScarce || w.scarce || w.split == reporting
			if use && draw.At2(uint64(t), portable.HashString(w.markets[i].Name)).Float() < share {
				asked = append(asked, policy.MarketID(i))
			}
		}
		if len(asked) == 0 {
			continue
		}
		user.snapshot(&s)
		if err := closed.Forecast(&s, nil); err != nil {
			return err
		}
		rows.Collect(&s)
		for _, id := range asked {
			if s.Markets[id].Offered {
				w.row(&s, id, &rows, user, sources, into)
			}
		}
	}
	return nil
}

// row appends the row of a market now.
func (w *realisation) row(s *policy.Snapshot, id policy.MarketID, rows *models.MarketRows, user *cluster,
	sources []string, into *table) {
	m, t := &s.Markets[id], s.Now
	features := make([]float32, len(models.FeatureNames(models.MarketFeaturesV2)))
	rows.Row(s, id, features)
	into.features = append(into.features, features...)
	var labels [labelColumns]float32
	w.runtime(int(id), t, labels[labelRuntime:labelRuntime6+1])
	for k, h := range Horizons {
		labels[labelCapacity+k] = w.refused(int(id), t, h)
	}
	into.labels = append(into.labels, labels[:]...)
	into.closed = append(into.closed, float32(m.Forecast.Hazard), float32(m.Forecast.Runtime),
		float32(m.Forecast.Capacity))
	if w.split == reporting {
		agent := make([]float32, agentFeatures)
		state := models.MarketState{Spot: m.Charge().Float(), OnDemand: m.OnDemand.Float(), Now: t}
		for _, p := range m.History {
			if p != policy.NoPrice {
				state.History = append(state.History, p.Float())
			}
		}
		state.Row(agent)
		into.agent = append(into.agent, agent...)
	}
	var row [rowColumns]int32
	row[rowStratum], row[rowMarket] = int32(w.strata[id]), int32(id)
	row[rowMinutes] = int32(t / 60_000)
	row[rowCluster] = w.cluster
	if w.recording >= 0 {
		row[rowCluster] += row[rowMinutes] / (24 * 60)
	}
	if w.weather.Open(int(id), t) {
		row[rowOpen] = 1
	}
	row[rowHeld] = int32(len(user.markets[id].held))
	row[rowSource] = int32(slices.Index(sources, w.source))
	into.rows = append(into.rows, row[:]...)
}
