package keep

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/live/flock"
)

// ErrConfig is returned for a configuration that cannot be meant.
var ErrConfig = errors.New("invalid setting")

// A FieldError is an [ErrConfig] that says which setting it is.
type FieldError struct {
	// Field is that of [Config], Value what it says, and Problem what is wrong with
	// that, as the end of a sentence.
	Field   string
	Value   any
	Problem string

	// cause is the error that Problem reports, nil where it is the value itself.
	cause error
}

// Error names the field, its value and what is wrong.
func (e *FieldError) Error() string {
	return fmt.Sprintf("record %s %s: %s", e.Field, e.Shown(), e.Problem)
}

// Shown returns the value as a person writes it.
func (e *FieldError) Shown() string {
	if s, ok := e.Value.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(e.Value)
}

// Unwrap returns what was met with the value, nil where it is wrong by itself.
func (e *FieldError) Unwrap() error { return e.cause }

// Is makes every such error an ErrConfig.
func (e *FieldError) Is(target error) bool { return target == ErrConfig }

// ErrBusy means that another recorder has the folder.
var ErrBusy = flock.ErrBusy

// A Config says where a record is kept and for how long.
type Config struct {
	// Dir is the folder, for this recorder alone: one of a volume, or of the
	// container, where a restart loses what no bucket has.
	Dir string

	// Bucket is where complete segments are uploaded, as s3://bucket/prefix; empty
	// is nowhere. Region and Endpoint replace those of the environment.
	// Encryption is AES256, aws:kms or empty for what the bucket does by itself,
	// and KMSKey the key of aws:kms, empty for the account's own.
	Bucket, Region, Endpoint string
	Encryption, KMSKey       string

	// Complete is how long a step waits at most until readers find it, and what a
	// crash may lose. Raising it makes fewer and larger segments.
	Complete time.Duration

	// Whole is the time from one segment that can be read alone to the next. Raising it takes less
	// space, and more time to read the newest state.
	Whole time.Duration

	// Rows is the most of a segment. Raising it takes more memory.
	Rows int

	// Keep and KeepBytes are how long segments are kept in Dir, and how much of
	// them; zero is no limit. In a bucket its own lifecycle rules say so.
	Keep      time.Duration
	KeepBytes int64

	// Queue is how many steps may wait to be written. Raising it takes memory, of
	// the size of a snapshot each, and bridges a longer fault.
	Queue int

	// RetryMin and RetryMax bound the wait after a fault, which doubles from one to
	// the next.
	RetryMin, RetryMax time.Duration

	// Timeout bounds one request to the bucket, with its attempts.
	Timeout time.Duration

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig keeps seven days and at most 4 GiB.
func DefaultConfig() Config {
	return Config{
		Complete: 5 * time.Minute, Whole: time.Hour, Rows: 100_000,
		Keep: 7 * 24 * time.Hour, KeepBytes: 4 << 30, Queue: 8,
		RetryMin: time.Second, RetryMax: time.Minute, Timeout: time.Minute,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

// Validate returns a [FieldError] for the first setting that cannot be meant.
func (c *Config) Validate() error {
	if c.Dir == "" {
		return &FieldError{Field: "Dir", Value: c.Dir, Problem: "it must be a folder"}
	}
	for _, d := range []struct {
		field            string
		value, low, high time.Duration
	}{
		{"Complete", c.Complete, time.Second, time.Hour},
		{"Whole", c.Whole, c.Complete, 24 * time.Hour},
		{"RetryMin", c.RetryMin, time.Millisecond, time.Hour},
		{"RetryMax", c.RetryMax, c.RetryMin, time.Hour},
		{"Timeout", c.Timeout, time.Second, time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			return &FieldError{Field: d.field, Value: d.value, Problem: fmt.Sprintf("it must be between %v and %v", d.low,
				d.high)}
		}
	}
	switch {
	case c.Keep < 0:
		return &FieldError{Field: "Keep", Value: c.Keep, Problem: "it is negative"}
	case c.KeepBytes < 0:
		return &FieldError{Field: "KeepBytes", Value: c.KeepBytes, Problem: "it is negative"}
	case c.Rows < 1000 || c.Rows > 10_000_000:
		return &FieldError{Field: "Rows", Value: c.Rows, Problem: "it must be between 1000 and 10000000"}
	case c.Queue < 1 || c.Queue > 1000:
		return &FieldError{Field: "Queue", Value: c.Queue, Problem: "it must be between 1 and 1000"}
	case c.Clock == nil:
		return &FieldError{Field: "Clock", Value: "", Problem: "it must be set"}
	case c.Log == nil:
		return &FieldError{Field: "Log", Value: "", Problem: "it must be set"}
	}
	return c.validateBucket()
}

// validateBucket checks what says where segments are uploaded.
func (c *Config) validateBucket() error {
	if c.Bucket == "" {
		return nil
	}
	if _, _, err := parseBucket(c.Bucket); err != nil {
		return err
	}
	if u, err := url.Parse(c.Endpoint); c.Endpoint != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https") {
		return &FieldError{Field: "Endpoint", Value: c.Endpoint,
			Problem: "it must start with http:// or https:// and name a host"}
	}
	switch types.ServerSideEncryption(c.Encryption) {
	case "", types.ServerSideEncryptionAes256, types.ServerSideEncryptionAwsKms:
	default:
		return &FieldError{Field: "Encryption", Value: c.Encryption, Problem: "it must be AES256, aws:kms or empty"}
	}
	if c.KMSKey != "" && c.Encryption != string(types.ServerSideEncryptionAwsKms) {
		return &FieldError{Field: "KMSKey", Value: c.KMSKey, Problem: "it needs the encryption aws:kms"}
	}
	return nil
}

// parseBucket takes s3://bucket/prefix apart. The prefix ends with a slash where it
// is not empty.
func parseBucket(s string) (name, prefix string, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", "", &FieldError{Field: "Bucket", Value: s, Problem: "it must be s3://bucket or s3://bucket/prefix"}
	}
	if prefix = strings.Trim(u.Path, "/"); prefix != "" {
		prefix += "/"
	}
	return u.Host, prefix, nil
}
