package aws

// IAMPolicy is the least that an account must allow a recorder. The actions
// have no narrower resource than "*" (AWS documentation, "Actions, resources,
// and condition keys").
const IAMPolicy = `{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "SpotterTraceRecord",
      "Effect": "Allow",
      "Action": [
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeRegions",
        "ec2:DescribeSpotPriceHistory",
        "ec2:GetSpotPlacementScores",
        "pricing:GetProducts"
      ],
      "Resource": "*"
    }
  ]
}
`

// ReaderActions are those that an account must allow a [Reader], ascending. A
// reader without one of them does without what that reads.
var ReaderActions = []string{actionZones, actionOffers, actionTypes, actionHistory, actionScores, actionProducts}

// The actions of IAM that recorders and readers need.
const (
	actionZones    = "ec2:DescribeAvailabilityZones"
	actionRegions  = "ec2:DescribeRegions"
	actionHistory  = "ec2:DescribeSpotPriceHistory"
	actionScores   = "ec2:GetSpotPlacementScores"
	actionProducts = "pricing:GetProducts"
	actionTypes    = "ec2:DescribeInstanceTypes"
	actionOffers   = "ec2:DescribeInstanceTypeOfferings"
	actionAdvisor  = "reading the Spot Instance Advisor"
)
