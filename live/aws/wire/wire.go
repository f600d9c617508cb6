// Package wire sends the requests of the AWS SDK.
package wire

import (
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Client sends by inner, or by the SDK's own client where inner is nil, and shows it
// of a request's body only that it can be read and closed.
//
// The SDK closes the body as soon as there is an answer. net/http may then still be
// about to look for the body's end. A read of the closed body tells it that this is
// the end; WriteTo of smithy-go 1.28, which io.Copy prefers, gives the same io.EOF as
// an error, upon which net/http closes the connection under the answer that is being
// read ("use of closed network connection").
func Client(inner aws.HTTPClient) aws.HTTPClient {
	if inner == nil {
		inner = awshttp.NewBuildableClient()
	}
	return &client{inner}
}

type client struct{ inner aws.HTTPClient }

// Do sends a request.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.inner.Do(r)
}
