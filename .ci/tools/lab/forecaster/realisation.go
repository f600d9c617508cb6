package forecaster

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A Stratum is a kind of rows that is judged by itself.
type Stratum int32

// The strata.
const (
	RecordedGPU Stratum = iota
	RecordedCPU
	GeneratedCPU
	GeneratedGPU

	// GeneratedScarce are accelerators in the band that is open above. Those to
	// report on follow the law of runs, which was fitted to all recorded regions;
	// those to train on follow laws of their own.
	GeneratedScarce
	Strata
)

// String returns the name used in output.
func (s Stratum) String() string {
	return [...]string{"GPU recorded", "CPU recorded", "CPU generated", "GPU generated", "GPU generated, scarce"}[s]
}

// A plan says which realisation to make.
type plan struct {
	split    split
	region   string
	from, to policy.Time
	seed     uint64
	cluster  int32 // of the bootstrap, of a generated realisation; a recorded one has one a day

	// recording is the index of that whose availability the realisation has, -1 in a
	// generated one. A scarce one has accelerators alone.
	recording int
	scarce    bool
}

// A realisation is a region for some days: its markets as a snapshot has them, without
// prices, and what becomes of them.
type realisation struct {
	plan
	types   []policy.InstanceType
	zones   []string
	markets []policy.Market
	strata  []Stratum
	prices  []*trace.Series
	weather *weather.Weather

	// source is the recorded region that the weather was recorded in, or of whose law its
	// law is a variant; otherwise empty.
	source string
}

// presets are the laws of prices that realisations are drawn with, in turn.
var presets = []string{"aws-2023", "aws-2021", "aws-2024"}

// intensities are those of generated realisations, in turn.
var intensities = []float64{1, 1, 1, 10}

// newRealisation makes the realisation of a plan. Prices are drawn in every realisation: none of
// the recordings of availability has any.
func (c *Config) newRealisation(p plan) (*realisation, error) {
	w := &realisation{plan: p}
	key := chance.Stream(p.seed, "world")
	var offers []generate.Market
	var ups []*weather.Availability
	params := weather.DefaultParams()
	switch {
	case p.recording >= 0:
		offers, ups = recorded(c.Recordings[p.recording], p.region)
		w.source = p.region
	case p.scarce:
		offers = drawnMarkets(key.At1(1), p.region, 0, scarceTypes)
		law := c.laws[key.At1(4).IntN(len(c.laws))]
		params.Scarce, w.source = varied(law.law, key.At1(5)), law.region
	default:
		offers = drawnMarkets(key.At1(1), p.region, commonTypes, scarceTypes)
	}
	if ups == nil {
		ups = make([]*weather.Availability, len(offers))
	}
	preset, err := generate.FindPreset(presets[key.At1(2).IntN(len(presets))])
	if err != nil {
		return nil, err
	}
	drawn, err := generate.Generate(generate.Config{Seed: p.seed, From: p.from.Add(-24 * time.Hour), To: p.to,
		Markets: offers, Law: preset.Law})
	if err != nil {
		return nil, err
	}
	intensity := 1.0
	if p.recording < 0 && !p.scarce {
		intensity = intensities[key.At1(3).IntN(len(intensities))]
	}
	return w, w.fill(drawn, ups, weather.Config{
		Seed: w.seed, From: w.from, To: w.to.Add(lookAhead), Intensity: intensity, Params: params,
	})
}

// How scarce realisations differ from the law of a recording, since regions differ more
// than the few that were recorded: in the mean of the slack, in how quickly it
// moves and how unevenly.
const (
	meanLeast, meanMost = -0.4, 2.2
	paceSigma           = 1.0
	unrestMost          = 0.8
)

