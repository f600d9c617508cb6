package rights

import (
	"cmp"
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
// actions with the same limit. No setting names the key of the queue, whose statement the user adds.
func PolicyOf(s Setup) Policy {
	p := Policy{Version: "2012-10-17"}
	statementOf := map[Limit]int{}
	for _, permission := range AWS() {
		ofKey := permission.On == limitKey
		if !s.needs(permission.Part, permission.Active) || ofKey && (permission.Part != Bucket || s.Key == "") {
			continue
		}
		i, known := statementOf[permission.On]
		if !known {
			i, statementOf[permission.On] = len(p.Statement), len(p.Statement)
			p.Statement = append(p.Statement, s.statement(permission.On))
		}
		p.Statement[i].Action = append(p.Statement[i].Action, permission.Action)
	}
	for i := range p.Statement {
		slices.Sort(p.Statement[i].Action)
	}
	return p
}

// statement returns a statement without actions that has the limit.
func (s Setup) statement(limit Limit) Statement {
	x := Statement{Effect: "Allow"}
	switch limit {
	case limitRegions:
		x.Resource = []string{"*"}
		x.require("StringEquals", "aws:RequestedRegion", s.Regions...)
	case limitPricing: // the only endpoint that the controller calls
		x.Resource = []string{"*"}
		x.require("StringEquals", "aws:RequestedRegion", "us-east-1")
	case limitGroups, limitGroupTags:
		x.Resource = arnsOf(s.Regions, "autoscaling", "autoScalingGroup:*:autoScalingGroupName/*")
		x.requireOwnAccount()
		x.require("StringEquals", "aws:ResourceTag/kubernetes.io/cluster/"+s.Cluster, "owned", "shared")
	case limitManaged, limitManagedTags:
		x.Resource = arnsOf(s.Regions, "eks", "nodegroup/"+s.Cluster+"/*/*")
		x.requireOwnAccount()
	case limitQueue:
		x.Resource = []string{s.queueARN()}
	case limitBucket, limitObjects:
		arn, prefix := s.bucketARN()
		x.Resource = []string{arn + "/" + prefix + "*"}
		if limit == limitBucket {
			x.Resource = []string{arn}
			x.require("StringLike", "s3:prefix", prefix+"*")
		}
	case limitKey:
		s.limitToKey(&x)
	}
	if limit == limitGroupTags || limit == limitManagedTags {
		x.require("ForAllValues:StringLike", "aws:TagKeys", "spotter.dev/*")
	}
	return x
}

// require adds a condition.
func (x *Statement) require(operator, key string, values ...string) {
	if x.Condition == nil {
		x.Condition = map[string]map[string][]string{}
	}
	if x.Condition[operator] == nil {
		x.Condition[operator] = map[string][]string{}
	}
	x.Condition[operator][key] = slices.Clone(values)
}

// requireOwnAccount limits the statement to resources of the account of the role.
func (x *Statement) requireOwnAccount() {
	x.require("StringEquals", "aws:ResourceAccount", "${aws:PrincipalAccount}")
}

// arnsOf returns the ARNs of a resource of any account, one for each region.
func arnsOf(regions []string, service, resource string) (all []string) {
	for _, r := range regions {
		all = append(all, fmt.Sprintf("arn:%s:%s:%s:*:%s", partition(r), service, r, resource))
	}
	return all
}

// bucketARN returns the ARN of the bucket, and the prefix of its objects, which is empty or ends
// with a slash.
func (s Setup) bucketARN() (arn, prefix string) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(s.Bucket, "s3://"), "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return "arn:" + partition(s.bucketRegion()) + ":s3:::" + bucket, prefix
}

// bucketRegion returns the region of the bucket, or else a region of the same partition. It is
// empty if none is known.
func (s Setup) bucketRegion() string {
	return cmp.Or(s.BucketRegion, slices.Concat(s.Regions, []string{""})[0])
}

// limitToKey limits the statement to the key of the bucket, which is given as an ID, an alias, or
// the ARN of either. The key is in the region of the bucket. An alias is no resource of a policy: it
// is a condition on the keys that have it (AWS KMS Developer Guide, "Use aliases to control access
// to KMS keys").
func (s Setup) limitToKey(x *Statement) {
	base, name := fmt.Sprintf("arn:%s:kms:%s:*:", partition(s.bucketRegion()), cmp.Or(s.BucketRegion, "*")), s.Key
	if i := strings.LastIndex(s.Key, ":"); i >= 0 {
		base, name = s.Key[:i+1], s.Key[i+1:]
	} else {
		x.requireOwnAccount()
	}
	if strings.HasPrefix(name, "alias/") {
		x.Resource = []string{base + "key/*"}
		x.require("ForAnyValue:StringEquals", "kms:ResourceAliases", name)
		return
	}
	x.Resource = []string{base + "key/" + strings.TrimPrefix(name, "key/")}
}

// queueARN returns the ARN of a queue whose URL has the form
// https://sqs.us-east-1.amazonaws.com/123456789012/spotter. The region is the last part of the host
// with two hyphens, since the name of a VPC endpoint, which may precede it, has hyphens too.
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
