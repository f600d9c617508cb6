package aws

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/spotter-dev/spotter/policy"
)

// A Reader reads the present state repeatedly, as a controller does. It does not write a trace. It
// is safe for concurrent use.
//
// A request is retried for about 15 seconds and then fails, so that callers can continue with the
// data they have. Credentials are looked up at the first request, and again after AWS has reported
// that they expired.
type Reader struct {
	config Config
	stats  stats

	session chan *session    // contains the session, nil until it is needed; its user takes it out
	quota   chan *scoreQuota // likewise
}

// NewReader returns a reader of the regions, types and product of c. It ignores the fields of c
// that concern the span of a recording. Dir may be empty; otherwise it must be an existing folder,
// in which requested placement scores are counted, so that the quota of AWS is respected across
// restarts.
func NewReader(c Config) (*Reader, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &Reader{config: c, session: make(chan *session, 1), quota: make(chan *scoreQuota, 1)}
	r.session <- nil
	r.quota <- nil
	return r, nil
}

// Regions returns the regions of the configuration, ascending.
func (r *Reader) Regions() []string { return sorted(r.config.Regions) }

// open returns the session. The first call creates it.
func (r *Reader) open(ctx context.Context) (s *session, err error) {
	select {
	case s = <-r.session:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s == nil {
		s, err = newSession(ctx, &r.config, &r.stats)
	}
	r.session <- s
	return s, err
}

// ask calls f with the session.
func ask[T any](ctx context.Context, r *Reader, f func(*session) (T, error)) (result T, err error) {
	s, err := r.open(ctx)
	if err == nil {
		result, err = f(s)
	}
	return result, r.expired(err)
}

// expired returns err. If err means that the credentials are no longer accepted, the next request
// looks for credentials again.
func (r *Reader) expired(err error) error {
	if errors.Is(err, ErrExpired) || errors.Is(err, ErrCredentials) {
		<-r.session
		r.session <- nil
	}
	return err
}

// plan returns a plan that ends at until and selects the configured data.
func (r *Reader) plan(until policy.Time) *plan {
	c := &r.config
	return &plan{
		Regions: sorted(c.Regions), Types: sorted(c.Types), Families: sorted(c.Families), Product: c.Product,
		Until: until, Present: true,
	}
}

// A SpotPrice is a price that came into effect at At. Either ZoneName or ZoneID may be empty.
type SpotPrice struct {
	ZoneName, ZoneID, Type string
	At                     policy.Time
	Price                  policy.Money
}

// Prices returns the Spot prices of a region that came into effect in a span, in any order, and for
// each market the price in effect at its start. The bounds have a resolution of one second. Rows
// that cannot be parsed are omitted and counted in unreadable.
func (r *Reader) Prices(ctx context.Context, region string, from, until policy.Time) (prices []SpotPrice,
	unreadable int, err error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	p, w := r.plan(until), window{region, from, until}
	for range restartsMax {
		var again bool
		prices, unreadable = nil, 0
		again, err = p.pages(ctx, s.optional[region], w, "", func(answer *ec2.DescribeSpotPriceHistoryOutput) error {
			for i := range answer.SpotPriceHistory {
				row, asked, err := p.row(&answer.SpotPriceHistory[i])
				switch {
				case err != nil:
					unreadable++
				case asked:
					prices = append(prices, row)
				}
			}
			return nil
		})
		if !again {
			break
		}
	}
	if err != nil {
		return nil, 0, r.expired(err)
	}
	return prices, unreadable, nil
}

// Zones returns the IDs of the zones of a region by name.
func (r *Reader) Zones(ctx context.Context, region string) (map[string]string, error) {
	return ask(ctx, r, func(s *session) (map[string]string, error) { return s.listZones(ctx, region) })
}

// OnDemand returns the on-demand prices of a region by type.
func (r *Reader) OnDemand(ctx context.Context, region string) (map[string]policy.Money, error) {
	return ask(ctx, r, func(s *session) (map[string]policy.Money, error) { return s.onDemand(ctx, region, r.plan(0)) })
}

// Bands returns the interruption bands of all regions by region and type.
func (r *Reader) Bands(ctx context.Context) (map[string]map[string]int8, error) {
	return ask(ctx, r, func(s *session) (map[string]map[string]int8, error) {
		return s.bands(ctx, r.config.AdvisorURL, r.plan(0))
	})
}

// Scores returns the placement scores of kinds in a region, by type and zone ID. It requests them
// in the order of kinds, within Config.ScoresMax and the quota of AWS. A score that was requested
// within the last day does not count again. left is the number of types without scores. If an error
// occurs, Scores also returns the scores that it has.
func (r *Reader) Scores(ctx context.Context, region string, kinds []string) (scores map[string]map[string]int8,
	left int, err error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	scores = map[string]map[string]int8{}
	for i, kind := range kinds {
		ok, err := r.useQuota(region, kind)
		if err != nil {
			return scores, left, err
		}
		if !ok {
			left++
			continue
		}
		of, over, err := s.score(ctx, region, kind, r.config.ScoreCapacity)
		if err != nil {
			return scores, left + len(kinds) - i, r.expired(err)
		}
		if over {
			left++ // AWS may still respond to configurations that it already knows
			continue
		}
		scores[kind] = of
	}
	return scores, left, nil
}

// useQuota counts a request for a placement score, and reports whether the quota allows it.
func (r *Reader) useQuota(region, kind string) (bool, error) {
	quota := <-r.quota
	defer func() { r.quota <- quota }()
	now := policy.TimeOf(r.config.Now())
	if quota == nil {
		path := ""
		if r.config.Dir != "" {
			path = filepath.Join(r.config.Dir, "scores.json")
		}
		var err error
		if quota, err = readQuota(path, now); err != nil {
			return false, err
		}
	}
	quota.forget(now)
	return quota.use(fmt.Sprintf("%s %s ×%d", region, kind, r.config.ScoreCapacity), r.config.ScoresMax, now)
}

// An InstanceType is the description of an instance type by EC2.
type InstanceType struct {
	Name            string
	Arch            string // "x86_64" or "arm64", as in EC2
	VCPU, MemoryMiB int64

	// GPUs is the number of accelerators, GPUName their model and GPUMaker their manufacturer, as
	// in EC2.
	GPUs              int64
	GPUName, GPUMaker string

	ENIs, IPv4, Mbps int64

	// For these fields, see catalog.Description.
	CPUMaker                          string
	ClockMHz, EBSMbps, NVMeGB, GPUMiB int64
	Encrypted                         bool
}

// Types returns the types of a region that support x86-64 or ARM and whose description by EC2 is
// complete.
func (r *Reader) Types(ctx context.Context, region string) ([]InstanceType, error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	var all []InstanceType
	pages := ec2.NewDescribeInstanceTypesPaginator(s.optional[region],
		&ec2.DescribeInstanceTypesInput{MaxResults: sdk.Int32(100)},
		func(o *ec2.DescribeInstanceTypesPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return nil, r.expired(fault(ctx, actionTypes, region, err))
		}
		for i := range answer.InstanceTypes {
			if t, ok := describeType(&answer.InstanceTypes[i]); ok && takes(r.config.Types, r.config.Families, t.Name) {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// describeType converts the description of a type. ok is false if a required field is missing.
func describeType(x *types.InstanceTypeInfo) (t InstanceType, ok bool) {
	if x.VCpuInfo == nil || x.MemoryInfo == nil || x.NetworkInfo == nil || x.ProcessorInfo == nil {
		return t, false
	}
	t = InstanceType{
		Name: string(x.InstanceType), VCPU: int64(sdk.ToInt32(x.VCpuInfo.DefaultVCpus)), MemoryMiB: sdk.ToInt64(x.MemoryInfo.SizeInMiB),
		ENIs: int64(sdk.ToInt32(x.NetworkInfo.MaximumNetworkInterfaces)), IPv4: int64(sdk.ToInt32(x.NetworkInfo.Ipv4AddressesPerInterface)),
	}
	for _, a := range x.ProcessorInfo.SupportedArchitectures {
		if a == types.ArchitectureTypeX8664 || a == types.ArchitectureTypeArm64 {
			t.Arch = string(a)
		}
	}
	if len(x.NetworkInfo.NetworkCards) > 0 {
		t.Mbps = int64(sdk.ToFloat64(x.NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps) * 1000)
	}
	t.describeLabels(x)
	return t, t.Name != "" && t.Arch != "" && t.VCPU > 0 && t.MemoryMiB > 0 && t.ENIs > 0 && t.IPv4 > 1
}

// describeLabels sets the accelerators and the other fields that Karpenter turns into labels.
func (t *InstanceType) describeLabels(x *types.InstanceTypeInfo) {
	if x.GpuInfo != nil {
		for _, g := range x.GpuInfo.Gpus {
			t.GPUs += int64(sdk.ToInt32(g.Count))
			t.GPUName, t.GPUMaker = sdk.ToString(g.Name), sdk.ToString(g.Manufacturer)
			if g.MemoryInfo != nil {
				t.GPUMiB = int64(sdk.ToInt32(g.MemoryInfo.SizeInMiB))
			}
		}
	}
	if x.NeuronInfo != nil {
		for _, d := range x.NeuronInfo.NeuronDevices {
			t.GPUs += int64(sdk.ToInt32(d.Count))
			t.GPUName, t.GPUMaker = sdk.ToString(d.Name), "AWS"
		}
	}
	t.CPUMaker = sdk.ToString(x.ProcessorInfo.Manufacturer)
	t.ClockMHz = int64(math.Round(sdk.ToFloat64(x.ProcessorInfo.SustainedClockSpeedInGhz) * 1000))
	t.Encrypted = sdk.ToBool(x.NetworkInfo.EncryptionInTransitSupported)
	if e := x.EbsInfo; e != nil && e.EbsOptimizedInfo != nil && e.EbsOptimizedSupport == types.EbsOptimizedSupportDefault {
		t.EBSMbps = int64(sdk.ToInt32(e.EbsOptimizedInfo.MaximumBandwidthInMbps))
	}
	if disks := x.InstanceStorageInfo; disks != nil && disks.NvmeSupport != types.EphemeralNvmeSupportUnsupported {
		t.NVMeGB = sdk.ToInt64(disks.TotalSizeInGB)
	}
}

// Offerings returns the types that are offered in a region, by name of the zone.
func (r *Reader) Offerings(ctx context.Context, region string) (zones map[string][]string, err error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	zones = map[string][]string{}
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(s.optional[region], &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: sdk.Int32(pageMax),
	}, func(o *ec2.DescribeInstanceTypeOfferingsPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		answer, err := pages.NextPage(ctx)
		if err != nil {
			return nil, r.expired(fault(ctx, actionOffers, region, err))
		}
		for _, o := range answer.InstanceTypeOfferings {
			if zone := sdk.ToString(o.Location); zone != "" && takes(r.config.Types, r.config.Families, string(o.InstanceType)) {
				zones[zone] = append(zones[zone], string(o.InstanceType))
			}
		}
	}
	return zones, nil
}
