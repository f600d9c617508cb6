package aws

import (
	"context"
	"errors"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A run carries out one plan. Data that is already in the journal is not requested again.
type run struct {
	*Recorder
	plan    *plan
	journal *journal
	session *session

	zones    map[string]map[string]string // IDs by region and name; nil if AWS refused to list them
	onDemand map[string]map[string]policy.Money
	bands    *bandsEntry
	scores   map[scoreKey]map[string]int8 // scores by zone ID
	over     bool                         // AWS accepts no further configuration of scores

	pages  []page
	seen   map[string]bool // types that have prices, as "region type"
	done   int             // number of completed windows
	splits int
}

type scoreKey struct{ region, kind string }

// replay applies the entries of the journal.
func (r *run) replay(entries []entry) {
	r.zones = map[string]map[string]string{}
	r.onDemand = map[string]map[string]policy.Money{}
	r.scores = map[scoreKey]map[string]int8{}
	r.seen = map[string]bool{}
	for i := range entries {
		r.take(&entries[i])
	}
}

// take applies an entry to the state of the run.
func (r *run) take(e *entry) {
	switch {
	case e.Zones != nil:
		r.zones[e.Zones.Region] = e.Zones.IDs
	case e.OnDemand != nil:
		r.onDemand[e.OnDemand.Region] = e.OnDemand.Prices
	case e.Bands != nil:
		r.bands = e.Bands
	case e.Scores != nil && e.Scores.Over:
		r.over = true
	case e.Scores != nil:
		r.scores[scoreKey{e.Scores.Region, e.Scores.Type}] = e.Scores.Scores
	case e.Page != nil:
		r.pages = append(r.pages, *e.Page)
		for _, kind := range e.Page.Types {
			r.seen[e.Page.Region+" "+kind] = true
		}
	}
}

// keep writes an entry to the journal and applies it.
func (r *run) keep(e entry) error {
	if err := r.journal.add(e); err != nil {
		return err
	}
	r.take(&e)
	return nil
}

// fetch requests all missing data. The history takes longest and so comes last, except for the
// placement scores, which need the types that it contains.
func (r *run) fetch(ctx context.Context) error {
	for _, region := range r.plan.Regions {
		if err := r.fetchZones(ctx, region); err != nil {
			return err
		}
	}
	listed := r.listed == 0 || r.plan.Until.Sub(r.listed) >= listedSpan
	if r.config.OnDemand && listed {
		for _, region := range r.plan.Regions {
			if err := r.without("on-demand prices", r.fetchOnDemand(ctx, region)); err != nil {
				return err
			}
		}
	}
	if r.config.Bands && listed && r.plan.Present && r.bands == nil {
		if err := r.without("interruption bands", r.fetchBands(ctx)); err != nil {
			return err
		}
	}
	if err := r.fetchHistory(ctx); err != nil {
		return err
	}
	if r.config.Scores && r.plan.Present {
		return r.without("placement scores", r.fetchScores(ctx))
	}
	return nil
}

// listedSpan is the time for which on-demand prices and bands are not requested again while
// following, since AWS publishes them at most once a day.
const listedSpan = 24 * time.Hour

// without turns an error into a warning if a recording of prices does not need the missing data. It
// returns timeouts and errors of expired credentials unchanged, since the data can then still be
// fetched later.
func (r *run) without(what string, err error) error {
	var refused *RequestError
	if !errors.As(err, &refused) || errors.Is(err, ErrExpired) {
		return err
	}
	r.config.warn("%s are skipped: %v", what, err)
	return nil
}
