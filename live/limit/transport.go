package limit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// verbLease is what writes of Leases are counted as.
const verbLease = "lease"

// Wrap returns a copy of cfg whose clients write at the pace of l; those of an
// urgent one go before the others. Make one client of each and give the urgent
// one to what must not wait.
//
// It turns client-go's own limiter off, which would hold up reads too.
func (l *Limiter) Wrap(cfg *rest.Config, first bool) *rest.Config {
	if first {
		return l.wrap(cfg, urgent)
	}
	return l.wrap(cfg, ordinary)
}

// WrapAhead returns a copy of cfg whose clients' writes go before all others, the urgent
// ones too, and may use what [Config.Kept] keeps. It is for the few that a step waits
// for.
func (l *Limiter) WrapAhead(cfg *rest.Config) *rest.Config { return l.wrap(cfg, ahead) }

func (l *Limiter) wrap(cfg *rest.Config, r rank) *rest.Config {
	wrapped := rest.CopyConfig(cfg)
	wrapped.QPS, wrapped.RateLimiter = -1, nil
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &transport{limiter: l, next: next, rank: r}
	})
	return wrapped
}

// A transport sends the requests of one configuration.
type transport struct {
	limiter *Limiter
	next    http.RoundTripper
	rank    rank
}

// RoundTrip sends r when its turn has come.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if changesNothing(r) {
		resp, err := t.next.RoundTrip(r)
		if err == nil && evicts(r) {
			resp.Header.Del("Retry-After")
		}
		return resp, err
	}
	verb, start := r.Method, t.limiter.cfg.Clock.Now()
	if strings.Contains(r.URL.Path, "/apis/coordination.k8s.io/") {
		verb = verbLease
		t.limiter.charge()
	} else if err := t.limiter.wait(r.Context(), t.rank); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper closes the body also when it fails
		}
		return nil, err
	}
	t.limiter.sent(verb, t.rank, t.limiter.cfg.Clock.Since(start))
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		t.answered(verb, r, resp)
	}
	return resp, err
}

// answered reads from the answer whether the server wants fewer writes.
//
// client-go itself waits for the time of a Retry-After, up to ten times over, in
// the goroutine of the caller. For an eviction that is too long, since other
// pods could go meanwhile: there the header is taken away. Who evicts reads the
// same number in the body.
func (t *transport) answered(verb string, r *http.Request, resp *http.Response) {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return
	}
	pause := retryAfter(resp.Header)
	if evicts(r) {
		resp.Header.Del("Retry-After")
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
			pause = 0 // it is the answer of a disruption budget and concerns one pod
		}
	}
	t.limiter.throttled(verb, pause)
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
