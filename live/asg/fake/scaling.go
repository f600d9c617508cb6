package fake

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scaling is the protocol of Auto Scaling: a form goes in and XML comes out.
type scaling struct{ s *Server }

// A verb carries out one action.
type verb func(scaling, url.Values) (any, *apiError)

var verbs = map[string]verb{
	"autoscaling:DescribeAutoScalingGroups":           scaling.describeGroups,
	"autoscaling:DescribeScalingActivities":           scaling.describeActivities,
	"autoscaling:DescribeLifecycleHooks":              scaling.describeHooks,
	"autoscaling:SetDesiredCapacity":                  scaling.setDesired,
	"autoscaling:TerminateInstanceInAutoScalingGroup": scaling.terminate,
	"autoscaling:SetInstanceProtection":               scaling.protect,
	"autoscaling:CreateOrUpdateTags":                  scaling.createTags,
	"autoscaling:DeleteTags":                          scaling.deleteTags,
	"autoscaling:UpdateAutoScalingGroup":              scaling.updateGroup,
}

func (p scaling) answer(c *Call) (answer, *apiError) {
	do := verbs[c.Action]
	if do == nil {
		return answer{}, &apiError{http.StatusBadRequest, "InvalidAction", "The action " + c.Action +
			" is not valid for this web service."}
	}
	result, no := do(p, c.Form)
	if no != nil {
		return answer{}, no
	}
	name := c.Form.Get("Action")
	return xmlAnswer(wrapped{XMLName: xml.Name{Space: "http://autoscaling.amazonaws.com/doc/2011-01-01/", Local: name +
		"Response"}, Result: result}), nil
}

// wrapped is the envelope of an answer.
type wrapped struct {
	XMLName xml.Name
	Result  any
	ID      string `xml:"ResponseMetadata>RequestId"`
}

func (p scaling) refuse(no *apiError) answer {
	a := xmlAnswer(struct {
		XMLName xml.Name `xml:"http://autoscaling.amazonaws.com/doc/2011-01-01/ ErrorResponse"`
		Type    string   `xml:"Error>Type"`
		Code    string   `xml:"Error>Code"`
		Message string   `xml:"Error>Message"`
		ID      string   `xml:"RequestId"`
	}{Type: "Sender", Code: no.code, Message: no.message, ID: "0"})
	a.status = no.status
	return a
}

func xmlAnswer(v any) answer {
	body, err := xml.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fake: %v", err)) // only of types of this package
	}
	return answer{status: http.StatusOK, kind: "text/xml", body: body}
}

// member returns the values of name.member.1, name.member.2 and so on.
func member(form url.Values, name string) []string {
	var all []string
	for i := 1; ; i++ {
		v, ok := form[name+".member."+strconv.Itoa(i)]
		if !ok {
			return all
		}
		all = append(all, v[0])
	}
}

// page cuts rows where a token says, and returns the token of the next page.
func (s *Server) page(form url.Values, rows, most int) (from, to int, next string, no *apiError) {
	if n, err := strconv.Atoi(form.Get("MaxRecords")); err == nil && n > 0 {
		most = min(most, n)
	}
	if s.faults.PageMax > 0 {
		most = min(most, s.faults.PageMax)
	}
	if token := form.Get("NextToken"); token != "" {
		at, ok := s.tokens[token]
		if !ok {
			return 0, 0, "", &apiError{http.StatusBadRequest, "InvalidNextToken", "The token is not valid."}
		}
		from = min(at, rows)
	}
	if to = min(from+most, rows); to < rows {
		next = fmt.Sprintf("t%x", len(s.tokens))
		s.tokens[next] = to
	}
	return from, to, next, nil
}

type groupRow struct {
	Name         string        `xml:"AutoScalingGroupName"`
	ARN          string        `xml:"AutoScalingGroupARN"`
	Min          int           `xml:"MinSize"`
	Max          int           `xml:"MaxSize"`
	Desired      int           `xml:"DesiredCapacity"`
	Zones        []string      `xml:"AvailabilityZones>member"`
	Template     *templateRow  `xml:"LaunchTemplate"`
	Mixed        *mixedRow     `xml:"MixedInstancesPolicy"`
	Instances    []instanceRow `xml:"Instances>member"`
	Suspended    []processRow  `xml:"SuspendedProcesses>member"`
	Tags         []tagRow      `xml:"Tags>member"`
	NewProtected bool          `xml:"NewInstancesProtectedFromScaleIn"`
}

type templateRow struct {
	ID      string `xml:"LaunchTemplateId"`
	Version string `xml:"Version"`
}

type mixedRow struct {
	Template  templateRow `xml:"LaunchTemplate>LaunchTemplateSpecification"`
	Overrides []typeRow   `xml:"LaunchTemplate>Overrides>member"`
	Base      int         `xml:"InstancesDistribution>OnDemandBaseCapacity"`
	Percent   int         `xml:"InstancesDistribution>OnDemandPercentageAboveBaseCapacity"`
	Strategy  string      `xml:"InstancesDistribution>SpotAllocationStrategy"`
}

type typeRow struct {
	Type string `xml:"InstanceType"`
}

type instanceRow struct {
	ID        string `xml:"InstanceId"`
	Type      string `xml:"InstanceType"`
	Zone      string `xml:"AvailabilityZone"`
	State     string `xml:"LifecycleState"`
	Health    string `xml:"HealthStatus"`
	Protected bool   `xml:"ProtectedFromScaleIn"`
}

type processRow struct {
	Name string `xml:"ProcessName"`
}

type tagRow struct {
	Resource string `xml:"ResourceId"`
	Kind     string `xml:"ResourceType"`
	Key      string `xml:"Key"`
	Value    string `xml:"Value"`
	Launch   bool   `xml:"PropagateAtLaunch"`
}

