package catalog

// A Volume is a block volume of a node as EC2 bills it.
type Volume struct {
	// Type is a volume type of Amazon EBS, such as "gp3".
	Type string

	// GiB is its size; IOPS and MiBps are what is provisioned, 0 for what the type includes.
	GiB, IOPS, MiBps int64
}

// A volumePrice is what volumes of a type cost in us-east-1, in dollars a month.
type volumePrice struct {
	gib float64

	// iops is the price of one of them by tier, each of iopsTier, of which the first
	// included ones cost nothing; mibps that of one MiB/s beyond those included.
	iops          []float64
	iopsIncluded  int64
	mibps         float64
	mibpsIncluded int64
}

// iopsTier is how many provisioned IOPS of io2 have one price.
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

// volumeRegion is the region of volumePrices.
const volumeRegion = "us-east-1"

// gp3Prices are what a GiB of gp3 costs a month in each region (aws.amazon.com/ebs/pricing,
// 2021-07, when gp3 was half a year old). All prices of a region stand to those of
// us-east-1 as these do, which is exact for gp2 and within a tenth for the others.
var gp3Prices = map[string]float64{
	"us-east-1": 0.08, "us-east-2": 0.08, "us-west-1": 0.096, "us-west-2": 0.08,
	"af-south-1": 0.1047, "ap-east-1": 0.1056, "ap-northeast-1": 0.096, "ap-northeast-2": 0.0912, "ap-northeast-3": 0.096,
	"ap-south-1": 0.0912, "ap-southeast-1": 0.096, "ap-southeast-2": 0.096, "ca-central-1": 0.088,
	"eu-central-1": 0.0952, "eu-north-1": 0.0836, "eu-south-1": 0.0924, "eu-west-1": 0.088, "eu-west-2": 0.0928, "eu-west-3": 0.0928,
	"me-south-1": 0.0968, "sa-east-1": 0.152,
}

// VolumeTypes are the types of volumes that have a price, ascending.
func VolumeTypes() []string { return []string{"gp2", "gp3", "io1", "io2", "sc1", "st1", "standard"} }

// PriceOf returns what v costs in a region, in dollars a month. It reports false for a region
// whose prices are not here: then it is what v costs in us-east-1. An unknown type costs
// nothing.
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
