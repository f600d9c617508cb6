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

// Load returns the configuration of a region by the default chain of credentials. Its
// requests are sent by a [Client]. An empty region leaves it to the environment, which may
// name none.
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

// RoleAdvice is what to do where a controller finds no credentials that AWS accepts.
const RoleAdvice = "give the controller's ServiceAccount an IAM role (IRSA or EKS Pod Identity), or AWS credentials in its environment"

// CredentialsFault returns why the default chain found no credentials, on one line and
// without the requests that it tried.
func CredentialsFault(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line, _, _ = strings.Cut(line, ", operation error ")
	return strings.TrimPrefix(line, "failed to refresh cached credentials, ")
}

// Silent keeps the SDK from logging, which it does to standard error: what matters comes back
// as an error.
func Silent(o *config.LoadOptions) error {
	o.Logger = logging.Nop{}
	return nil
}

// Client sends by inner, or by the SDK's own client where inner is nil, which then has a
// bound for each attempt, and shows it
// of a request's body only that it can be read and closed.
//
// The SDK closes the body as soon as there is an answer. net/http may then still be
// about to look for the body's end. A read of the closed body shows it that this is
// the end; WriteTo of smithy-go 1.28, which io.Copy prefers, gives the same io.EOF as
// an error, upon which net/http closes the connection under the answer that is being
// read ("use of closed network connection").
func Client(inner aws.HTTPClient) aws.HTTPClient {
	if inner == nil {
		inner = awshttp.NewBuildableClient()
	}
	if b, ok := inner.(*awshttp.BuildableClient); ok && b.GetTimeout() == 0 {
		inner = b.WithTimeout(attemptMax)
	}
	return &client{inner}
}

// attemptMax bounds an attempt of which nothing else is known, the longest wait for
// messages included.
const attemptMax = 40 * time.Second

type client struct{ inner aws.HTTPClient }

// Do sends a request.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.inner.Do(r)
}
