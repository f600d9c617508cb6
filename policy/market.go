package policy

import "time"

// A CapacityType is the way in which a node is bought.
type CapacityType uint8

// The capacity types, named as Karpenter names them.
const (
	OnDemand CapacityType = iota
	Spot
	Reserved
)

// String returns the value of the label karpenter.sh/capacity-type.
func (c CapacityType) String() string {
	switch c {
	case Spot:
		return "spot"
	case Reserved:
		return "reserved"
	}
	return "on-demand"
}

// An InstanceType is a size of machine that a provider sells.
type InstanceType struct {
	ID       TypeID
	Provider string // "aws", "gcp", "azure", "rackspace"
	Name     string // "m5.large"
	Family   string // "m5"
	Category string // "m": the letters before the generation
	Arch     string // "amd64" or "arm64", as in kubernetes.io/arch

	// VCPU is the number of virtual CPUs sold.
	VCPU int64

	// Capacity is what the machine has; Allocatable is what is left for pods
	// after the kubelet's and the system's reservations.
	Capacity    Resources
	Allocatable Resources

	// GPUResource is the extended resource that Resources.GPU counts, such as
	// "nvidia.com/gpu"; empty without accelerators. GPUName is the model.
	GPUResource string
	GPUName     string

	// Credits are the terms on which a burstable type is sold; zero for others.
	Credits CPUCredits `json:",omitzero"`

	// VolumesMax is the number of block volumes that can be attached.
	VolumesMax int32

	// NetworkMbps is the baseline bandwidth, 0 when not published.
	NetworkMbps int64

	// Labels are those that a node of this type carries whatever its market.
	Labels []Label
}

// A Market is one thing that has a price: provider, region, zone, instance
// type and capacity type, as seen at Snapshot.Now.
type Market struct {
	ID MarketID

	// Name is "provider/region/zone/type/capacity-type" and is unique.
	Name     string
	Provider string
	Region   string
	Zone     ZoneID
	Type     TypeID
	Capacity CapacityType

	// Offered is false while the provider sells nothing here. Price is then
	// not to be read.
	Offered bool

	// Price is the price of one node for one hour now. Reserve is the least a
	// node is charged where the provider has one (Rackspace), else 0: see
	// [Market.Charge].
	Price   Money
	Reserve Money

	// OnDemand is the on-demand price of the same type in the same region, and
	// OnDemandModelled says that it was derived and not published.
	OnDemand         Money
	OnDemandModelled bool

	// History holds the prices at the last instants of the 10-minute UTC grid
	// up to Now, oldest first, at most 24; NoPrice where not offered.
	History []Money

	// Published signals. A value below zero means that the signal is unknown.
	Band           Band
	BandModelled   bool // drawn by the simulator and not recorded
	PlacementScore int8 // 1…10 for spot, per type and zone

	// BidPercentiles are the bids at the 20th, 50th and 80th percentile where
	// the provider publishes them; zero when it does not.
	BidPercentiles [3]Money

	// Experience is what our own cluster met here.
	Experience Experience

	// Forecast is written by the forecaster, after the observer.
	Forecast Forecast

	// PricedAt is when Price came into force, if known.
	PricedAt Time
}

// Auction reports whether m is an auction: a launch names the most that it pays,
// and the node is lost when the market price rises above that.
func (m *Market) Auction() bool { return m.Provider == Rackspace && m.Capacity == Spot }

// Charge returns what a node of m costs per hour now: the market price, or the
// reserve price where that is higher.
func (m *Market) Charge() Money { return max(m.Price, m.Reserve) }

// Outpriced reports whether m is an auction whose nodes cost more than they do on demand.
func (m *Market) Outpriced() bool { return m.Auction() && m.OnDemand > 0 && m.Charge() > m.OnDemand }

// ConfidenceMin is the least confidence of a forecast for which a Spot market is bought by choice,
// unless the guardrails are set to another. In [0, 1].
const ConfidenceMin = 0.5

// Trusted reports whether m may be bought by choice where forecasts need a confidence.
// Without a forecast no decision rests on one, so that there is nothing to distrust.
func (m *Market) Trusted(confidenceMin float64) bool {
	f := &m.Forecast
	return m.Capacity != Spot || f.Source == SourceNone || f.Confidence >= confidenceMin
}

// A Band is the provider's published class of interruption frequency over a month: 0 is below 5%,
// then 5–10, 10–15, 15–20, and 4 above 20%.
type Band int8

// BandUnknown means that no band is published for a market.
const BandUnknown Band = -1

// BandCount is the number of published bands.
const BandCount = 5

// HoursPerMonth is the month in which providers state interruption frequency.
const HoursPerMonth = 730

// MonthlyReclaims returns by band the probability that a node is reclaimed within
// a month: the middle of each band, and 0.30 for the one that is open above.
func MonthlyReclaims() [BandCount]float64 { return [...]float64{0.025, 0.075, 0.125, 0.175, 0.30} }

// An Experience counts what we met in a market, each count decaying with the
// half-life ExperienceHalfLife and stated as of At.
type Experience struct {
	At        Time
	Launches  float64 // nodes that we were given
	Refusals  float64 // launches refused for lack of capacity
	Reclaims  float64 // nodes that the provider took
	NodeHours float64 // hours that our nodes ran

	// Refused and Reclaimed are the last instants of each; zero if never.
	Refused   Time
	Reclaimed Time
}

// ExperienceHalfLife is how long until an old observation counts half.
const ExperienceHalfLife = 14 * 24 * time.Hour

// A ForecastSource says what made a forecast.
type ForecastSource uint8

// The sources of a forecast.
const (
	SourceNone ForecastSource = iota
	SourceClosedForm
	SourceModel
	SourceRecorded
)

// String returns the name used in output.
func (f ForecastSource) String() string {
	return [...]string{"none", "closed-form", "model", "recorded"}[f]
}

// A Forecast is what a forecaster expects of a market. It is data and not a
// model, so that a recorded snapshot can be decided again without one. All
// numbers are multiples of 1/65,536.
type Forecast struct {
	// Hazard is the expected number of reclaims per node-hour; 0 on demand.
	Hazard float64

	// Capacity and Runtime are risk scores in [0, 1] for a running node: that a
	// shortage of capacity takes it, and that it is lost for any reason, within
	// the next hour.
	Capacity, Runtime float64

	// Confidence in [0, 1] is how far the numbers can be trusted; out of
	// scope is 0.
	Confidence float64

	Source ForecastSource
}
