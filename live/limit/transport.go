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

// verbLease is what writes of Leases are counted as.
const verbLease = "lease"

// Wrap returns a copy of cfg whose clients write at the pace of l; those of an urgent one
// do not wait. Make one client of each and give the urgent one to what must not wait: the
// memory of a step, and what runs out under a notice.
//
// It turns client-go's own limiter off, which would hold up reads too.
func (l *Limiter) Wrap(cfg *rest.Config, urgent bool) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.QPS, wrapped.RateLimiter = -1, nil
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{limiter: l, next: next, urgent: urgent}
	})
	return wrapped
}

// A transport sends the requests of one configuration.
type transport struct {
	limiter *Limiter
	next    http.RoundTripper
	urgent  bool
}

// RoundTrip sends r when it may be sent.
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
			_ = r.Body.Close() // a RoundTripper closes the body also when it fails
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

// send sends r, and learns from the answer.
func (t *transport) send(verb string, r *http.Request, writes bool) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		t.answered(verb, writes, r, resp)
	}
	return resp, err
}

// until returns r with the time that the server may take: what a client no longer waits
// for, a server may still be doing. A shorter one stays.
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

// A cancelling body ends the context of its request when it is closed.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// admit waits until r may be sent, and returns by when it must be over or why it may not.
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
			l.bucket.ReserveN(time.Now(), -1) // the token goes back
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

// answered reads from the answer whether the server wants fewer writes.
//
// client-go waits for the time of a Retry-After and sends the request again, up to ten times, in
// the goroutine of the caller. That is right for a server that is overloaded: an urgent write is
// sent again when the server says, and the others continue. If a disruption budget refuses an
// eviction that is too long, since other pods could be evicted meanwhile: for these responses the
// header is removed. Evicting code reads the same number in the body.
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

// changesNothing reports whether r writes nothing that lasts.
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

// retryAfter returns the header's time, which Kubernetes gives in seconds; 0
// without one.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * time.Second
}
