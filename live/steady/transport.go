package steady

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// syncTimeout bounds how long the first time of the API server is waited for.
const syncTimeout = 10 * time.Second

// Wrap returns a copy of cfg whose clients show c the time in the API server's answers.
func (c *Clock) Wrap(cfg *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{clock: c, next: next} })
	return wrapped
}

// Sync asks the API server for its time. cfg is a configuration that [Clock.Wrap] returned.
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

// A transport shows a clock the time of answers.
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
