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

// ErrConfig is returned for a configuration that cannot be meant.
var ErrConfig = errors.New("invalid setting")

// A Config says which queue is read and how.
type Config struct {
	// URL is the URL of the queue. It must be the target of EventBridge rules that only Spotter
	// uses.
	URL string

	// Region is that of a queue whose URL names none, and Endpoint replaces the address of AWS;
	// empty means those of the environment.
	Region, Endpoint string

	// Wait is how long a request waits for a message, in whole seconds from 1 to 20.
	// Raising it takes fewer requests.
	Wait time.Duration

	// Visibility is how long a message that was received is hidden. Raising it
	// delays what a leader that died has taken and not handled.
	Visibility time.Duration

	// ClaimWait is how long a warned node is left to the controller that is expected to drain it
	// before Spotter drains it, and how long the message of a warning is kept. It must be shorter
	// than Visibility.
	ClaimWait time.Duration

	// DrainedBy, if not nil, takes a warning and returns who drains the node because of it, where a
	// backend knows that.
	DrainedBy func(backend.Notice) policy.Actor

	// Timeout bounds one request, in addition to the time for which it waits for a message.
	Timeout time.Duration

	// ReceivesMax is how often a message that cannot be read is received before it
	// is deleted.
	ReceivesMax int

	// InterruptionLate is how old an interruption warning may be. AWS takes the
	// instance [policy.NoticeLead] after it. RecommendationLate is the same for rebalance
	// recommendations.
	InterruptionLate, RecommendationLate time.Duration

	// CheckEvery is the time from one look for others that read the queue to the
	// next.
	CheckEvery time.Duration

	// BackoffMin and BackoffMax bound the wait after a request that failed, which
	// doubles from one to the next.
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

// validate names the field that is wrong and its value.
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

// regionOf returns the region that the URL of a queue names, empty where it names none.
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

// Dial returns a client with the default chain of credentials, in the region that the URL of the
// queue names. It sends no request yet.
func Dial(ctx context.Context, c Config) (*sqs.Client, error) {
	base, err := wire.Load(ctx, cmp.Or(regionOf(c.URL), c.Region))
	if err != nil {
		return nil, err
	}
	if base.Region == "" {
		return nil, fmt.Errorf("%w: queue Region \"\": it must be set here or in AWS_REGION", ErrConfig)
	}
	return sqs.NewFromConfig(base, func(o *sqs.Options) {
		// A Queue waits and asks again by itself. One message whose checksum is
		// wrong would make the SDK refuse all that came with it, again and again;
		// read, it is one that cannot be read.
		o.Retryer, o.DisableMessageChecksumValidation = sdk.NopRetryer{}, true
		if c.Endpoint != "" {
			o.BaseEndpoint = sdk.String(c.Endpoint)
		}
	}), nil
}
