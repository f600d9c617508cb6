package aws

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/spotter-dev/spotter/live/aws/wire"
)

var (
	throttle = &smithy.GenericAPIError{Code: "RequestLimitExceeded"}
	internal = &smithy.DeserializationError{Err: errors.New("no XML")}
)

// Requests keep their distance; throttling halves the rate and successes bring
// it back.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(Pace{PerSecond: 10, BackoffMin: time.Second, BackoffMax: 8 * time.Second}, &stats{})
		span := func(n int, result error) time.Duration {
			began := time.Now()
			for range n {
				release, err := p.GetAttemptToken(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := release(result); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(began)
		}
		if d := span(11, nil); d != time.Second {
			t.Errorf("eleven requests took %v, want 1s", d)
		}
		for range 2 {
			if _, err := p.RetryDelay(1, throttle); err != nil {
				t.Fatal(err)
			}
		}
		if p.limiter.Limit() != 2.5 {
			t.Errorf("throttled twice, %v requests a second, want 2.5", p.limiter.Limit())
		}
		span(15, nil)
		if p.limiter.Limit() != 10 {
			t.Errorf("after 15 successes %v requests a second, want 10", p.limiter.Limit())
		}
		for range 100 {
			if _, err := p.RetryDelay(1, throttle); err != nil {
				t.Fatal(err)
			}
		}
		if p.limiter.Limit() != 0.1 {
			t.Errorf("throttled for long, %v requests a second, want a hundredth of the bound", p.limiter.Limit())
		}
	})
}

// Requests to AWS keep to the share of a good neighbour, those to another
// endpoint need not, and what was chosen holds everywhere.
func TestRate(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]float64{
		"": ratePublic, "https://ec2.us-east-1.amazonaws.com": ratePublic, "https://vpce-1.ec2.us-east-1.vpce.amazonaws.com": ratePublic,
		"https://ec2.us-east-1.api.aws": ratePublic, "http://127.0.0.1:4566": rateOwn, "http://amazonaws.com.example": rateOwn,
	} {
		at := &endpoint
		if endpoint == "" {
			at = nil
		}
		if got := (Pace{}).at(at).PerSecond; got != want {
			t.Errorf("%q: %v requests a second, want %v", endpoint, got, want)
		}
		if got := (Pace{PerSecond: 7}).at(at).PerSecond; got != 7 {
			t.Errorf("%q: %v requests a second where 7 were chosen", endpoint, got)
		}
	}
}

// A request whose answer is below 500 is retried only if the answer says so, in whatever form.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := newPacer(Pace{PerSecond: 1000}, &stats{})
	for status, want := range map[int]bool{400: false, 404: false, 408: true, 429: true, 500: true, 501: false, 503: true} {
		err := &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: internal}
		if p.IsErrorRetryable(err) != want {
			t.Errorf("%d: retried is %v", status, !want)
		}
		if throttled := wire.KindOf(err) == wire.KindThrottled; throttled != (status == 429) {
			t.Errorf("%d: taken for throttling is %v", status, throttled)
		}
	}
}

// The wait doubles up to its bound and is spread over its upper half. A server that has answered is
// retried without end, one that has never answered is not.
func TestBackoff(t *testing.T) {
	t.Parallel()
	p := newPacer(Pace{PerSecond: 1000, BackoffMin: time.Second, BackoffMax: 8 * time.Second}, &stats{})
	if _, err := p.RetryDelay(unmetsMax, internal); err == nil {
		t.Error("still trying a server that has never answered")
	}
	if _, err := p.RetryDelay(10_000, throttle); err != nil {
		t.Errorf("gave up on a server that throttles: %v", err)
	}
	release, err := p.GetAttemptToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := release(nil); err != nil {
		t.Fatal(err)
	}
	for attempt, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 70: 8 * time.Second} {
		d, err := p.RetryDelay(attempt, internal)
		if err != nil || d < most/2 || d > most {
			t.Errorf("before attempt %d: %v, %v, want %v … %v", attempt+1, d, err, most/2, most)
		}
	}
	for err, want := range map[error]bool{
		throttle: true, internal: true, &cutShortError{}: true, errAttemptTimeout: true,
		context.Canceled: false, context.DeadlineExceeded: false,
		&smithy.GenericAPIError{Code: "UnauthorizedOperation"}: false,
	} {
		if p.IsErrorRetryable(err) != want {
			t.Errorf("%v: retried is %v", err, !want)
		}
	}
}