// TemplateID is the launch template of a group.
func TemplateID(group string) string { return "lt-" + group }

func (p scaling) row(g *held) groupRow {
	x := p.seen(g)
	r := groupRow{Name: x.Name, Min: x.Min, Max: x.Max, Desired: x.Desired, Zones: x.Zones, NewProtected: x.NewProtected,
		ARN: "arn:aws:autoscaling:" + p.s.region + ":111122223333:autoScalingGroup:0:autoScalingGroupName/" + x.Name}
	t := templateRow{TemplateID(x.Name), "$Latest"}
	if x.Mixed {
		r.Mixed = &mixedRow{Template: t, Percent: x.OnDemandPercent, Strategy: "price-capacity-optimized"}
		for _, kind := range x.Types {
			r.Mixed.Overrides = append(r.Mixed.Overrides, typeRow{kind})
		}
	} else {
		r.Template = &t
	}
	for _, i := range x.Instances {
		r.Instances = append(r.Instances, instanceRow{i.ID, i.Type, i.Zone, i.State, "Healthy", i.Protected})
	}
	for _, p := range x.Suspended {
		r.Suspended = append(r.Suspended, processRow{p})
	}
	for _, k := range slices.Sorted(maps.Keys(x.Tags)) {
		r.Tags = append(r.Tags, tagRow{x.Name, "auto-scaling-group", k, x.Tags[k], false})
	}
	return r
}

// fits reports whether g passes the filters of a form: each "tag:KEY" with
// values, or "tag-key".
func (g *held) fits(form url.Values) bool {
	for i := 1; ; i++ {
		prefix := "Filters.member." + strconv.Itoa(i)
		name := form.Get(prefix + ".Name")
		if name == "" {
			return true
		}
		values := member(form, prefix+".Values")
		ok := false
		if key, isTag := strings.CutPrefix(name, "tag:"); isTag {
			v, has := g.Tags[key]
			ok = has && slices.Contains(values, v)
		} else if name == "tag-key" {
			ok = slices.ContainsFunc(values, func(k string) bool { _, has := g.Tags[k]; return has })
		}
		if !ok {
			return false
		}
	}
}

func (p scaling) describeGroups(form url.Values) (any, *apiError) {
	names := member(form, "AutoScalingGroupNames")
	var fit []*held
	for _, name := range slices.Sorted(maps.Keys(p.s.groups.byName)) {
		if g := p.s.groups.byName[name]; (len(names) == 0 || slices.Contains(names, name)) && g.fits(form) {
			fit = append(fit, g)
		}
	}
	from, to, next, no := p.s.page(form, len(fit), 100)
	if no != nil {
		return nil, no
	}
	var rows []groupRow
	for _, g := range fit[from:to] {
		rows = append(rows, p.row(g))
	}
	return struct {
		XMLName xml.Name   `xml:"DescribeAutoScalingGroupsResult"`
		Rows    []groupRow `xml:"AutoScalingGroups>member"`
		Next    string     `xml:"NextToken,omitempty"`
	}{Rows: rows, Next: next}, nil
}

type activityRow struct {
	ID          string `xml:"ActivityId"`
	Group       string `xml:"AutoScalingGroupName"`
	Status      string `xml:"StatusCode"`
	Description string `xml:"Description"`
	Cause       string `xml:"Cause"`
	Message     string `xml:"StatusMessage,omitempty"`
	Details     string `xml:"Details"`
	Start       string `xml:"StartTime"`
	End         string `xml:"EndTime,omitempty"`
}

func (p scaling) describeActivities(form url.Values) (any, *apiError) {
	g, no := p.group(form)
	if no != nil {
		return nil, no
	}
	from, to, next, no := p.s.page(form, len(g.activities), 100)
	if no != nil {
		return nil, no
	}
	var rows []activityRow
	for _, a := range g.activities[from:to] {
		r := activityRow{ID: a.ID, Group: g.Name, Status: a.Status, Description: a.Description, Cause: a.Cause,
			Message: a.Message,
			Details: fmt.Sprintf(`{"Subnet ID":"subnet-%s","Availability Zone":%q}`, a.Zone, a.Zone), Start: stamp(a.Start)}
		if !a.End.IsZero() {
			r.End = stamp(a.End)
		}
		rows = append(rows, r)
	}
	return struct {
		XMLName xml.Name      `xml:"DescribeScalingActivitiesResult"`
		Rows    []activityRow `xml:"Activities>member"`
		Next    string        `xml:"NextToken,omitempty"`
	}{Rows: rows, Next: next}, nil
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (p scaling) describeHooks(form url.Values) (any, *apiError) {
	type hook struct {
		Name       string `xml:"LifecycleHookName"`
		Group      string `xml:"AutoScalingGroupName"`
		Transition string `xml:"LifecycleTransition"`
	}
	g, no := p.group(form)
	if no != nil {
		return nil, no
	}
	var rows []hook
	if g.LaunchHook {
		rows = append(rows, hook{"boot", g.Name, "autoscaling:EC2_INSTANCE_LAUNCHING"})
	}
	if g.TerminationHook {
		rows = append(rows, hook{"drain", g.Name, "autoscaling:EC2_INSTANCE_TERMINATING"})
	}
	return struct {
		XMLName xml.Name `xml:"DescribeLifecycleHooksResult"`
		Rows    []hook   `xml:"LifecycleHooks>member"`
	}{Rows: rows}, nil
}

// group returns the group that a form names.
func (p scaling) group(form url.Values) (*held, *apiError) {
	g := p.s.groups.byName[form.Get("AutoScalingGroupName")]
	if g == nil {
		return nil, invalid("AutoScalingGroup name not found - null")
	}
	return g, nil
}
