package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// bodyMax is the maximum size of a page, in bytes. A page of 1,000 rows has about 0.8 MB.
const bodyMax = 16 << 20

// pagesMax is the maximum number of pages of one list. The virtual machines of a region are some
// 6,000 rows, and a page has up to 1,000.
const pagesMax = 200

// A page is one page of a list.
type page struct {
	Items []json.RawMessage `json:"Items"` // each is a row
	Next  string            `json:"NextPageLink"`
}

// A client reads lists of the API.
type client struct {
	cfg  *Config
	http *http.Client
}

func newClient(c *Config) *client {
	return &client{cfg: c, http: &http.Client{Transport: c.Transport, Timeout: c.Timeout}}
}

// list returns all rows that match a filter, and the number of pages that they took.
func (c *client) list(ctx context.Context, what, filter string) (rows []json.RawMessage, pages int,
	err error) {
	first, err := url.Parse(c.cfg.Endpoint)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", what, err)
	}
	q := first.Query()
	q.Set("currencyCode", "USD")
	q.Set("$filter", filter)
	first.RawQuery = q.Encode()
	seen := map[string]bool{}
	for next := first.String(); next != ""; {
		if pages == pagesMax || seen[next] {
			return nil, pages, fmt.Errorf("%s: the list does not end after %d pages", what, pages)
		}
		seen[next] = true
		p, err := c.page(ctx, what, next)
		if err != nil {
			return nil, pages, err
		}
		pages++
		rows = append(rows, p.Items...)
		if next, err = c.follow(first, p.Next); err != nil {
			return nil, pages, fmt.Errorf("%s: %w", what, err)
		}
	}
	return rows, pages, nil
}

// follow returns the address of the next page, empty after the last. The link of a page may lead
// to the host of the first page only.
func (c *client) follow(first *url.URL, link string) (string, error) {
	if link == "" {
		return "", nil
	}
	u, err := url.Parse(link)
	if err != nil || u.Hostname() != first.Hostname() || u.Scheme != first.Scheme {
		return "", fmt.Errorf("the link to the next page leads to %q instead of %s", link, first.Hostname())
	}
	return link, nil
}

// A refusal is a response without prices.
type refusal struct {
	what   string
	status int
	text   string        // first line of the response
	wait   time.Duration // wait that the API requested
}

// Error returns the request and the response.
func (r *refusal) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: %d %s: %s", r.what, r.status, http.StatusText(r.status), r.text), ": ")
}

// passes reports whether the same request may succeed later.
func (r *refusal) passes() bool {
	return r.status == http.StatusTooManyRequests || r.status == http.StatusRequestTimeout || r.status >= 500
}

// page requests one page until it succeeds, with an increasing wait between the attempts. It
// returns an error that is not transient at once. A page that ends early is requested again.
func (c *client) page(ctx context.Context, what, link string) (*page, error) {
	wait := c.cfg.BackoffMin
	for try := 1; ; try++ {
		p, err := c.attempt(ctx, what, link)
		if err == nil {
			return p, nil
		}
		r := new(refusal)
		if errors.As(err, &r) && !r.passes() || ctx.Err() != nil || try >= c.cfg.Attempts || r.wait > c.cfg.BackoffMax {
			return nil, err
		}
		pause := max(wait, r.wait)
		select {
		case <-ctx.Done():
			return nil, err
		case <-c.cfg.Clock.After(pause):
		}
		wait = min(2*wait, c.cfg.BackoffMax)
	}
}

// attempt requests one page once.
func (c *client) attempt(ctx context.Context, what, link string) (*page, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	q.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodyMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: reading the response: %w", what, err)
	case len(body) > bodyMax:
		return nil, fmt.Errorf("%s: the response has more than %d bytes", what, bodyMax)
	case answer.StatusCode != http.StatusOK:
		text, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 200)])), "\n")
		return nil, &refusal{what, answer.StatusCode, text, retryAfter(answer.Header, c.cfg.Clock.Now())}
	}
	p := &page{}
	if err := json.Unmarshal(body, p); err != nil {
		return nil, fmt.Errorf("%s: reading the response: %w", what, err)
	}
	if p.Items == nil {
		return nil, fmt.Errorf("%s: the response has no list of prices", what)
	}
	return p, nil
}

// retryAfter returns the wait that the response requests, in seconds or as a date, or 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
