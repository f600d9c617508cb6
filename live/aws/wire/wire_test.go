package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A late client looks for the end of a body after its request was answered, as a
// connection does whose goroutine comes second.
type late struct {
	bodies []io.Reader
	known  error
}

func (l *late) Do(r *http.Request) (*http.Response, error) {
	l.bodies = append(l.bodies, r.Body)
	return nil, l.known
}

// A body that the SDK has closed has ended, and is not broken.
func TestEndOfABodyThatIsClosed(t *testing.T) {
	inner := &late{known: errors.New("no answer")}
	c := sqs.New(sqs.Options{
		Region: "us-east-1", Retryer: aws.NopRetryer{}, HTTPClient: Client(inner), Credentials: aws.AnonymousCredentials{},
	})
	_, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("https://sqs.us-east-1.amazonaws.com/1/q")})
	if !errors.Is(err, inner.known) {
		t.Fatalf("the error is %v", err)
	}
	if len(inner.bodies) != 1 || inner.bodies[0] == nil {
		t.Fatalf("the bodies are %v, want one", inner.bodies)
	}
	if n, err := io.Copy(io.Discard, inner.bodies[0]); n != 0 || err != nil {
		t.Errorf("looking for the end of the closed body gives %d bytes and %v", n, err)
	}
}

// A body arrives whole, and a request without one keeps none.
func TestBodies(t *testing.T) {
	inner := &late{known: errors.New("no answer")}
	for _, body := range []io.Reader{strings.NewReader("Action=DescribeInstances"), http.NoBody, nil} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", body)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := Client(inner).Do(r); err == nil {
			answer.Body.Close()
			t.Fatal("there is an answer")
		}
	}
	if got, err := io.ReadAll(inner.bodies[0]); err != nil || string(got) != "Action=DescribeInstances" {
		t.Errorf("the body is %q, %v", got, err)
	}
	if inner.bodies[1] != http.NoBody || inner.bodies[2] != io.ReadCloser(nil) {
		t.Errorf("requests without a body have %v and %v", inner.bodies[1], inner.bodies[2])
	}
}

// Every service's refusals are of one kind, by code or by status.
func TestKindOf(t *testing.T) {
	refused := &http.Response{StatusCode: http.StatusTooManyRequests}
	for _, c := range []struct {
		err  error
		want Kind
	}{
		{nil, KindOther},
		{errors.New("no answer"), KindOther},
		{&smithy.GenericAPIError{Code: "ValidationError"}, KindOther},
		{&smithy.GenericAPIError{Code: "Throttling"}, KindThrottled},
		{&smithy.GenericAPIError{Code: "RequestLimitExceeded"}, KindThrottled},
		{&smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: refused}, Err: errors.New("no XML")}, KindThrottled},
		{&smithy.GenericAPIError{Code: "AccessDenied"}, KindDenied},
		{&smithy.GenericAPIError{Code: "AuthFailure"}, KindCredentials},
		{fmt.Errorf("reading: %w", &smithy.GenericAPIError{Code: "RequestExpired"}), KindExpired},
	} {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%v is of kind %d, want %d", c.err, got, c.want)
		}
	}
}
