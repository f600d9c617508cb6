package aws

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// commit merges the fetched data with the recorded data and writes the days that change. It may be
// interrupted and restarted any number of times: merging a day that was already written changes
// nothing.
func (r *run) commit(ctx context.Context, s *Summary) error {
	for _, region := range r.plan.Regions {
		names, err := r.naming(region)
		if err != nil {
			return err
		}
		events := r.events(region, names, s)
		if len(events) == 0 {
			r.config.warn("AWS has no price for the requested types in %s", region)
			continue
		}
		files, err := loadDays(r.config.Dir, region, r.plan.From, names.meta())
		if err != nil {
			return err
		}
		if n := len(files); n > 0 && files[n-1].t.WholeTo < r.plan.From {
			r.config.warn("nothing is recorded of %s from %v to %v; the prices before are used for that time",
				region, files[n-1].t.WholeTo, r.plan.From)
		}
		b := r.book(region, names, files, events, s)
		if err := r.writeDays(ctx, b, files, s); err != nil {
			return err
		}
	}
	if s.Markets == 0 {
		return fmt.Errorf("%w: AWS lists none for %s", ErrNothing, r.plan)
	}
	return nil
}

// events returns the fetched prices of a region by market, sorted by time and without duplicates.
func (r *run) events(region string, names *naming, s *Summary) map[marketKey][]point[policy.Money] {
	events := map[marketKey][]point[policy.Money]{}
	for i := range r.pages {
		p := &r.pages[i]
		if p.Region != region {
			continue
		}
		for k, at := range p.At {
			key := marketKey{names.of(p.Zones[p.Zone[k]]), p.Types[p.Type[k]], r.plan.Product}
			events[key] = append(events[key], point[policy.Money]{at, p.Price[k]})
			s.Repeats++
		}
	}
	for key, list := range events {
		slices.SortFunc(list, func(a, b point[policy.Money]) int {
			return cmp.Or(cmp.Compare(a.at, b.at),
				cmp.Compare(b.v, a.v))
		})
		events[key] = slices.CompactFunc(list, func(a, b point[policy.Money]) bool { return a.at == b.at })
	}
	return events
}

// book merges files, events and the other published data of a region.
func (r *run) book(region string, names *naming, files []dayFile, events map[marketKey][]point[policy.Money],
	s *Summary) *book {
	b := &book{region: region, zones: names.meta(), markets: map[marketKey]*market{}}
	for i := range files {
		for k := range files[i].t.Series {
			series := &files[i].t.Series[k]
			b.market(marketKey{series.Zone, series.Type, series.Product}).load(series)
		}
	}
	for key, list := range events {
		m := b.market(key)
		m.addSpot(list, r.plan.From)
		s.Markets++
		// The first price of a market does not count as a change.
		changes := m.spot.upTo(r.plan.Until) - max(1, m.spot.upTo(r.plan.From))
		s.Changes += changes
		s.Repeats -= changes
	}
	for key, m := range b.markets {
		if key.product != r.plan.Product || len(m.spot) == 0 {
			continue
		}
		if price, ok := r.onDemand[region][key.kind]; ok {
			m.addOnDemand(price, r.plan.From, r.plan.Until)
			s.OnDemand++
		}
		if r.bands != nil {
			if band, ok := r.bands.Regions[region][key.kind]; ok {
				m.band = put(m.band, point[int8]{r.plan.Until, band})
				s.Bands++
			}
		}
		if score, ok := r.scores[scoreKey{region, key.kind}][names.id(key.zone)]; ok {
			m.score = put(m.score, point[int8]{r.plan.Until, score})
			s.Scores++
		}
	}
	return b
}

// writeDays writes the files of the days from the first day of the plan.
func (r *run) writeDays(ctx context.Context, b *book, files []dayFile, s *Summary) error {
	type hull struct{ from, to policy.Time }
	hulls := map[policy.Time]hull{}
	for _, f := range files {
		if f.date >= dayOf(r.plan.From) {
			hulls[f.date] = hull{f.t.WholeFrom, f.t.WholeTo}
		}
	}
	for _, w := range days(window{b.region, r.plan.From, r.plan.Until}) {
		h, ok := hulls[dayOf(w.from)]
		if !ok {
			h = hull{w.from, w.until}
		}
		hulls[dayOf(w.from)] = hull{min(h.from, w.from), max(h.to, w.until)}
	}
	// Data observed at the end of the plan, if that is midnight, belongs to the day that starts
	// then.
	if last := r.plan.Until; last == dayOf(last) && b.has(last) {
		if _, ok := hulls[last]; !ok {
			hulls[last] = hull{last, last}
		}
	}
	for _, d := range slices.Sorted(maps.Keys(hulls)) {
		h := hulls[d]
		series := b.day(h.from, d+day)
		if len(series) == 0 {
			continue
		}
		wrote, err := r.writeDay(b, d, h.from, h.to, series)
		if err != nil {
			return err
		}
		if wrote {
			s.Files++
		}
		if err := r.put(ctx, dayPath("", b.region, d)); err != nil {
			return err
		}
	}
	return nil
}

// put copies a file of the recording if Config.Put is set.
func (r *run) put(ctx context.Context, name string) error {
	if r.config.Put == nil {
		return nil
	}
	err := r.config.Put(ctx, name)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %s: %w", ErrUpload, name, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", ErrUpload, err)
}

// has reports whether anything changed at an instant.
func (b *book) has(at policy.Time) bool {
	for _, m := range b.markets {
		instants := map[policy.Time]bool{}
		within(instants, m.spot, at-1, at+1)
		within(instants, m.onDemand, at-1, at+1)
		within(instants, m.band, at-1, at+1)
		within(instants, m.score, at-1, at+1)
		if len(instants) > 0 {
			return true
		}
	}
	return false
}
