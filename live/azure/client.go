package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spotter-dev/spotter/live/pricelist"
)

// A page is one page of a list.
type page struct {
	Items []json.RawMessage `json:"Items"` // each is a row
	Next  string            `json:"NextPageLink"`
}

// list returns all rows that match a filter, and the number of pages that they took.
func (r *Reader) list(ctx context.Context, what, filter string) (rows []json.RawMessage, pages int, err error) {
	first, err := url.Parse(r.cfg.Endpoint)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", what, err)
	}
	q := first.Query()
	q.Set("currencyCode", "USD")
	q.Set("$filter", filter)
	first.RawQuery = q.Encode()
	pages, err = r.client.List(ctx, &pricelist.Request{What: what, First: first.String(), Read: func(body []byte) (string, error) {
		p := &page{}
		if err := json.Unmarshal(body, p); err != nil {
			return "", fmt.Errorf("reading the response: %w", err)
		}
		if p.Items == nil {
			return "", errors.New("the response has no list of prices")
		}
		next, err := follow(first, p.Next)
		if err == nil {
			rows = append(rows, p.Items...)
		}
		return next, err
	}})
	if err != nil {
		return nil, pages, err
	}
	return rows, pages, nil
}

// follow returns the address of the next page, empty after the last. The link of a page may lead
// to the host of the first page only.
func follow(first *url.URL, link string) (string, error) {
	if link == "" {
		return "", nil
	}
	u, err := url.Parse(link)
	if err != nil || u.Hostname() != first.Hostname() || u.Scheme != first.Scheme {
		return "", fmt.Errorf("%w: the link to the next page leads to %q instead of %s", pricelist.ErrList, link,
			first.Hostname())
	}
	return link, nil
}
