package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// typesPerRequest is the number of types in one request. It keeps an address below 2,000
// characters, and its rows, up to eight for a type, on one page.
const typesPerRequest = 20

// A Reader reads the prices of regions. It is safe for concurrent use.
type Reader struct {
	cfg    Config
	client *client
}

// NewReader returns a reader, or an error for an invalid configuration.
func NewReader(c Config) (*Reader, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &Reader{cfg: c}
	r.client = newClient(&r.cfg)
	return r, nil
}

// requestsFor returns the number of requests for the prices of n types.
func requestsFor(n int) int { return (n + typesPerRequest - 1) / typesPerRequest }

// Prices returns the prices in a region that are in force at now: of the given types, or of all if
// types is empty. A list of which a page is missing is an error and not a shorter list.
func (r *Reader) Prices(ctx context.Context, region string, types []string, now policy.Time) (List, error) {
	what := "reading the Azure prices of " + region
	base := fmt.Sprintf("serviceName eq 'Virtual Machines' and priceType eq '%s' and armRegionName eq %s",
		kindConsumption, quoted(region))
	filters := []string{base}
	if len(types) > 0 {
		filters = nil
		for part := range slices.Chunk(types, typesPerRequest) {
			var sizes []string
			for _, t := range part {
				sizes = append(sizes, "armSkuName eq "+quoted(t))
			}
			filters = append(filters, base+" and ("+strings.Join(sizes, " or ")+")")
		}
	}
	var rows []json.RawMessage
	pages := 0
	for _, filter := range filters {
		some, n, err := r.client.list(ctx, what, filter)
		if err != nil {
			return List{}, err
		}
		rows, pages = append(rows, some...), pages+n
	}
	l := listOf(rows, region, now)
	l.pages = pages
	return l, nil
}

// quoted returns a string of an OData filter.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
