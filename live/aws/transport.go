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

// errAttemptTimeout marks that one attempt, and not the recording, took too
// long.
var errAttemptTimeout = errors.New("no answer in time")

// A cutShortError is an answer that did not arrive whole.
type cutShortError struct{ what string }

func (e *cutShortError) Error() string { return "the response was truncated: " + e.what }

// A wholeClient sends requests and passes on only answers that are whole. The
// decoders of the SDK take an empty body for an empty answer, which here would
// mean a day without prices.
type wholeClient struct{ client doer }

// A doer sends a request.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// attemptMax is how long one attempt may take.
const attemptMax = 30 * time.Second

// bodyMax is the most bytes of an answer; a page of a thousand prices has a
// quarter of a million.
const bodyMax = 64 << 20

// newWholeClient sends by inner, which knows the proxy and the certificates
// that the environment names.
func newWholeClient(inner doer) *wholeClient {
	b, ok := inner.(*awshttp.BuildableClient)
	if !ok {
		b = awshttp.NewBuildableClient()
	}
	return &wholeClient{client: wire.Client(b.WithTimeout(attemptMax))}
}

// Do sends a request and reads its whole answer.
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

// attemptError separates a timeout of the attempt from the end of the recording.
func attemptError(r *http.Request, err error) error {
	var late interface{ Timeout() bool }
	if r.Context().Err() == nil && errors.As(err, &late) && late.Timeout() {
		return fmt.Errorf("%w: %w", errAttemptTimeout, err)
	}
	return err
}

// whole fails when an answer that should be XML or JSON is not all there.
func whole(answer *http.Response, body []byte) error {
	kind := answer.Header.Get("Content-Type")
	text := bytes.TrimSpace(body)
	// A server that does not name the kind of its answer still cuts it short.
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
