package fake

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"strconv"
)

// done is the answer to a change without content.
func done(action string) any {
	return struct{ XMLName xml.Name }{xml.Name{Local: action + "Result"}}
}

func (p scaling) setDesired(form url.Values) (any, *apiError) {
	g, no := p.group(form)
	if no != nil {
		return nil, no
	}
	n, err := strconv.Atoi(form.Get("DesiredCapacity"))
	if err != nil {
		return nil, invalid("DesiredCapacity is not a number")
	}
	if no := g.resize(n); no != nil {
		return nil, no
	}
	return done("SetDesiredCapacity"), nil
}

// resize sets what g is to hold, within its bounds.
func (g *held) resize(n int) *apiError {
	switch {
	case n > g.Max:
		return invalid(fmt.Sprintf("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.",
			n, g.Max))
	case n < g.Min:
		return invalid(fmt.Sprintf("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.",
			n, g.Min))
	}
	g.Desired = n
	return nil
}

// SetDesired sets the size of a group as another client would.
func (s *Server) SetDesired(group string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.groups.keep()
	return s.groups.byName[group].resize(n) == nil
}

// terminate ends an instance. One that is ending already is ended again, so a
// second call with decrement takes the size down twice.
func (p scaling) terminate(form url.Values) (any, *apiError) {
	a, no := p.s.groups.terminateInstance(form.Get("InstanceId"), form.Get("ShouldDecrementDesiredCapacity") == "true")
	if no != nil {
		return nil, no
	}
	return struct {
		XMLName xml.Name    `xml:"TerminateInstanceInAutoScalingGroupResult"`
		Row     activityRow `xml:"Activity"`
	}{Row: activityRow{ID: a.ID, Status: a.Status, Description: a.Description, Cause: a.Cause, Start: stamp(a.Start)}}, nil
}

// Terminate ends an instance as another client would, with decrement.
func (s *Server) Terminate(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.groups.keep()
	_, no := s.groups.terminateInstance(id, true)
	return no == nil
}

func (sim *groupSim) terminateInstance(id string, decrement bool) (Activity, *apiError) {
	for _, g := range sim.byName {
		i := g.find(id)
		if i == nil {
			continue
		}
		if decrement {
			if g.Desired <= g.Min {
				return Activity{},
					invalid(fmt.Sprintf("Currently, desiredSize equals minSize (%d). Terminating instance without replacement will violate group's min size constraint. "+
						"Either set shouldDecrementDesiredCapacity flag to false or lower group's min size.", g.Min))
			}
			g.Desired--
		}
		if !i.ending() {
			sim.end(g, i, "a user request")
		}
		return g.activities[0], nil
	}
	return Activity{}, invalid("Instance Id not found - No managed instance found for instance ID: " + id)
}

func (p scaling) protect(form url.Values) (any, *apiError) {
	g, no := p.group(form)
	if no != nil {
		return nil, no
	}
	for _, id := range member(form, "InstanceIds") {
		i := g.find(id)
		if i == nil {
			return nil, invalid("The instance " + id + " is not part of Auto Scaling group " + g.Name + ".")
		}
		if i.State != InService {
			return nil, invalid("The instance " + id + " is not in InService or EnteringStandby or Standby.")
		}
		i.Protected = form.Get("ProtectedFromScaleIn") == "true"
	}
	return done("SetInstanceProtection"), nil
}

// tagsMax is the most tags that a group may have (AWS documentation, "Tag Auto
// Scaling groups and instances").
const tagsMax = 50

func (p scaling) createTags(form url.Values) (any, *apiError) {
	return p.eachTag(form, "CreateOrUpdateTags", func(g *held, key, value string) *apiError {
		if _, has := g.Tags[key]; !has && len(g.Tags) >= tagsMax {
			return &apiError{400, "LimitExceeded", "The number of tags is limited to 50."}
		}
		if len(key) > 128 || len(value) > 256 {
			return invalid("The key or value of a tag is too long.")
		}
		g.Tags[key] = value
		return nil
	})
}

func (p scaling) deleteTags(form url.Values) (any, *apiError) {
	return p.eachTag(form, "DeleteTags", func(g *held, key, _ string) *apiError {
		delete(g.Tags, key)
		return nil
	})
}

func (p scaling) eachTag(form url.Values, action string, do func(g *held, key, value string) *apiError) (any,
	*apiError) {
	for i := 1; ; i++ {
		prefix := "Tags.member." + strconv.Itoa(i) + "."
		name := form.Get(prefix + "ResourceId")
		if name == "" {
			return done(action), nil
		}
		g := p.s.groups.byName[name]
		if g == nil || form.Get(prefix+"ResourceType") != "auto-scaling-group" {
			return nil, invalid("There is no auto-scaling-group " + name)
		}
		if no := do(g, form.Get(prefix+"Key"), form.Get(prefix+"Value")); no != nil {
			return nil, no
		}
	}
}

// updateGroup writes bounds, and the part on demand of a mixed group: the group
// then replaces instances of the other kind, as AWS does, without asking.
func (p scaling) updateGroup(form url.Values) (any, *apiError) {
	g, no := p.group(form)
	if no != nil {
		return nil, no
	}
	if v, err := strconv.Atoi(form.Get("MaxSize")); err == nil {
		if v < g.Min {
			return nil, invalid("Max bound must be greater than or equal to min bound")
		}
		g.Max = v
		g.Desired = min(g.Desired, v)
	}
	const percent = "MixedInstancesPolicy.InstancesDistribution.OnDemandPercentageAboveBaseCapacity"
	if v, err := strconv.Atoi(form.Get(percent)); err == nil {
		if !g.Mixed {
			return nil, invalid("The group has no mixed instances policy.")
		}
		g.OnDemandPercent = v
		p.s.groups.replaceMixed(g)
	}
	return done("UpdateAutoScalingGroup"), nil
}

// replaceMixed ends the instances of which g has too many of one kind.
func (sim *groupSim) replaceMixed(g *held) {
	want := (g.live()*g.OnDemandPercent + 99) / 100
	have := 0
	for k := range g.Instances {
		if i := &g.Instances[k]; !i.Spot && !i.ending() {
			have++
		}
	}
	for k := range g.Instances {
		i := &g.Instances[k]
		switch {
		case i.ending():
		case have > want && !i.Spot:
			have--
			sim.end(g, i, "a change of the purchase options")
		case have < want && i.Spot:
			have++
			sim.end(g, i, "a change of the purchase options")
		}
	}
}
