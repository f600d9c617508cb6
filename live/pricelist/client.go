package pricelist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// bodyMax is the maximum size of a page, in bytes. A page of 1,000 prices of Azure has about
// 0.8 MB, and one of 5,000 of Google's SKUs about 6 MB.
const bodyMax = 32 << 20

// pagesMax is the maximum number of pages of one list.
const pagesMax = 200

// A Client reads pages of a list. It is safe for concurrent use.
type Client struct {
	cfg  *Config
	http *http.Client
}

// NewClient returns a client of the list of c, which is valid. It follows no redirect, so that a
// credential in a header reaches no other host.
func NewClient(c *Config) *Client {
	return &Client{cfg: c, http: &http.Client{Transport: c.Transport, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// A Request is a request for a list.
type Request struct {
	// What describes the request in errors, such as "reading the prices".
	What string

	// First is the address of the first page. Header is sent with the request of each page.
	First  string
	Header http.Header

	// Read reads a page. It returns the address of the next one, empty after the last. It is called
	// again for a page that it could not read.
	Read func(body []byte) (next string, err error)
}

// List requests the pages of a list one after the other, and returns their number.
func (c *Client) List(ctx context.Context, q *Request) (pages int, err error) {
	seen := map[string]bool{}
	for next := q.First; next != ""; pages++ {
		if pages == pagesMax || seen[next] {
			return pages, fmt.Errorf("%s: the list does not end after %d pages", q.What, pages)
		}
		seen[next] = true
		if next, err = c.page(ctx, q, next); err != nil {
			return pages, err
		}
	}
	return pages, nil
}

// A Refusal is a response without prices.
type Refusal struct {
	// Status is the HTTP status of the response.
	Status int

	what string
	text string        // first line of the response
	wait time.Duration // wait that the service requested
}

// Error returns the request and the response.
func (r *Refusal) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%s: %d %s: %s", r.what, r.Status, http.StatusText(r.Status), r.text), ": ")
}

// passes reports whether the same request may succeed later.
func (r *Refusal) passes() bool {
	return r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout || r.Status >= 500
}

// ErrList is returned by readers of a page whose content is wrong as a whole, which another request
// does not change.
var ErrList = errors.New("the list is not valid")

// page requests one page until it succeeds, with an increasing wait between the attempts. It
// returns an error that is not transient at once. A page that ends early is requested again.
func (c *Client) page(ctx context.Context, q *Request, link string) (string, error) {
	wait := c.cfg.BackoffMin
	for try := 1; ; try++ {
		next, err := c.attempt(ctx, q, link)
		if err == nil {
			return next, nil
		}
		r := new(Refusal)
		if errors.As(err, &r) && !r.passes() || errors.Is(err, ErrList) || ctx.Err() != nil || try >= c.cfg.Attempts ||
			r.wait > c.cfg.BackoffMax {
			return "", err
		}
		pause := max(wait, r.wait)
		select {
		case <-ctx.Done():
			return "", err
		case <-c.cfg.Clock.After(pause):
		}
		wait = min(2*wait, c.cfg.BackoffMax)
	}
}

// attempt requests one page once.
func (c *Client) attempt(ctx context.Context, q *Request, link string) (string, error) {
	what := q.What
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	maps.Copy(r.Header, q.Header)
	r.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodyMax+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: reading the response: %w", what, err)
	case len(body) > bodyMax:
		return "", fmt.Errorf("%s: the response has more than %d bytes", what, bodyMax)
	case answer.StatusCode != http.StatusOK:
		text, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 200)])), "\n")
		return "", &Refusal{answer.StatusCode, what, text, retryAfter(answer.Header, c.cfg.Clock.Now())}
	}
	next, err := q.Read(body)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return next, nil
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
