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

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid setting")

// A FieldError is an [ErrConfig] that names the invalid setting.
type FieldError struct {
	// Field is the name of a field of [Config], Value its value, and Problem the reason why that is
	// invalid, as the end of a sentence.
	Field   string
	Value   any
	Problem string

	// cause is the error that Problem describes, nil if the value itself is invalid.
	cause error
}

// Error returns the field, its value and the problem.
func (e *FieldError) Error() string {
	return fmt.Sprintf("record %s %s: %s", e.Field, e.Shown(), e.Problem)
}

// Shown returns the value as a user would write it, strings in quotes.
func (e *FieldError) Shown() string {
	if s, ok := e.Value.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(e.Value)
}

// Unwrap returns the error that the value caused, nil if the value itself is invalid.
func (e *FieldError) Unwrap() error { return e.cause }

// Is reports whether target is [ErrConfig].
func (e *FieldError) Is(target error) bool { return target == ErrConfig }

// ErrBusy means that another recorder uses the folder.
var ErrBusy = flock.ErrBusy

// A Config configures where a record is stored and for how long.
type Config struct {
	// Dir is the folder, which no other recorder may use: a volume, or a folder of the container,
	// where a restart loses all steps that are not in a bucket.
	Dir string

	// Bucket is the destination of complete segments, as s3://bucket/prefix; if it is empty, they
	// are not uploaded. Region and Endpoint override the settings of the environment. Encryption is
	// AES256, aws:kms, or empty for the default of the bucket. KMSKey is the key for aws:kms, empty
	// for the AWS managed key of the account.
	Bucket, Region, Endpoint string
	Encryption, KMSKey       string

	// Complete is the maximum time until readers can find a step, and the maximum time whose steps
	// a crash may lose. If it is raised, segments are fewer and larger.
	Complete time.Duration

	// Whole is the time between two segments that can be read without earlier ones. If it is
	// raised, the record takes less space, and reading the latest state takes longer.
	Whole time.Duration

	// Rows is the maximum number of rows of a segment. If it is raised, recording takes more
	// memory.
	Rows int

	// Keep is how long segments are kept in Dir, and KeepBytes the maximum of their total size.
	// Zero means no limit. The lifecycle rules of the bucket apply to the segments in it.
	Keep      time.Duration
	KeepBytes int64

	// Queue is the maximum number of steps that wait to be written. If it is raised, longer faults
	// are bridged, and the queue may take more memory: each step has the size of a snapshot.
	Queue int

	// RetryMin and RetryMax are the first and the longest wait after a fault. The wait doubles with
	// every fault.
	RetryMin, RetryMax time.Duration

	// Timeout is the maximum duration of a request to the bucket, including retries.
	Timeout time.Duration

	Clock clock.WithTicker
	Log   *slog.Logger
}

// DefaultConfig returns the default configuration, which keeps seven days and at most 4 GiB.
func DefaultConfig() Config {
	return Config{
		Complete: 5 * time.Minute, Whole: time.Hour, Rows: 100_000,
		Keep: 7 * 24 * time.Hour, KeepBytes: 4 << 30, Queue: 8,
		RetryMin: time.Second, RetryMax: time.Minute, Timeout: time.Minute,
		Clock: clock.RealClock{}, Log: slog.Default(),
	}
}

// Validate returns a [FieldError] for the first invalid setting.
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

// validateBucket validates the settings of the bucket.
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

// parseBucket splits s3://bucket/prefix. A prefix that is not empty ends with a slash.
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
