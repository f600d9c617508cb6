package aws

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/spotter-dev/spotter/policy"
)

// A product contains the fields used of an element of the price list.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
			RegionCode   string `json:"regionCode"`
			Tenancy      string `json:"tenancy"`
			Capacity     string `json:"capacitystatus"`
			System       string `json:"operatingSystem"`
			Software     string `json:"preInstalledSw"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				Unit         string            `json:"unit"`
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// fetchOnDemand reads the on-demand prices of a region from the price list.
func (r *run) fetchOnDemand(ctx context.Context, region string) error {
	if r.onDemand[region] != nil {
		return nil
	}
	prices, err := r.session.onDemand(ctx, region, r.plan)
	if err != nil {
		return err
	}
	if len(prices) == 0 {
		r.config.warn("the price list has no on-demand price for %s; the catalog's prices are used", region)
	}
	return r.keep(entry{OnDemand: &onDemandEntry{Region: region, Prices: prices}})
}

// onDemand returns the on-demand prices of a region, for the product and types of p, from the price
// list.
func (s *session) onDemand(ctx context.Context, region string, p *plan) (map[string]policy.Money, error) {
	prices := map[string]policy.Money{}
	client := s.pricing()
	in := &pricing.GetProductsInput{ServiceCode: sdk.String("AmazonEC2"), MaxResults: sdk.Int32(100)}
	for _, f := range [...][2]string{
		{"regionCode", region}, {"operatingSystem", pricingSystem(p.Product)}, {"tenancy", "Shared"},
		{"capacitystatus", "Used"}, {"preInstalledSw", "NA"}, {"marketoption", "OnDemand"},
	} {
		in.Filters = append(in.Filters, types.Filter{Type: types.FilterTypeTermMatch, Field: sdk.String(f[0]),
			Value: sdk.String(f[1])})
	}
	for restarts := 0; ; {
		answer, err := client.GetProducts(ctx, in)
		if err != nil && in.NextToken != nil && tokenRefused(err) && restarts < restartsMax {
			in.NextToken, restarts = nil, restarts+1
			continue
		}
		if err != nil {
			return nil, fault(ctx, actionProducts, pricingRegion, err)
		}
		for _, text := range answer.PriceList {
			if err := p.offer(prices, region, text); err != nil {
				return nil, fault(ctx, actionProducts, pricingRegion, err)
			}
		}
		if in.NextToken = answer.NextToken; sdk.ToString(in.NextToken) == "" {
			return prices, nil
		}
	}
}

// offer adds an element of the price list to prices. If a type has several prices, the lowest price
// above zero is used: the others are those of licences and reservations.
func (p *plan) offer(prices map[string]policy.Money, region, text string) error {
	var x product
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		return fmt.Errorf("an element of the price list is not JSON: %w", err)
	}
	a := &x.Product.Attributes
	if a.RegionCode != region || a.Tenancy != "Shared" || a.Capacity != "Used" || a.Software != "NA" ||
		a.System != pricingSystem(p.Product) || !takes(p.Types, p.Families, a.InstanceType) {
		return nil
	}
	for _, term := range x.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			text, ok := d.PricePerUnit["USD"]
			if !ok || d.Unit != "Hrs" {
				continue
			}
			price, err := dollars(text)
			if err != nil {
				return fmt.Errorf("the on-demand price of %s: %w", a.InstanceType, err)
			}
			if known := prices[a.InstanceType]; price > 0 && (known == 0 || price < known) {
				prices[a.InstanceType] = price
			}
		}
	}
	return nil
}
