package aws

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/spotter-dev/spotter/live/aws/wire"
)

// errAttemptTimeout is the error of an attempt that took too long, as opposed to the whole
// recording.
var errAttemptTimeout = errors.New("no answer in time")

// A cutShortError means that a response is incomplete.
type cutShortError struct{ what string }

func (e *cutShortError) Error() string { return "the response was truncated: " + e.what }

// A wholeClient sends requests and returns only complete responses. The decoders of the SDK accept
// an empty body as an empty response, which would mean a day without prices.
type wholeClient struct{ client doer }

// A doer sends a request.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// attemptMax is the maximum duration of one attempt.
const attemptMax = 30 * time.Second

// bodyMax is the maximum size of a response in bytes. A page of a thousand prices has about
// 250,000.
const bodyMax = 64 << 20

// newWholeClient returns a client that sends requests with inner, which has the proxy and the
// certificates of the environment.
func newWholeClient(inner doer) *wholeClient {
	b, ok := inner.(*awshttp.BuildableClient)
	if !ok {
		b = awshttp.NewBuildableClient()
	}
	return &wholeClient{client: wire.Client(b.WithTimeout(attemptMax))}
}

// Do sends a request and reads the complete response.
func (c *wholeClient) Do(r *http.Request) (*http.Response, error) {
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, attemptError(r, err)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodyMax))
	answer.Body.Close()
	if err != nil {
		if inner := attemptError(r, err); errors.Is(inner, errAttemptTimeout) || r.Context().Err() != nil {
			return nil, inner
		}
		return nil, &cutShortError{what: err.Error()}
	}
	if err := whole(answer, body); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// attemptError marks a timeout of the attempt, as opposed to the end of the recording.
func attemptError(r *http.Request, err error) error {
	var late interface{ Timeout() bool }
	if r.Context().Err() == nil && errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("%w: %w", errAttemptTimeout, err)
	}
	return err
}

// whole returns an error if a response that should be XML or JSON is incomplete.
func whole(answer *http.Response, body []byte) error {
	kind := answer.Header.Get("Content-Type")
	text := bytes.TrimSpace(body)
	// Responses without a content type can be incomplete too.
	if answer.StatusCode == http.StatusOK && bytes.HasPrefix(text, []byte("<")) {
		kind = "xml"
	}
	switch {
	case len(text) == 0 && answer.StatusCode == http.StatusOK:
		return &cutShortError{what: "it is empty"}
	case strings.Contains(kind, "json") && !json.Valid(text):
		return &cutShortError{what: fmt.Sprintf("%d bytes of incomplete JSON", len(text))}
	case strings.Contains(kind, "xml") && xml.Unmarshal(text, new(struct{})) != nil:
		return &cutShortError{what: fmt.Sprintf("%d bytes of incomplete XML", len(text))}
	}
	return nil
}
