package rights

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A Policy is an IAM policy.
type Policy struct {
	Version   string
	Statement []Statement
}

// A Statement allows actions on resources. Condition contains the values by operator and key.
type Statement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// JSON returns the policy as JSON.
func (p Policy) JSON() []byte {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("rights: a policy of plain strings: %v", err))
	}
	return text
}

// PolicyOf returns the policy that allows only what a controller needs, with one statement for all
// actions with the same limits.
func PolicyOf(s Setup) Policy {
	p := Policy{Version: "2012-10-17"}
	at := map[string]int{}
	for _, x := range AWS() {
		if !s.needs(x.Part, x.Active) || x.On == theKey && (x.Part != Bucket || s.Key == "") {
			continue
		}
		i, known := at[x.On]
		if !known {
			i, at[x.On] = len(p.Statement), len(p.Statement)
			p.Statement = append(p.Statement, s.statement(x.On))
		}
		p.Statement[i].Action = append(p.Statement[i].Action, x.Action)
	}
	for i := range p.Statement {
		slices.Sort(p.Statement[i].Action)
	}
	return p
}

// statement returns a statement without actions that has the limits on, one of the constants such
// as theQueue.
func (s Setup) statement(on string) Statement {
	equal := map[string][]string{}
	condition := map[string]map[string][]string{"StringEquals": equal}
	var resources []string
	inRegions := func(service, rest string) {
		for _, r := range s.Regions {
			resources = append(resources, fmt.Sprintf("arn:%s:%s:%s:*:%s", partition(r), service, r, rest))
		}
		equal["aws:ResourceAccount"] = []string{"${aws:PrincipalAccount}"}
	}
	if on == theTags || on == managedTags {
		condition["ForAllValues:StringLike"] = map[string][]string{"aws:TagKeys": {"spotter.dev/*"}}
	}
	switch on {
	case anything:
		resources, equal["aws:RequestedRegion"] = []string{"*"}, s.Regions
	case pricing: // the service has no other region
		resources, equal["aws:RequestedRegion"] = []string{"*"}, []string{"us-east-1"}
	case theGroups, theTags:
		inRegions("autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")
		equal["aws:ResourceTag/kubernetes.io/cluster/"+s.Cluster] = []string{"owned", "shared"}
	case theManaged, managedTags:
		inRegions("eks", "nodegroup/"+s.Cluster+"/*/*")
	case theQueue:
		resources = []string{s.queueARN()}
	case theBucket, theObjects:
		bucket, prefix, _ := strings.Cut(strings.TrimPrefix(s.Bucket, "s3://"), "/")
		arn := "arn:" + partition(slices.Concat(s.Regions, []string{""})[0]) + ":s3:::" + bucket
		if prefix = strings.Trim(prefix, "/"); prefix != "" {
			prefix += "/"
		}
		resources = []string{arn + "/" + prefix + "*"}
		if on == theBucket {
			resources, condition["StringLike"] = []string{arn}, map[string][]string{"s3:prefix": {prefix + "*"}}
		}
	case theKey:
		resources = []string{s.Key}
		if !strings.HasPrefix(s.Key, "arn:") {
			resources = nil
			inRegions("kms", "key/"+s.Key)
		}
	}
	if len(equal) == 0 {
		delete(condition, "StringEquals")
	}
	return Statement{Effect: "Allow", Resource: resources, Condition: condition}
}

// queueARN returns the ARN of a queue whose URL has the form
// https://sqs.us-east-1.amazonaws.com/123456789012/spotter.
func (s Setup) queueARN() string {
	region, path := "*", s.Queue
	if u, err := url.Parse(s.Queue); err == nil {
		path = u.Path
		for _, part := range strings.Split(u.Hostname(), ".") {
			if strings.Count(part, "-") >= 2 {
				region = part
			}
		}
	}
	account, name, _ := strings.Cut(strings.Trim(path, "/"), "/")
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partition(region), region, account, name)
}

// partition returns the AWS partition of a region.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}