// varied returns a law like l.
func varied(l weather.Law, key chance.Key) weather.Law {
	l.Mean = meanLeast + float64((meanMost-meanLeast)*key.At1(1).Float())
	l.Unrest = float64(unrestMost * key.At1(2).Float())
	l.Common, l.Own = slices.Clone(l.Common), slices.Clone(l.Own)
	sum := 0.0
	for i := range l.Paces {
		pace := key.At2(3, uint64(i)).LogNormal(paceSigma)
		l.Common[i], l.Own[i] = l.Common[i]*pace, l.Own[i]*pace
		sum += l.Common[i] + l.Own[i]
	}
	for i := range l.Paces {
		l.Common[i], l.Own[i] = l.Common[i]/sum, l.Own[i]/sum
	}
	return l
}

// fill makes the markets, in the order of the drawn prices, and their weather.
func (w *realisation) fill(drawn *trace.Trace, ups []*weather.Availability, cfg weather.Config) error {
	var of []weather.Market
	for i := range drawn.Series {
		s := &drawn.Series[i]
		kind := slices.IndexFunc(w.types, func(t policy.InstanceType) bool { return t.Name == s.Type })
		if kind < 0 {
			t, ok := catalog.Lookup(s.Provider, s.Type)
			if !ok {
				return fmt.Errorf("%s: the catalog does not know it", s.Type)
			}
			kind = len(w.types)
			t.ID = policy.TypeID(kind)
			w.types = append(w.types, t)
		}
		zone := slices.Index(w.zones, s.Zone)
		if zone < 0 {
			zone = len(w.zones)
			w.zones = append(w.zones, s.Zone)
		}
		m := policy.Market{
			ID: policy.MarketID(i), Name: s.Name() +
				"/spot", Provider: s.Provider, Region: s.Region, Zone: policy.ZoneID(zone), Type: policy.TypeID(kind),
			Capacity: policy.Spot, PlacementScore: -1, OnDemand: s.OnDemand[0], History: make([]policy.Money, 24),
		}
		w.markets = append(w.markets, m)
		w.prices = append(w.prices, s)
		band := policy.BandUnknown
		if w.scarce {
			band = worstBand
		}
		of = append(of, weather.Market{
			Name: m.Name, Provider: m.Provider, Region: m.Region, Zone: s.Zone, Type: s.Type, Family: w.types[kind].Family,
			Spot: true, GPU: w.types[kind].Capacity.GPU > 0, Band: band, Available: ups[i],
		})
	}
	var err error
	w.weather, err = weather.New(cfg, of)
	if err != nil {
		return err
	}
	for i := range w.markets {
		m := &w.markets[i]
		m.Band, m.BandModelled = w.weather.Band(i)
		w.strata = append(w.strata, stratumOf(of[i].GPU, w.recording >= 0, m.Band))
		m.Band = w.published(m)
	}
	return nil
}

const worstBand policy.Band = 4

// published returns the band that a cluster is shown. None was recorded with
// availability. A scarce type mostly has the worst one, but one in four has none
// and some have a milder one: what is published is an average of a month.
func (w *realisation) published(m *policy.Market) policy.Band {
	if w.recording >= 0 {
		return policy.BandUnknown
	}
	if !w.scarce {
		return m.Band
	}
	key := chance.New(w.seed, "published", m.Name)
	switch u := key.At1(1).Float(); {
	case u < .60:
		return worstBand
	case u < .85:
		return policy.BandUnknown
	}
	return policy.Band(key.At1(2).IntN(int(worstBand)))
}

func stratumOf(gpu, recorded bool, band policy.Band) Stratum {
	switch {
	case recorded && gpu:
		return RecordedGPU
	case recorded:
		return RecordedCPU
	case !gpu:
		return GeneratedCPU
	case band == worstBand:
		return GeneratedScarce
	}
	return GeneratedGPU
}

