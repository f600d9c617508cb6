package limit

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// verbLease is the verb under which writes of Leases are counted.
const verbLease = "lease"

// Wrap returns a copy of cfg whose clients are limited by l; if urgent is set, their writes do not
// wait. Create one client of each kind, and use the urgent one for writes that must not wait: the
// memory of a step, and writes before the deadline of a notice.
//
// Wrap disables client-go's own limiter, which would also limit reads.
func (l *Limiter) Wrap(cfg *rest.Config, urgent bool) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.QPS, wrapped.RateLimiter = -1, nil
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{limiter: l, next: next, urgent: urgent}
	})
	return wrapped
}

// A transport sends the requests of one wrapped configuration.
type transport struct {
	limiter *Limiter
	next    http.RoundTripper
	urgent  bool
}

// RoundTrip sends r when the limiter allows it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.Method
	if strings.Contains(r.URL.Path, "/apis/coordination.k8s.io/") {
		verb = verbLease
	}
	writes := !changesNothing(r)
	if !writes {
		return t.send(verb, r, false)
	}
	deadline, err := t.admit(verb, r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must close the body even if it fails
		}
		return nil, err
	}
	if deadline.IsZero() {
		return t.send(verb, r, true)
	}
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	resp, err := t.send(verb, until(r.WithContext(ctx), deadline), true)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelling{resp.Body, cancel}
	return resp, nil
}

// send sends r and evaluates the response.
func (t *transport) send(verb string, r *http.Request, writes bool) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		t.answered(verb, writes, r, resp)
	}
	return resp, err
}

// until returns r with the remaining time as the timeout of the server, which may otherwise still
// execute a request for which the client no longer waits. A shorter timeout is kept.
func until(r *http.Request, deadline time.Time) *http.Request {
	left, q := max(time.Until(deadline), time.Millisecond), r.URL.Query()
	if d, err := time.ParseDuration(q.Get("timeout")); err == nil && d < left {
		return r
	}
	q.Set("timeout", left.Round(time.Millisecond).String())
	u := *r.URL
	u.RawQuery, r.URL = q.Encode(), &u
	return r
}

// A cancelling body cancels the context of its request when it is closed.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// admit waits until r may be sent. It returns the deadline of r, or an error if r must not be sent.
func (t *transport) admit(verb string, r *http.Request) (deadline time.Time, err error) {
	l, start := t.limiter, time.Now()
	waits := !t.urgent && verb != verbLease
	if !waits {
		l.charge()
	} else if err := l.wait(r.Context()); err != nil {
		return time.Time{}, err
	}
	waited := time.Since(start)
	if l.check != nil {
		if deadline, err = l.check(r.Context(), r); err != nil {
			l.bucket.ReserveN(time.Now(), -1) // return the token
			l.count(verb, func(c *Count) { c.Refused++ })
			return time.Time{}, err
		}
	}
	l.count(verb, func(c *Count) {
		c.Writes++
		c.Waited += waited
		if t.urgent {
			c.Urgent++
		}
	})
	return deadline, nil
}

// answered checks whether the response requests a lower rate of writes.
//
// client-go waits for the time in the Retry-After header and sends the request again, up to ten
// times, in the goroutine of the caller. That is right if the server is overloaded: an urgent write
// is repeated when the server allows it, and other writes continue. It is too long if a disruption
// budget refuses an eviction, since other pods could be evicted meanwhile: the header is removed
// from these responses. The evicting code reads the same number from the body.
func (t *transport) answered(verb string, writes bool, r *http.Request, resp *http.Response) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	pause := retryAfter(resp.Header)
	if evicts(r) && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		resp.Header.Del("Retry-After")
		pause = 0
	}
	if writes {
		t.limiter.throttled(verb, pause)
	}
}

// changesNothing reports whether r has no lasting effect.
func changesNothing(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return true
	}
	return r.URL.Query().Get("dryRun") == "All" ||
		strings.Contains(r.URL.Path, "/apis/authentication.k8s.io/") ||
		strings.Contains(r.URL.Path, "/apis/authorization.k8s.io/")
}

func evicts(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/eviction") }

// retryAfter returns the time in the Retry-After header, which Kubernetes sends in seconds, or 0
// without this header.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}
