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
        "ec2:DescribeSpotPriceHistory",
        "ec2:GetSpotPlacementScores",
        "pricing:GetProducts"
      ],
      "Resource": "*"
    }
  ]
}
`

// The actions of IAM that a recorder needs.
const (
	actionZones    = "ec2:DescribeAvailabilityZones"
	actionHistory  = "ec2:DescribeSpotPriceHistory"
	actionScores   = "ec2:GetSpotPlacementScores"
	actionProducts = "pricing:GetProducts"
	actionAdvisor  = "reading the Spot Instance Advisor"
)