// recorded returns the markets of a region whose availability t holds, in the
// order of their names.
func recorded(t *trace.Trace, region string) (offers []generate.Market, ups []*weather.Availability) {
	for i := range t.Series {
		s := &t.Series[i]
		onDemand, ok := catalog.OnDemand(s.Provider, s.Region, s.Type)
		if s.Region != region || s.Available == nil || !ok {
			continue
		}
		a := &weather.Availability{}
		for k, v := range s.Available {
			if v < 0 {
				continue
			}
			a.At, a.Up = append(a.At, s.At[k]), append(a.Up, v == 1)
			if s.ProbeGap != nil {
				a.Gap = append(a.Gap, policy.Time(s.ProbeGap[k])*1000)
			}
		}
		if len(a.At) == 0 {
			continue
		}
		offers = append(offers, generate.Market{Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type,
			OnDemand: onDemand})
		ups = append(ups, a)
	}
	return offers, ups
}

// What a generated realisation sells: types of common families and of accelerators in
// three zones.
const (
	commonTypes = 16
	scarceTypes = 4
	zonesMax    = 3
)

// drawnMarkets draws the markets of a generated realisation, in the order of names.
func drawnMarkets(key chance.Key, region string, ordinary, accelerated int) []generate.Market {
	var common, scarce []string
	for _, name := range catalog.Types(catalog.AWS) {
		if _, ok := catalog.OnDemand(catalog.AWS, region, name); !ok {
			continue
		}
		t, _ := catalog.Lookup(catalog.AWS, name)
		switch {
		case t.GPUResource == "nvidia.com/gpu":
			scarce = append(scarce, name)
		case isCommon(t.Category) && t.VCPU >= 2 && t.VCPU <= 32 && t.Capacity.GPU == 0:
			common = append(common, name)
		}
	}
	names := append(chosen(key.At1(1), common, ordinary), chosen(key.At1(2), scarce, accelerated)...)
	slices.Sort(names)
	zones := catalog.Zones(catalog.AWS, region)
	zones = zones[:min(len(zones), zonesMax)]
	var offers []generate.Market
	for _, zone := range zones {
		for _, name := range names {
			onDemand, _ := catalog.OnDemand(catalog.AWS, region, name)
			offers = append(offers, generate.Market{Provider: catalog.AWS, Region: region, Zone: zone, Type: name,
				OnDemand: onDemand})
		}
	}
	return offers
}

// isCommon reports whether types of a category run most clusters.
func isCommon(category string) bool { return category == "c" || category == "m" || category == "r" }

// chosen draws n of names.
func chosen(key chance.Key, names []string, n int) []string {
	names = slices.Clone(names)
	n = min(n, len(names))
	for i := range n {
		k := i + key.At1(uint64(i)).IntN(len(names)-i)
		names[i], names[k] = names[k], names[i]
	}
	return names[:n]
}

// price returns the price of market m at t, before the first the first.
func (w *realisation) price(m int, t policy.Time) policy.Money {
	s := w.prices[m]
	i, found := slices.BinarySearch(s.At, t)
	if !found {
		i--
	}
	return s.Spot[max(i, 0)]
}

// regionsOf returns the regions of a recording, ascending.
func regionsOf(t *trace.Trace) []string {
	var all []string
	for i := range t.Series {
		all = append(all, t.Series[i].Region)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sources returns the regions of all recordings, ascending.
func (c *Config) sources() []string {
	var all []string
	for _, r := range c.Recordings {
		all = append(all, regionsOf(r)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// families returns the families that generated realisations draw their types from, which
// are those of recordings too, and which of them have accelerators.
func families() (all, accelerated []string) {
	for _, name := range catalog.Types(catalog.AWS) {
		t, _ := catalog.Lookup(catalog.AWS, name)
		switch {
		case t.GPUResource == "nvidia.com/gpu":
			accelerated = append(accelerated, t.Family)
		case isCommon(t.Category):
			all = append(all, t.Family)
		}
	}
	slices.Sort(accelerated)
	accelerated = slices.Compact(accelerated)
	all = append(all, accelerated...)
	slices.Sort(all)
	return slices.Compact(all), accelerated
}
