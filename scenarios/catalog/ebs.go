package catalog

// A Volume is a block volume of a node, as EC2 bills it.
type Volume struct {
	// Type is a volume type of Amazon EBS, such as "gp3".
	Type string

	// GiB is its size. IOPS and MiBps are the provisioned performance, 0 for what the type
	// includes.
	GiB, IOPS, MiBps int64
}

// A volumePrice is the price of a volume type in us-east-1, in dollars per month.
type volumePrice struct {
	gib float64

	// iops are the prices of one provisioned IOPS by tier of iopsTier, beyond iopsIncluded. mibps
	// is the price of one MiB/s beyond mibpsIncluded.
	iops          []float64
	iopsIncluded  int64
	mibps         float64
	mibpsIncluded int64
}

// iopsTier is the number of provisioned IOPS of io2 in each price tier but the last.
const iopsTier = 32_000

// volumePrices are the prices in us-east-1 (aws.amazon.com/ebs/pricing, 2026-08).
var volumePrices = map[string]volumePrice{
	"gp3":      {gib: 0.08, iops: []float64{0.005}, iopsIncluded: 3000, mibps: 0.04, mibpsIncluded: 125},
	"gp2":      {gib: 0.10},
	"io1":      {gib: 0.125, iops: []float64{0.065}},
	"io2":      {gib: 0.125, iops: []float64{0.065, 0.046, 0.032}},
	"st1":      {gib: 0.045},
	"sc1":      {gib: 0.015},
	"standard": {gib: 0.05},
}

// volumeRegion is the region to which volumePrices apply.
const volumeRegion = "us-east-1"

// gp3Prices are the prices of a GiB of gp3 per month by region (aws.amazon.com/ebs/pricing,
// 2021-07, half a year after the launch of gp3). All volume prices of a region are scaled by the
// ratio of its gp3 price to that of us-east-1, which is exact for gp2 and within a tenth for the
// others.
var gp3Prices = map[string]float64{
	"us-east-1": 0.08, "us-east-2": 0.08, "us-west-1": 0.096, "us-west-2": 0.08,
	"af-south-1": 0.1047, "ap-east-1": 0.1056, "ap-northeast-1": 0.096, "ap-northeast-2": 0.0912, "ap-northeast-3": 0.096,
	"ap-south-1": 0.0912, "ap-southeast-1": 0.096, "ap-southeast-2": 0.096, "ca-central-1": 0.088,
	"eu-central-1": 0.0952, "eu-north-1": 0.0836, "eu-south-1": 0.0924, "eu-west-1": 0.088, "eu-west-2": 0.0928, "eu-west-3": 0.0928,
	"me-south-1": 0.0968, "sa-east-1": 0.152,
}

// VolumeTypes returns the volume types that have a price, ascending.
func VolumeTypes() []string { return []string{"gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"} }

// PriceOf returns the price of v in a region, in dollars per month, and whether the region's prices
// are known; if not, it returns the price in us-east-1. The price of an unknown volume type is 0.
func (v Volume) PriceOf(region string) (dollars float64, known bool) {
	p := volumePrices[v.Type]
	dollars = float64(p.gib * float64(v.GiB))
	dollars += float64(p.mibps * float64(max(0, v.MiBps-p.mibpsIncluded)))
	left := max(0, v.IOPS-p.iopsIncluded)
	for i, price := range p.iops {
		n := left
		if i+1 < len(p.iops) {
			n = min(n, iopsTier)
		}
		dollars += float64(price * float64(n))
		left -= n
	}
	gp3, known := gp3Prices[region]
	if !known {
		return dollars, false
	}
	return float64(dollars * gp3 / gp3Prices[volumeRegion]), true
}
