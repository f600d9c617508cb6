package steady

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// syncTimeout is the maximum duration of Sync.
const syncTimeout = 10 * time.Second

// Wrap returns a copy of cfg whose clients pass the time in the API server's responses to c.
func (c *Clock) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{clock: c, next: next} })
	return wrapped
}

// Sync requests the time from the API server. cfg must be the result of [Clock.Wrap].
func (c *Clock) Sync(ctx context.Context, cfg *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("client for the API server's time: %w", err)
	}
	at, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return fmt.Errorf("address for the API server's time: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("version").String(), nil)
	if err != nil {
		return fmt.Errorf("asking for the API server's time: %w", err)
	}
	resp, err := h.Do(r)
	if err != nil {
		return fmt.Errorf("asking for the API server's time: %w", err)
	}
	return resp.Body.Close()
}

// A transport passes the time in responses to a clock.
type transport struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip sends r.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := t.clock.elapsed()
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if date, bad := http.ParseTime(resp.Header.Get("Date")); bad == nil {
		t.clock.answered(date, sent)
	}
	return resp, nil
}
