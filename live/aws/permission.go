package aws

// IAMPolicy contains the minimum permissions of a recorder. Its actions do not support a resource
// other than "*" (AWS documentation, "Actions, resources, and condition keys").
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

// ReaderActions are the IAM actions that a [Reader] uses, in the order of their names. A reader
// without permission for one of them lacks only the data that it returns.
var ReaderActions = []string{actionZones, actionOffers, actionTypes, actionHistory, actionScores, actionProducts}

// The IAM actions that recorders and readers need. actionAdvisor is not an IAM action, but is
// reported in its place.
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
