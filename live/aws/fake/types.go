package fake

import (
	"encoding/xml"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// A Kind is what DescribeInstanceTypes returns of a type.
type Kind struct {
	Name, Arch      string // the architecture as "x86_64"
	VCPU, MemoryMiB int
	ENIs, IPv4      int
	Gbps            float64

	GPUs              int
	GPUName, GPUMaker string
}

type typesAnswer struct {
	XMLName   xml.Name   `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstanceTypesResponse"`
	RequestID string     `xml:"requestId"`
	Items     []typeItem `xml:"instanceTypeSet>item"`
	NextToken string     `xml:"nextToken,omitempty"`
}

type typeItem struct {
	Name    string    `xml:"instanceType"`
	Archs   []string  `xml:"processorInfo>supportedArchitectures>item"`
	VCPU    int       `xml:"vCpuInfo>defaultVCpus"`
	Memory  int       `xml:"memoryInfo>sizeInMiB"`
	ENIs    int       `xml:"networkInfo>maximumNetworkInterfaces"`
	IPv4    int       `xml:"networkInfo>ipv4AddressesPerInterface"`
	Network []float64 `xml:"networkInfo>networkCards>item>baselineBandwidthInGbps"`
	GPUs    []gpuItem `xml:"gpuInfo>gpus>item"`
}

type gpuItem struct {
	Name  string `xml:"name"`
	Maker string `xml:"manufacturer"`
	Count int    `xml:"count"`
}

// describeInstanceTypes answers with the kinds of the region.
func (s *Server) describeInstanceTypes(region string, r *Region, form url.Values) (any, *apiError) {
	begin, end, next, no := s.listPage(form, "types "+region, len(r.Kinds), 100)
	if no != nil {
		return nil, no
	}
	a := typesAnswer{RequestID: "0", NextToken: next}
	for _, k := range r.Kinds[begin:end] {
		item := typeItem{Name: k.Name, Archs: []string{k.Arch}, VCPU: k.VCPU, Memory: k.MemoryMiB, ENIs: k.ENIs,
			IPv4: k.IPv4, Network: []float64{k.Gbps}}
		if k.GPUs > 0 {
			item.GPUs = []gpuItem{{k.GPUName, k.GPUMaker, k.GPUs}}
		}
		a.Items = append(a.Items, item)
	}
	return a, nil
}

type offeringsAnswer struct {
	XMLName   xml.Name       `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeInstanceTypeOfferingsResponse"`
	RequestID string         `xml:"requestId"`
	Items     []offeringItem `xml:"instanceTypeOfferingSet>item"`
	NextToken string         `xml:"nextToken,omitempty"`
}

type offeringItem struct {
	Type     string `xml:"instanceType"`
	Kind     string `xml:"locationType"`
	Location string `xml:"location"`
}

// describeInstanceTypeOfferings answers that each zone sells each type that has a
// price on demand.
func (s *Server) describeInstanceTypeOfferings(region string, r *Region, form url.Values) (any, *apiError) {
	if form.Get("LocationType") != "availability-zone" {
		return nil, badParameter("LocationType availability-zone is expected")
	}
	var items []offeringItem
	for _, z := range r.Zones {
		for _, kind := range slices.Sorted(maps.Keys(r.OnDemand)) {
			items = append(items, offeringItem{kind, "availability-zone", z.Name})
		}
	}
	begin, end, next, no := s.listPage(form, "offerings "+region, len(items), 1000)
	if no != nil {
		return nil, no
	}
	return offeringsAnswer{RequestID: "0", Items: items[begin:end], NextToken: next}, nil
}

// listPage is page with the size that a form requests.
func (s *Server) listPage(form url.Values, of string, rows, most int) (from, to int, next string, no *apiError) {
	if n, err := strconv.Atoi(form.Get("MaxResults")); err == nil && n > 0 {
		most = min(most, n)
	}
	return s.page(form.Get("NextToken"), of, rows, most)
}
