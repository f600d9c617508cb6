package trace

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// An inventory describes the contents of a trace, in addition to its statistics.
type inventory struct {
	*measure.Statistics

	About                     string
	Providers, Regions, Zones []string
	Types, Markets, Rows      int

	// The numbers of markets with a recorded availability, hazard, band and on-demand price.
	// Catalog counts those whose on-demand price is only in the catalog, and Derived those without
	// any published price, for which a model is used. Unpriced names those without any price.
	WithAvailability, WithHazard, WithBand, WithOnDemand, Catalog, Derived int
	Unpriced                                                               []string

	Warnings []string
	Digest   [32]byte

	// Traffic is the number of bytes read from the files; zero for an embedded trace.
	Traffic trace.Traffic

	// meta contains the metadata about the recording.
	meta     map[string]string
	unmarked bool
	scores   scored
}

// inventoryOf returns the inventory of t.
func inventoryOf(t *trace.Trace) *inventory {
	v := &inventory{
		Statistics: measure.Measure(t, nil), About: t.About, Markets: len(t.Series), Warnings: t.Warnings, Digest: t.Digest,
		meta: t.Meta, unmarked: t.Unmarked,
	}
	var types []string
	for i := range t.Series {
		m := &t.Series[i]
		v.Providers = append(v.Providers, m.Provider)
		v.Regions = append(v.Regions, m.Region)
		v.Zones = append(v.Zones, m.Zone)
		types = append(types, m.Type)
		v.Rows += len(m.At)
		v.WithAvailability += one(m.Available != nil)
		v.WithHazard += one(m.Hazard != nil)
		v.WithBand += one(m.Band != nil)
		v.WithOnDemand += one(m.OnDemand != nil)
		v.scores.add(m)
		if m.OnDemand == nil {
			switch price, derived := measure.OnDemand(m); {
			case derived:
				v.Derived++
			case price > 0:
				v.Catalog++
			default:
				v.Unpriced = append(v.Unpriced, m.Name())
			}
		}
	}
	v.Providers, v.Regions, v.Zones = names(v.Providers), names(v.Regions), names(v.Zones)
	v.Types = len(names(types))
	return v
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// names sorts all and returns its distinct values.
func names(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// An object is an inventory in machine-readable form. Unknown values are omitted.
type object struct {
	Name      string   `json:"name"`
	About     string   `json:"about,omitempty"`
	Prices    string   `json:"prices"`
	Source    string   `json:"source,omitempty"`
	Dates     string   `json:"dates,omitempty"`
	Sampling  string   `json:"sampling,omitempty"`
	Fetcher   string   `json:"fetcher,omitempty"`
	From      string   `json:"from"`
	To        string   `json:"to"`
	Providers []string `json:"providers"`
	Regions   []string `json:"regions"`
	Zones     []string `json:"zones"`
	Types     int      `json:"instance_types"`
	Markets   int      `json:"markets"`
	Rows      int      `json:"rows"`
	Changes   int      `json:"price_changes"`
	SampleS   float64  `json:"sampling_s,omitempty"`

	// Shares of time, changes per day, hours and ratios of Spot to on-demand price. Lists are the
	// 5th, 50th and 95th percentiles.
	Offered       *float64   `json:"offered_share,omitempty"`
	ChangesPerDay *float64   `json:"changes_per_day_median,omitempty"`
	GapHours      []float64  `json:"hours_between_changes,omitempty"`
	Ratio         []float64  `json:"spot_to_on_demand,omitempty"`
	Available     *float64   `json:"available_share,omitempty"`
	Scores        *scoresOf  `json:"placement_scores,omitempty"`
	OnDemand      onDemandOf `json:"on_demand_prices"`
	BytesRead     int64      `json:"bytes_read,omitempty"`
	BytesStored   int64      `json:"bytes_stored,omitempty"`
	Warnings      []string   `json:"warnings"`
	Digest        string     `json:"digest"`
}

// An onDemandOf is the number of markets by the source of their on-demand price.
type onDemandOf struct {
	Recorded int      `json:"recorded"`
	Catalog  int      `json:"catalog"`
	Modelled int      `json:"modelled"`
	Unknown  []string `json:"unknown"`
}

// object returns v in machine-readable form.
func (v *inventory) object() object {
	p := &v.Prices
	out := object{
		Name: v.Name, About: v.About, Prices: v.origin(), Source: v.meta[trace.MetaSource], Dates: v.meta[trace.MetaDates],
		Sampling: v.meta[trace.MetaSampling], Fetcher: v.meta[trace.MetaFetcher],
		From: v.From.String(), To: v.To.String(), Providers: v.Providers, Regions: v.Regions, Zones: v.Zones,
		Types: v.Types, Markets: v.Markets, Rows: v.Rows, Changes: p.Changes, SampleS: p.Sampling.Interval.Seconds(),
		Offered: known(p.Offered), ChangesPerDay: known(p.Rate[1]), GapHours: allKnown(p.GapHours[:3]), Ratio: allKnown([]float64{p.Ratio[1], p.Ratio[3], p.Ratio[5]}),
		OnDemand:  onDemandOf{v.WithOnDemand, v.Catalog, v.Derived, append([]string{}, v.Unpriced...)},
		Available: known(v.Available), BytesRead: v.Traffic.Read, BytesStored: v.Traffic.Stored,
		Warnings: append([]string{}, v.Warnings...), Digest: hex.EncodeToString(v.Digest[:]),
	}
	out.Scores = v.scores.object()
	return out
}

// known returns a pointer to x, or nil if x is NaN.
func known(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// allKnown returns values, or nil if one of them is NaN.
func allKnown(values []float64) []float64 {
	if slices.ContainsFunc(values, math.IsNaN) {
		return nil
	}
	return values
}

// text returns v as text, one fact per line. With wide it names all zones and markets.
func (v *inventory) text(wide bool) string {
	few, fewer := 8, 5
	if wide {
		few, fewer = math.MaxInt, math.MaxInt
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-22s %s\n", name, fmt.Sprintf(format, args...))
	}
	p := &v.Prices
	line("trace", "%s", v.Name)
	line("about", "%s", cmp.Or(v.About, "-"))
	line("prices", "%s", v.origin())
	for _, key := range []string{trace.MetaSource, trace.MetaDates, trace.MetaFetcher, trace.MetaSampling} {
		if text := v.meta[key]; text != "" {
			line(key, "%s", text)
		}
	}
	line("span", "%s to %s (%.1f days)", cli.Minute(v.From)+"Z", cli.Minute(v.To)+"Z", v.Days())
	line("providers", "%s", strings.Join(v.Providers, ", "))
	line("regions", "%s", strings.Join(v.Regions, ", "))
	line("zones", "%d: %s", len(v.Zones), cli.FirstOf(v.Zones, few))
	line("markets", "%d of %d instance types", v.Markets, v.Types)
	line("rows", "%d, %d of them changes of price", v.Rows, p.Changes)
	if p.Sampling.Interval > 0 && v.meta[trace.MetaSampling] == "" {
		line("sampling", "about every %s", figures.Duration(p.Sampling.Interval))
	}
	line("offered", "%s of the time", figures.Share(p.Offered, 2))
	line("changes", "%s a day in the median market, %s of markets never", figures.Number(p.Rate[1], 2),
		figures.Share(p.Unmoved, 2))
	line("between changes", "%s / %s / %s h (5th, 50th, 95th percentile)",
		figures.Number(p.GapHours[0], 2), figures.Number(p.GapHours[1], 2), figures.Number(p.GapHours[2], 2))
	line("size of a change", "%s median, %s 99th percentile", figures.Share(p.StepMedian, 2), figures.Share(p.StepP99, 2))
	line("momentum", "autocorrelation %s, same direction %s", figures.Number(p.Autocorrelation, 2),
		figures.Share(p.SameSign, 2))
	line("spot / on-demand", "%s / %s / %s (5th, 50th, 95th percentile of time)",
		figures.Number(p.Ratio[1], 2), figures.Number(p.Ratio[3], 2), figures.Number(p.Ratio[5], 2))
	line("zones of one type", "daily moves correlate by %s (median)", figures.Number(p.ZoneCorrelation, 2))
	line("on-demand prices", "%s", v.onDemand())
	if len(v.Unpriced) > 0 {
		line("", "unknown: %s; runs leave these out", cli.FirstOf(v.Unpriced, fewer))
	}
	line("availability", "%s", v.availability())
	if v.DepthMarkets > 0 {
		line("depth", "recorded in %d markets: none in %s, all requested in %s of the time", v.DepthMarkets,
			figures.Share(v.NoneLaunched, 2), figures.Share(v.AllLaunched, 2))
	}
	line("placement scores", "%s", v.scores.text())
	if b := v.Traffic; b.Stored > 0 {
		line("bytes read", "%d of %d (%s)", b.Read, b.Stored, figures.Share(float64(b.Read)/float64(b.Stored), 2))
	}
	line("digest", "%x", v.Digest[:8])
	for _, w := range v.Warnings {
		line("warning", "%s", w)
	}
	return b.String()
}

func (v *inventory) origin() string {
	switch {
	case v.Synthetic:
		return "synthetic (generated, not recorded)"
	case v.Scripted:
		return "scripted (written down in advance, not recorded)"
	case v.Prices.Modelled:
		return "modelled (the recording has none)"
	case v.unmarked:
		return "of unknown origin (the files do not say)"
	}
	return "recorded"
}

func (v *inventory) onDemand() string {
	text := fmt.Sprintf("%d recorded, %d from the catalog, %d unknown", v.WithOnDemand, v.Catalog, len(v.Unpriced))
	if v.Derived > 0 {
		text += fmt.Sprintf(", %d modelled: none is published", v.Derived)
	}
	return text
}

func (v *inventory) availability() string {
	if v.WithAvailability == 0 {
		return "none: reclaims are modelled"
	}
	how := "recorded"
	if v.Synthetic {
		how = "generated"
	}
	return fmt.Sprintf("%s for %d markets, a node available in %s of the time", how, v.WithAvailability,
		figures.Share(v.Available, 2))
}
