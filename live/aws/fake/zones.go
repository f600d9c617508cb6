package fake

import (
	"encoding/xml"
	"maps"
	"slices"
)

type zonesAnswer struct {
	XMLName   xml.Name   `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeAvailabilityZonesResponse"`
	RequestID string     `xml:"requestId"`
	Items     []zoneItem `xml:"availabilityZoneInfo>item"`
}

type zoneItem struct {
	Name   string `xml:"zoneName"`
	ID     string `xml:"zoneId"`
	State  string `xml:"zoneState"`
	Region string `xml:"regionName"`
	Type   string `xml:"zoneType"`
	OptIn  string `xml:"optInStatus"`
}

func (s *Server) describeAvailabilityZones(region string, r *Region) any {
	a := zonesAnswer{RequestID: "0"}
	for _, z := range r.Zones {
		a.Items = append(a.Items, zoneItem{z.Name, z.ID, "available", region, "availability-zone", "opt-in-not-required"})
	}
	return a
}

type regionsAnswer struct {
	XMLName   xml.Name     `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeRegionsResponse"`
	RequestID string       `xml:"requestId"`
	Items     []regionItem `xml:"regionInfo>item"`
}

type regionItem struct {
	Name  string `xml:"regionName"`
	OptIn string `xml:"optInStatus"`
}

func (s *Server) describeRegions() any {
	a := regionsAnswer{RequestID: "0"}
	for _, name := range slices.Sorted(maps.Keys(s.state.Regions)) {
		a.Items = append(a.Items, regionItem{name, "opt-in-not-required"})
	}
	return a
}
