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

// An InstanceType is a type of machine that a provider sells.
type InstanceType struct {
	ID       TypeID
	Provider string // "aws", "gcp", "azure", "rackspace"
	Name     string // "m5.large"
	Family   string // "m5"
	Category string // "m": the letters before the generation
	Arch     string // "amd64" or "arm64", as in kubernetes.io/arch

	// VCPU is the number of virtual CPUs sold.
	VCPU int64

	// Capacity is the total resources of the machine. Allocatable is the part available to pods
	// after the reservations for the kubelet and the system.
	Capacity    Resources
	Allocatable Resources

	// GPUResource is the extended resource that Resources.GPU counts, such as "nvidia.com/gpu";
	// empty without accelerators. GPUName is the model of the accelerator.
	GPUResource string
	GPUName     string

	// Credits are the CPU credit terms of a burstable type; zero for other types.
	Credits CPUCredits `json:",omitzero"`

	// VolumesMax is the number of block volumes that can be attached.
	VolumesMax int32

	// NetworkMbps is the baseline bandwidth in Mbit/s; 0 if it is not published.
	NetworkMbps int64

	// Labels are the labels that every node of this type has, whatever its market.
	Labels []Label
}

// A Market is a combination of provider, region, zone, instance type and capacity type, which has
// one price. Its fields describe it at Snapshot.Now.
type Market struct {
	ID MarketID

	// Name is "provider/region/zone/type/capacity-type" and is unique.
	Name     string
	Provider string
	Region   string
	Zone     ZoneID
	Type     TypeID
	Capacity CapacityType

	// Offered reports whether the provider sells capacity in the market. If it is false, Price is
	// meaningless.
	Offered bool

	// Price is the current price per node-hour. Reserve is the minimum charge per node-hour where
	// the provider has one (Rackspace), and 0 otherwise: see [Market.Charge].
	Price   Money
	Reserve Money

	// OnDemand is the on-demand price per node-hour of the same type in the same region.
	// OnDemandModelled reports whether it was derived rather than published.
	OnDemand         Money
	OnDemandModelled bool

	// History contains the prices at the last points of the 10-minute UTC grid up to Now, oldest
	// first, at most 24. It has NoPrice where the market was not offered.
	History []Money

	// Published signals. A negative value means that the signal is unknown.
	Band           Band
	BandModelled   bool // drawn by the simulator and not recorded
	PlacementScore int8 // 1…10 for Spot, per type and zone

	// BidPercentiles are the 20th, 50th and 80th percentiles of the bids where the provider
	// publishes them; otherwise zero.
	BidPercentiles [3]Money

	// Experience is what this cluster observed in the market.
	Experience Experience

	// Forecast is set by the forecaster, after the observer has run.
	Forecast Forecast

	// PricedAt is the time at which Price took effect; zero if it is unknown.
	PricedAt Time
}

// Auction reports whether m is an auction: a launch contains a bid, and the node is lost when the
// market price rises above that bid.
func (m *Market) Auction() bool { return m.Provider == Rackspace && m.Capacity == Spot }

// Charge returns the current cost of a node per hour: the market price, or the reserve price if
// that is higher.
func (m *Market) Charge() Money { return max(m.Price, m.Reserve) }

// Outpriced reports whether m is an auction in which a node costs more than the same type on
// demand.
func (m *Market) Outpriced() bool { return m.Auction() && m.OnDemand > 0 && m.Charge() > m.OnDemand }

// ConfidenceMin is the default of the minimum forecast confidence, in [0, 1], at which policies buy
// in a Spot market by choice. The guardrails can override it.
const ConfidenceMin = 0.5

// Trusted reports whether policies may buy in m by choice, given a minimum forecast confidence. A
// market without a forecast is trusted, because no decision depends on one.
func (m *Market) Trusted(confidenceMin float64) bool {
	f := &m.Forecast
	return m.Capacity != Spot || f.Source == SourceNone || f.Confidence >= confidenceMin
}

// A Band is the provider's published class of interruption frequency over a month: 0 is below 5%, 1
// is 5–10%, 2 is 10–15%, 3 is 15–20% and 4 is above 20%.
type Band int8

// BandUnknown means that no band is published for a market.
const BandUnknown Band = -1

// BandCount is the number of published bands.
const BandCount = 5

// HoursPerMonth is the length of the month to which published interruption frequencies refer.
const HoursPerMonth = 730

// MonthlyReclaims returns, indexed by band, the probability that a node is reclaimed within a
// month: the middle of each band, and 0.30 for the band without an upper limit.
func MonthlyReclaims() [BandCount]float64 { return [...]float64{0.025, 0.075, 0.125, 0.175, 0.30} }

// An Experience counts events that this cluster observed in a market. Each count decays with the
// half-life ExperienceHalfLife and is valid at At.
type Experience struct {
	At        Time
	Launches  float64 // nodes obtained
	Refusals  float64 // launches refused for lack of capacity
	Reclaims  float64 // nodes that the provider reclaimed
	NodeHours float64 // hours that nodes of the cluster ran

	// Refused and Reclaimed are the times of the last refusal and of the last reclaim; zero if
	// there was no such event.
	Refused   Time
	Reclaimed Time
}

// ExperienceHalfLife is the time after which an observation counts half.
const ExperienceHalfLife = 14 * 24 * time.Hour

// A ForecastSource identifies what produced a forecast.
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

// A Forecast contains the numbers that a forecaster expects for a market. It is data rather than a
// model, so that a recorded snapshot can be decided again without the model. All numbers are
// multiples of 1/65,536.
type Forecast struct {
	// Hazard is the expected number of reclaims per node-hour; 0 on demand.
	Hazard float64

	// Capacity and Runtime are risk scores in [0, 1] for a running node within the next hour: the
	// risk that a capacity shortage takes it, and the risk that it is lost for any reason.
	Capacity, Runtime float64

	// Confidence in [0, 1] states how much to trust the numbers. It is 0 outside the scope of the
	// forecaster.
	Confidence float64

	Source ForecastSource
}
