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

// dialsMax and unmetsMax limit the attempts of a request while no request has received a response,
// for failed dials and for other errors, so that a wrong address fails before the timeout. After
// the first response, only the timeout ends the retries.
const (
	dialsMax  = 4
	unmetsMax = 12
)

// optionalAttempts is the maximum number of attempts of requests that a recording of prices does
// not depend on. besideWait is the maximum wait between two of them, which results in about 15
// seconds in total. longAttempts is the number of attempts after which the user is informed.
const (
	optionalAttempts = 10
	besideWait       = 4 * time.Second
	longAttempts     = 8
)

// Default request rates per second: ratePublic for AWS, which counts the requests of all callers of
// an account together, and rateOwn for another endpoint, which has its own limits.
const (
	ratePublic = 5
	rateOwn    = 1000
)

// at returns the pace for an endpoint. A nil endpoint is that of AWS.
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

// A pacer decides when a request is sent and whether it is retried. It is the retryer of the
// clients of one region and service. Its rate is halved when AWS throttles, and increases by a
// twentieth of the maximum with each success.
type pacer struct {
	pace  Pace
	stats *stats

	// attempts is the maximum number of attempts of one request; 0 means no limit other than the
	// timeout.
	attempts int

	// waiting, if not nil, is called once a request has failed longAttempts times, to inform the
	// user of the delay.
	waiting func(err error)

	limiter *rate.Limiter
	reached atomic.Bool // a request has received a response
}

// stats counts requests. All pacers of a recording share it.
type stats struct{ requests, throttled, retries atomic.Int64 }

func newPacer(p Pace, s *stats) *pacer {
	return &pacer{pace: p, stats: s, limiter: rate.NewLimiter(rate.Limit(p.PerSecond), 1)}
}

// IsErrorRetryable reports whether a retry may succeed: by the rules of the SDK, and for incomplete
// responses.
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
		return false // the refusal does not have the format of the service
	}
	if errors.As(err, &broken) || errors.As(err, &cut) {
		return true
	}
	return retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == sdk.TrueTernary
}

// MaxAttempts returns the maximum number of attempts of one request; 0 means no limit.
func (p *pacer) MaxAttempts() int { return p.attempts }

// RetryDelay returns the wait before the next attempt. It returns an error early for an address
// that has never responded.
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
	// Callers that were throttled at the same time must not retry at the same time.
	return wait.Jitter(delay/2, 1), nil
}

// GetRetryToken allows every retry.
func (p *pacer) GetRetryToken(context.Context, error) (func(error) error, error) {
	return func(error) error { return nil }, nil
}

// GetInitialToken allows every first attempt.
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

// sleep waits for d or until ctx ends.
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
