package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

// A Config configures a [Queue].
type Config struct {
	// URL is the URL of the queue. It must be the target of EventBridge rules that only Spotter
	// uses.
	URL string

	// Region is the region of the queue if its URL does not contain one, and Endpoint overrides the
	// AWS endpoint. If they are empty, the environment determines them.
	Region, Endpoint string

	// Wait is how long a request waits for a message, in whole seconds from 1 to 20. If it is
	// raised, fewer requests are needed.
	Wait time.Duration

	// Visibility is how long a received message is hidden from other consumers. If it is raised,
	// messages that a leader received but did not process before it ended are delayed for longer.
	Visibility time.Duration

	// ClaimWait is how long Spotter waits for the controller that is expected to drain a node under
	// notice before it drains the node itself. The message is kept during this time, so it must be
	// at most Visibility.
	ClaimWait time.Duration

	// DrainedBy returns the controller that drains a node because of a notice, if a backend knows
	// it. It may be nil.
	DrainedBy func(backend.Notice) policy.Actor

	// Timeout is the maximum duration of a request, in addition to the time for which it waits for
	// a message.
	Timeout time.Duration

	// ReceivesMax is the number of receives after which an unreadable message is deleted.
	ReceivesMax int

	// InterruptionLate is the maximum age of an interruption notice that is still used. AWS
	// reclaims the instance [policy.NoticeLead] after it. RecommendationLate is the maximum age of
	// a rebalance recommendation.
	InterruptionLate, RecommendationLate time.Duration

	// CheckEvery is the interval between two searches for other consumers of the queue.
	CheckEvery time.Duration

	// BackoffMin and BackoffMax are the first and the longest wait after a request failed. The wait
	// doubles with every failure.
	BackoffMin, BackoffMax time.Duration

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig returns a configuration without a queue.
func DefaultConfig() Config {
	return Config{
		Wait: 20 * time.Second, Visibility: 10 * time.Second, ClaimWait: 5 * time.Second, Timeout: 15 * time.Second, ReceivesMax: 3,
		InterruptionLate: policy.NoticeLead(policy.AWS), RecommendationLate: time.Hour, CheckEvery: 10 * time.Minute,
		BackoffMin: time.Second, BackoffMax: time.Minute,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

// validate returns an error that names the first invalid field and its value.
func (c *Config) validate() error {
	if err := address("URL", c.URL, true); err != nil {
		return err
	}
	if err := address("Endpoint", c.Endpoint, false); err != nil {
		return err
	}
	for _, d := range []struct {
		field            string
		value, low, high time.Duration
	}{
		{"Wait", c.Wait, time.Second, 20 * time.Second},
		{"Visibility", c.Visibility, time.Second, 12 * time.Hour},
		{"ClaimWait", c.ClaimWait, 0, c.Visibility},
		{"Timeout", c.Timeout, time.Millisecond, time.Hour},
		{"InterruptionLate", c.InterruptionLate, time.Second, time.Hour},
		{"RecommendationLate", c.RecommendationLate, time.Second, 24 * time.Hour},
		{"CheckEvery", c.CheckEvery, time.Millisecond, 24 * time.Hour},
		{"BackoffMin", c.BackoffMin, time.Millisecond, time.Hour},
		{"BackoffMax", c.BackoffMax, c.BackoffMin, time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("%w: queue %s %v: it must be between %v and %v", ErrConfig, d.field, d.value, d.low, d.high)
		}
	}
	if c.ReceivesMax < 1 || c.ReceivesMax > 1000 {
		return fmt.Errorf("%w: queue ReceivesMax %d: it must be between 1 and 1000", ErrConfig, c.ReceivesMax)
	}
	if c.Clock == nil || c.Log == nil {
		return fmt.Errorf("%w: queue: Clock and Log must be set", ErrConfig)
	}
	return nil
}

func address(field, value string, needed bool) error {
	if value == "" && !needed {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: queue %s %q: it must start with http:// or https:// and name a host", ErrConfig, field, value)
	}
	return nil
}

// regionOf returns the region in the URL of a queue, empty if it has none.
func regionOf(queue string) string {
	u, err := url.Parse(queue)
	if err != nil {
		return ""
	}
	host := strings.Split(u.Hostname(), ".") // sqs.us-east-1.amazonaws.com
	if len(host) < 4 || host[0] != "sqs" || host[2] != "amazonaws" {
		return ""
	}
	return host[1]
}

// Dial returns a client with credentials from the default chain, in the region of the queue's URL
// or, if that has none, in c.Region. It does not contact the queue.
func Dial(ctx context.Context, c Config) (*sqs.Client, error) {
	base, err := wire.Load(ctx, cmp.Or(regionOf(c.URL), c.Region))
	if err != nil {
		return nil, err
	}
	if base.Region == "" {
		return nil, fmt.Errorf("%w: queue Region \"\": it must be set here or in AWS_REGION", ErrConfig)
	}
	return sqs.NewFromConfig(base, func(o *sqs.Options) {
		// A Queue does its own retries. With checksum validation, the SDK would reject a whole
		// batch because of one message with a wrong checksum, at every attempt. Without it, only
		// that message is unreadable.
		o.Retryer, o.DisableMessageChecksumValidation = sdk.NopRetryer{}, true
		if c.Endpoint != "" {
			o.BaseEndpoint = sdk.String(c.Endpoint)
		}
	}), nil
}
