package aws

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/spotter-dev/spotter/live/aws/wire"
)

// The most attempts of a request before any has been answered: who gave a
// wrong address shall not wait for the end of the timeout. Afterwards only the
// timeout ends the retries.
const (
	dialsMax  = 4
	unmetsMax = 12
)

// optionalAttempts are the most attempts of what a recording of prices can do
// without, and besideWait bounds the wait between two of them: a quarter of a
// minute in all. longAttempts are after how many a person is informed.
const (
	optionalAttempts = 10
	besideWait       = 4 * time.Second
	longAttempts     = 8
)

// The default rates of requests: at AWS, which counts them for all callers of an account together,
// and at another endpoint, which has its own limits.
const (
	ratePublic = 5
	rateOwn    = 1000
)

// at returns the pace at an endpoint, nil for that of AWS.
func (p Pace) at(endpoint *string) Pace {
	if p.PerSecond > 0 {
		return p
	}
	p.PerSecond = ratePublic
	if endpoint == nil {
		return p
	}
	u, err := url.Parse(*endpoint)
	if err != nil {
		return p
	}
	for _, domain := range []string{"amazonaws.com", "amazonaws.com.cn", "api.aws"} {
		if host := u.Hostname(); host == domain || strings.HasSuffix(host, "."+domain) {
			return p
		}
	}
	p.PerSecond = rateOwn
	return p
}

// A pacer decides when a request is sent and whether it is sent again. It is
// the retryer of the clients of one region and service. Its rate falls by half
// when AWS throttles and rises by a twentieth of its bound with each success.
type pacer struct {
	pace  Pace
	stats *stats

	// attempts are the most of one request; 0 is any number, which the timeout
	// bounds.
	attempts int

	// waiting, if not nil, learns of a request that has failed so often that a
	// person may wonder what is going on.
	waiting func(err error)

	limiter *rate.Limiter
	reached atomic.Bool // a request has been answered
}

// stats counts what was sent. It is shared by all pacers of a recording.
type stats struct{ requests, throttled, retries atomic.Int64 }

func newPacer(p Pace, s *stats) *pacer {
	return &pacer{pace: p, stats: s, limiter: rate.NewLimiter(rate.Limit(p.PerSecond), 1)}
}

// IsErrorRetryable reports whether sending again may help: the SDK's own
// rules, and answers that did not arrive whole.
func (p *pacer) IsErrorRetryable(err error) bool {
	if errors.Is(err, errAttemptTimeout) {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if busy(wire.StatusOf(err)) {
		return true
	}
	var broken *smithy.DeserializationError
	var cut *cutShortError
	if refuses(wire.StatusOf(err)) && errors.As(err, &broken) {
		return false // it is refused in another form than that of the service
	}
	if errors.As(err, &broken) || errors.As(err, &cut) {
		return true
	}
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == sdk.TrueTernary
}

// MaxAttempts returns the most attempts of one request, 0 for any number.
func (p *pacer) MaxAttempts() int { return p.attempts }

// RetryDelay returns how long to wait before the next attempt, and gives up early on an address
// from which no response was ever received.
func (p *pacer) RetryDelay(attempt int, err error) (time.Duration, error) {
	throttled := wire.KindOf(err) == wire.KindThrottled
	if throttled {
		p.limiter.SetLimit(max(p.limiter.Limit()/2, rate.Limit(p.pace.PerSecond/100)))
		p.stats.throttled.Add(1)
	}
	limit := unmetsMax
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		limit = dialsMax
	}
	if !p.reached.Load() && !throttled && attempt >= limit {
		return 0, err
	}
	if attempt == longAttempts && p.waiting != nil {
		p.waiting(err)
	}
	p.stats.retries.Add(1)
	delay := p.pace.BackoffMin << min(max(attempt-1, 0), 20)
	if delay <= 0 || delay > p.pace.BackoffMax {
		delay = p.pace.BackoffMax
	}
	if p.attempts > 0 {
		delay = min(delay, besideWait)
	}
	// Callers that were throttled together must not come back together.
	return wait.Jitter(delay/2, 1), nil
}

// GetRetryToken lets every retry pass.
func (p *pacer) GetRetryToken(context.Context, error) (func(error) error, error) {
	return func(error) error { return nil }, nil
}

// GetInitialToken lets every first attempt pass.
func (p *pacer) GetInitialToken() func(error) error { return func(error) error { return nil } }

// GetAttemptToken waits until the next request may be sent.
func (p *pacer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	if err := sleep(ctx, p.limiter.Reserve().Delay()); err != nil {
		return nil, err
	}
	p.stats.requests.Add(1)
	return func(err error) error {
		var answer smithy.APIError
		if err == nil || errors.As(err, &answer) && wire.KindOf(err) != wire.KindThrottled {
			p.reached.Store(true)
		}
		if err == nil {
			most := rate.Limit(p.pace.PerSecond)
			p.limiter.SetLimit(min(p.limiter.Limit()+most/20, most))
		}
		return nil
	}, nil
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
