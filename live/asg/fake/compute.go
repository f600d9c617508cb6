package fake

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// compute is the protocol of EC2: a form goes in and XML comes out.
type compute struct{ *Server }

func (p compute) answer(c *Call) (answer, *apiError) {
	switch c.Action {
	case "ec2:DescribeInstances":
		return p.describeInstances(c.Form)
	case "ec2:DescribeLaunchTemplateVersions":
		return p.describeTemplates(c.Form)
	}
	return answer{}, &apiError{http.StatusBadRequest, "InvalidAction", "The action " + c.Action +
		" is not valid for this web service."}
}

func (p compute) refuse(no *apiError) answer {
	a := xmlAnswer(struct {
		XMLName xml.Name `xml:"Response"`
		Code    string   `xml:"Errors>Error>Code"`
		Message string   `xml:"Errors>Error>Message"`
		ID      string   `xml:"RequestID"`
	}{Code: no.code, Message: no.message, ID: "0"})
	a.status = no.status
	return a
}

// describeInstances answers with the instances that the filter instance-id
// names, and leaves out those that do not exist.
func (p compute) describeInstances(form url.Values) (answer, *apiError) {
	type row struct {
		ID        string `xml:"instanceId"`
		Type      string `xml:"instanceType"`
		Zone      string `xml:"placement>availabilityZone"`
		Lifecycle string `xml:"instanceLifecycle,omitempty"`
		Launched  string `xml:"launchTime"`
		State     string `xml:"instanceState>name"`
	}
	var asked []string
	if form.Get("Filter.1.Name") == "instance-id" {
		for i := 1; form.Get("Filter.1.Value."+strconv.Itoa(i)) != ""; i++ {
			asked = append(asked, form.Get("Filter.1.Value."+strconv.Itoa(i)))
		}
	}
	var rows []row
	for _, g := range p.groups.byName {
		for _, i := range g.Instances {
			if !slices.Contains(asked, i.ID) {
				continue
			}
			r := row{ID: i.ID, Type: i.Type, Zone: i.Zone, Launched: stamp(i.Launched), State: "running"}
			if i.Spot {
				r.Lifecycle = "spot"
			}
			if i.State == Terminating {
				r.State = "shutting-down"
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.ID, b.ID) })
	from, to, next, no := p.page(form, len(rows), 1000)
	if no != nil {
		return answer{}, no
	}
	return xmlAnswer(struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstancesResponse"`
		Rows    []row    `xml:"reservationSet>item>instancesSet>item"`
		Next    string   `xml:"nextToken,omitempty"`
	}{Rows: rows[from:to], Next: next}), nil
}

func (p compute) describeTemplates(form url.Values) (answer, *apiError) {
	name, _ := strings.CutPrefix(form.Get("LaunchTemplateId"), "lt-")
	g := p.groups.byName[name]
	if g == nil {
		return answer{}, &apiError{http.StatusBadRequest, "InvalidLaunchTemplateId.NotFound",
			"The specified launch template does not exist."}
	}
	market := ""
	if g.OnDemandPercent == 0 {
		market = "spot"
	}
	return xmlAnswer(struct {
		XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeLaunchTemplateVersionsResponse"`
		ID      string   `xml:"launchTemplateVersionSet>item>launchTemplateId"`
		Type    string   `xml:"launchTemplateVersionSet>item>launchTemplateData>instanceType"`
		Market  string   `xml:"launchTemplateVersionSet>item>launchTemplateData>instanceMarketOptions>marketType,omitempty"`
	}{ID: TemplateID(name), Type: g.Types[0], Market: market}), nil
}
