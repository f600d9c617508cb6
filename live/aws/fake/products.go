package fake

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// priceList is the protocol of the price list: AWS JSON 1.1.
type priceList struct{ *Server }

type productsRequest struct {
	ServiceCode string
	Filters     []struct{ Type, Field, Value string }
	NextToken   string
	MaxResults  int
}

func (p priceList) answer(c *Call, body []byte) (answer, *apiError) {
	if code := p.faults.Deny[c.Action]; code != "" {
		return answer{}, denied(code)
	}
	var in productsRequest
	if err := json.Unmarshal(body, &in); err != nil || c.Action != "GetProducts" || in.ServiceCode != "AmazonEC2" {
		return answer{}, &apiError{http.StatusBadRequest, "InvalidParameterException",
			"only GetProducts of AmazonEC2 is answered"}
	}
	wanted := map[string]string{}
	for _, f := range in.Filters {
		wanted[f.Field] = f.Value
	}
	r := p.state.Regions[wanted["regionCode"]]
	if r == nil {
		r = &Region{}
	}
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(r.OnDemand)) {
		list = append(list, offers(kind, wanted["regionCode"], wanted["operatingSystem"], r.OnDemand[kind])...)
	}
	most := in.MaxResults
	if most < 1 || most > 100 {
		most = 100
	}
	begin, end, next, no := p.page(in.NextToken, "products "+wanted["regionCode"], len(list), most)
	if no != nil {
		return answer{}, no
	}
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": list[begin:end]}
	if next != "" {
		out["NextToken"] = next
	}
	return answer{"application/x-amz-json-1.1", marshalJSON(out)}, nil
}

// offers returns what the list says of a type: its price, and next to it that
// of an unused reservation, which is 0 and of another capacity status.
func offers(kind, region, system, price string) []string {
	one := func(status, price string) string {
		object := map[string]any{
			"product": map[string]any{
				"productFamily": "Compute Instance",
				"attributes": map[string]string{
					"instanceType": kind, "regionCode": region, "tenancy": "Shared", "capacitystatus": status,
					"operatingSystem": system, "preInstalledSw": "NA", "marketoption": "OnDemand",
				},
			},
			"terms": map[string]any{"OnDemand": map[string]any{"SKU.JRTCKXETXF": map[string]any{
				"priceDimensions": map[string]any{"SKU.JRTCKXETXF.6YS6EN2CT7": map[string]any{
					"unit": "Hrs", "pricePerUnit": map[string]string{"USD": price},
				}},
			}}},
		}
		return string(marshalJSON(object))
	}
	return []string{one("Used", price), one("UnusedCapacityReservation", price), one("Used", "0.0000000000")}
}

func (p priceList) refuse(no *apiError) answer {
	code := no.code
	if no == errThrottled {
		code = "ThrottlingException"
	}
	return answer{"application/x-amz-json-1.1", marshalJSON(map[string]string{"__type": code, "message": no.message})}
}
