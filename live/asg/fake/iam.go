package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// A Judged is what IAM judges a request by: the name of its resource, the tags that the
// resource has, and the keys of the tags that the request writes.
type Judged struct {
	Action, Region, Resource string
	Tags                     map[string]string
	TagKeys                  []string
}

// SetPolicy has requests refused that allows does not allow.
func (s *Server) SetPolicy(allows func(Judged) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.iam.allows = allows
}

// An iamPolicy refuses what it does not allow.
type iamPolicy struct {
	region string
	groups *groupSim
	allows func(Judged) bool // nil allows all
}

// denied returns a refusal of what the policy does not allow.
func (iam *iamPolicy) denied(c *Call, p protocol) *apiError {
	if iam.allows == nil || iam.allows(iam.judged(c, p)) {
		return nil
	}
	return &apiError{403, "AccessDenied", "no statement of the policy allows " + c.Action}
}

func (iam *iamPolicy) judged(c *Call, p protocol) Judged {
	j := Judged{Action: c.Action, Region: iam.region, Resource: "*"}
	if m, ok := p.(*managed); ok {
		if g, no := m.target(); no == nil {
			j.Resource, j.Tags = fmt.Sprintf("arn:aws:eks:%s:111122223333:nodegroup/%s/%s/0", iam.region, g.Cluster,
				g.Nodegroup), g.ngTags
		}
		var in struct{ Tags map[string]string }
		if json.Unmarshal([]byte(c.Body), &in) == nil {
			j.TagKeys = slices.Sorted(maps.Keys(in.Tags))
		}
		j.TagKeys = append(j.TagKeys, m.query["tagKeys"]...)
		return j
	}
	if !c.Write() {
		return j
	}
	name := c.Form.Get("AutoScalingGroupName")
	for i := 1; c.Form.Has("Tags.member." + strconv.Itoa(i) + ".Key"); i++ {
		prefix := "Tags.member." + strconv.Itoa(i) + "."
		name, j.TagKeys = c.Form.Get(prefix+"ResourceId"), append(j.TagKeys, c.Form.Get(prefix+"Key"))
	}
	for _, g := range iam.groups.byName {
		for _, i := range g.Instances {
			if id := c.Form.Get("InstanceId"); id != "" && i.ID == id {
				name = g.Name
			}
		}
	}
	j.Resource = fmt.Sprintf("arn:aws:autoscaling:%s:111122223333:autoScalingGroup:0:autoScalingGroupName/%s",
		iam.region, name)
	if g := iam.groups.byName[name]; g != nil {
		j.Tags = g.Tags
	}
	return j
}
