package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/internal/pictures"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// reclaims draws where nodes ran, and when they were reclaimed.
func (d *plotted) reclaims(s *seen) chart.Picture {
	taken, left := d.taken(s)
	pic := &chart.Raster{States: []string{"nodes ran here", "a node was reclaimed", "a node under notice was released"}}
	count := func(m int) int { return len(taken[m]) + len(left[m]) }
	var rows []int
	total, back := 0, 0
	for m := range s.markets {
		if total, back = total+len(taken[m]), back+len(left[m]); s.run.Markets()[m].Spot &&
			(count(m) > 0 || slices.Max(s.markets[m]) > 0) {
			rows = append(rows, m)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(count(b), count(a)) })
	pic.Frame = d.framed(fmt.Sprintf("%s reclaimed, %d released under notice", figures.Count(total, "node"), back), s.run)
	if len(rows) > pictures.RowsShown {
		pic.Note += fmt.Sprintf("; the %d of %d markets used with most reclaims", pictures.RowsShown, len(rows))
		rows = rows[:pictures.RowsShown]
	}
	mark := (pictures.Seconds(d.to) - pictures.Seconds(d.from)) * leastWidth
	for _, m := range rows {
		info := &s.run.Markets()[m]
		strip := chart.Strip{Name: info.Zone + " " + info.Type, Spans: spans(s.at,
			func(i int) bool { return s.markets[m][i] > 0 }, 0)}
		for state, times := range [][]policy.Time{taken[m], left[m]} {
			for _, at := range times {
				strip.Spans = append(strip.Spans, chart.Span{From: pictures.Seconds(at) - mark/2, To: pictures.Seconds(at) +
					mark/2, State: state + 1})
			}
		}
		pic.Rows = append(pic.Rows, strip)
	}
	if len(pic.Rows) == 0 {
		pic.Rows = []chart.Strip{{Name: "no Spot market", Spans: []chart.Span{{From: pictures.Seconds(d.from),
			To: pictures.Seconds(d.to), State: 0}}}}
		pic.States = []string{"no Spot node ran"}
	}
	d.tall(&pic.Frame, len(pic.Rows))
	return pic
}

// tall sets the height that the rows of a raster need, unless a height is set.
func (d *plotted) tall(f *chart.Frame, rows int) {
	if f.Height == 0 {
		f.Height = 130 + 26*max(rows, 4)
	}
}

// taken returns when nodes were reclaimed, and when nodes under notice were released earlier, by
// market.
func (d *plotted) taken(s *seen) (taken, left map[int][]policy.Time) {
	taken, left = map[int][]policy.Time{}, map[int][]policy.Time{}
	index := map[string]int{}
	for m := range s.run.Markets() {
		index[s.run.Markets()[m].Name] = m
	}
	noticed := map[string]bool{}
	for i := range s.run.Events() {
		e := s.run.Event(i)
		if e.At > d.to {
			break
		}
		switch e.Kind {
		case timeline.Launched:
			if m, ok := index[e.Object]; ok {
				s.where[e.Subject] = int32(m)
			}
		case timeline.Noticed:
			noticed[e.Subject] = true
		case timeline.Reclaimed, timeline.Deleted:
			m, ok := s.where[e.Subject]
			switch {
			case e.At < d.from || !ok:
			case e.Kind == timeline.Reclaimed:
				taken[int(m)] = append(taken[int(m)], e.At)
			case noticed[e.Subject]:
				left[int(m)] = append(left[int(m)], e.At)
			}
		}
	}
	return taken, left
}

// workloads draws when pods were missing.
func (d *plotted) workloads(s *seen) chart.Picture {
	pic := &chart.Raster{Frame: d.framed("When pods were missing", s.run),
		States: []string{"as many ready as wanted", "outage: fewer than required", "some missing"}}
	down := d.outages(s.run)
	var rows []int
	for w := range s.missing {
		if s.run.Workloads()[w].Kind != policy.KindDaemonSet {
			rows = append(rows, w)
		}
	}
	count := func(w int) int { return len(down[s.run.Workloads()[w].Name]) }
	if len(rows) > pictures.RowsShown {
		slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(count(b), count(a)) })
		pic.Note += fmt.Sprintf("; the %d of %d workloads with most outages", pictures.RowsShown, len(rows))
		rows = rows[:pictures.RowsShown]
	}
	for _, w := range rows {
		name := s.run.Workloads()[w].Name
		strip := chart.Strip{Name: name, Spans: []chart.Span{{From: pictures.Seconds(d.from), To: pictures.Seconds(d.to),
			State: 0}}}
		strip.Spans = append(strip.Spans, spans(s.at, func(i int) bool { return s.missing[w][i] }, 2)...)
		strip.Spans = append(strip.Spans, down[name]...)
		pic.Rows = append(pic.Rows, strip)
	}
	d.tall(&pic.Frame, len(pic.Rows))
	return pic
}

// outages returns the intervals in which workloads had fewer ready pods than required, by name,
// each wide enough to be visible.
func (d *plotted) outages(t *timeline.Timeline) map[string][]chart.Span {
	least := (pictures.Seconds(d.to) - pictures.Seconds(d.from)) * leastWidth
	began, out := map[string]policy.Time{}, map[string][]chart.Span{}
	end := func(name string, to policy.Time) {
		if from := began[name]; to >= d.from && from <= d.to {
			out[name] = append(out[name], chart.Span{From: pictures.Seconds(from),
				To: max(pictures.Seconds(to), pictures.Seconds(from)+least), State: 1})
		}
		delete(began, name)
	}
	for i := range t.Events() {
		switch e := t.Event(i); e.Kind {
		case timeline.OutageBegan:
			began[e.Subject] = e.At
		case timeline.OutageEnded:
			end(e.Subject, e.At)
		}
	}
	for i := range t.Workloads() {
		if name := t.Workloads()[i].Name; began[name] != 0 {
			end(name, d.to)
		}
	}
	return out
}

// spans returns the intervals of at in which held returns true.
func spans(at []policy.Time, held func(int) bool, state int) []chart.Span {
	var out []chart.Span
	for i := 0; i+1 < len(at); i++ {
		if !held(i) {
			continue
		}
		if n := len(out); n > 0 && out[n-1].To == pictures.Seconds(at[i]) {
			out[n-1].To = pictures.Seconds(at[i+1])
		} else {
			out = append(out, chart.Span{From: pictures.Seconds(at[i]), To: pictures.Seconds(at[i+1]), State: state})
		}
	}
	return out
}
