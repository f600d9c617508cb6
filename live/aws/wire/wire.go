// Package wire sends the requests of the AWS SDK.
package wire

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// Load returns the configuration of a region with the default chain of credentials. Its requests
// are sent by a [Client]. An empty region means the region of the environment, which may not set
// one.
func Load(ctx context.Context, region string) (aws.Config, error) {
	options := []func(*config.LoadOptions) error{Silent}
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	base, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return base, fmt.Errorf("the AWS configuration cannot be read: %w", err)
	}
	base.HTTPClient = Client(base.HTTPClient)
	return base, nil
}

// RoleAdvice advises a user whose controller has no credentials that AWS accepts.
const RoleAdvice = "give the controller's ServiceAccount an IAM role (IRSA or EKS Pod Identity), or AWS credentials in its environment"

// CredentialsFault returns the reason that the default chain found no credentials, on one line and
// without the requests that it tried.
func CredentialsFault(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line, _, _ = strings.Cut(line, ", operation error ")
	return strings.TrimPrefix(line, "failed to refresh cached credentials, ")
}

// Silent keeps the SDK from logging to standard error: relevant problems are returned as errors.
func Silent(o *config.LoadOptions) error {
	o.Logger = logging.Nop{}
	return nil
}

// Client returns an HTTP client that sends requests with inner. If inner is nil, it uses the SDK's
// own client. An SDK client without a timeout gets one of attemptMax. The client hides all methods
// of a request's body except Read and Close.
//
// The SDK closes the body as soon as there is a response, while net/http may not yet have read the
// end of the body. A Read of the closed body then returns io.EOF. WriteTo of smithy-go 1.28, which
// io.Copy prefers, returns the same io.EOF as an error, upon which net/http closes the connection
// while the response is being read ("use of closed network connection").
func Client(inner aws.HTTPClient) aws.HTTPClient {
	if inner == nil {
		inner = awshttp.NewBuildableClient()
	}
	if b, ok := inner.(*awshttp.BuildableClient); ok && b.GetTimeout() == 0 {
		inner = b.WithTimeout(attemptMax)
	}
	return &client{inner}
}

// attemptMax is the maximum duration of an attempt if no other timeout is set. It exceeds the
// longest wait for messages.
const attemptMax = 40 * time.Second

type client struct{ inner aws.HTTPClient }

// Do sends a request.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.inner.Do(r)
}
