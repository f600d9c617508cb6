package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"compress/gzip"

	"github.com/spotter-dev/spotter/policy"
)

// A Client queries a server with the HTTP API of Prometheus. URL is required.
type Client struct {
	// URL is the base URL of api/v1. A user name and password in it are sent.
	URL *url.URL

	// HTTP sends the requests; nil means http.DefaultClient. Header is added to each request.
	HTTP   *http.Client
	Header http.Header

	// Cache is a folder for responses, so that they are not requested again. If empty, there is no
	// cache.
	Cache string

	// Tries is the maximum number of attempts after temporary errors, and Wait is the delay before
	// the second one; it doubles with each attempt. Raising either tolerates longer outages.
	Tries int
	Wait  time.Duration
}

// errTooMuch means that the server refused to read the data of a query at once.
var errTooMuch = errors.New("the server refuses so much at once")

// errUnmatched means that series that are joined do not match one to one, such as two series of one
// pod from two instances of kube-state-metrics.
var errUnmatched = errors.New("series do not match each other")

// errBusy means a temporary error.
var errBusy = errors.New("the server did not answer")

// A question is a query over an interval: at each step from one instant to another, both included.
type question struct {
	query    string
	from, to policy.Time
	step     time.Duration
}

// name returns the file name of the response in the cache.
func (c *Client) name(q *question) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d %d %d", c.URL.Redacted(), q.query, q.from, q.to, q.step))
	return hex.EncodeToString(sum[:16]) + ".json.gz"
}

// An answer is a file with a response. done must be called after it is read.
type answer struct {
	path string
	keep bool
}

func (a *answer) done() {
	if a != nil && !a.keep {
		_ = os.Remove(a.path)
	}
}

// ask returns the response to a query, from the cache if it contains it. It retries temporary
// errors.
func (c *Client) ask(ctx context.Context, q *question) (*answer, error) {
	if c.Cache != "" {
		path := filepath.Join(c.Cache, c.name(q))
		if _, err := os.Stat(path); err == nil {
			return &answer{path, true}, nil
		}
	}
	wait := c.Wait
	for try := 1; ; try++ {
		a, err := c.call(ctx, q)
		if err == nil || !errors.Is(err, errBusy) || try >= c.Tries {
			return a, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// call sends a query once, and writes a complete response to a file.
func (c *Client) call(ctx context.Context, q *question) (*answer, error) {
	form := url.Values{
		"query": {q.query}, "start": {seconds(q.from)}, "end": {seconds(q.to)},
		"step": {strconv.FormatFloat(q.step.Seconds(), 'f', -1, 64)},
	}
	at := c.URL.JoinPath("api/v1/query_range")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	for k, v := range c.Header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", errBusy, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, refusal(resp)
	}
	a, err := c.store(resp.Body, q)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return a, err
}

func seconds(t policy.Time) string { return strconv.FormatFloat(float64(t)/1000, 'f', 3, 64) }

// refusal returns the error for a response with a status other than 200.
func refusal(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
	said := strings.Join(strings.Fields(string(text)), " ")
	err := fmt.Errorf("%s: %s", resp.Status, said)
	lower := strings.ToLower(said)
	switch code := resp.StatusCode; {
	case code == http.StatusUnprocessableEntity && (strings.Contains(lower, "many-to-many") || strings.Contains(lower, "duplicate")):
		return fmt.Errorf("%w: %w", errUnmatched, err)
	case code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity,
		code == http.StatusBadRequest && strings.Contains(lower, "exceeded maximum resolution"):
		return fmt.Errorf("%w: %w", errTooMuch, err)
	case code == http.StatusGatewayTimeout, code == http.StatusServiceUnavailable && strings.Contains(lower, "timeout"):
		return fmt.Errorf("%w: %w: %w", errBusy, errTooMuch, err)
	case code == http.StatusTooManyRequests, code >= 500:
		return fmt.Errorf("%w: %w", errBusy, err)
	}
	return err
}

// store writes a response to its file. It returns an error if the response is truncated.
func (c *Client) store(body io.Reader, q *question) (a *answer, err error) {
	f, err := os.CreateTemp(c.Cache, ".answer-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var whole brackets
	_, err = io.Copy(io.MultiWriter(z, &whole), body)
	if err != nil {
		err = fmt.Errorf("%w: %w", errBusy, err)
	} else if !whole.closed() {
		err = fmt.Errorf("%w: the answer ends in the middle", errBusy)
	}
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		return nil, err
	}
	if c.Cache == "" {
		return &answer{f.Name(), false}, nil
	}
	path := filepath.Join(c.Cache, c.name(q))
	return &answer{path, true}, os.Rename(f.Name(), path)
}

// A brackets tracks the nesting of JSON that is written to it.
type brackets struct {
	depth          int
	begun          bool
	inside, escape bool // within a string; after a backslash
}

// Write scans p. It never fails.
func (b *brackets) Write(p []byte) (int, error) {
	for _, x := range p {
		switch {
		case b.escape:
			b.escape = false
		case b.inside:
			b.escape, b.inside = x == '\\', x != '"'
		case x == '"':
			b.inside = true
		case x == '{', x == '[':
			b.depth, b.begun = b.depth+1, true
		case x == '}', x == ']':
			b.depth--
		}
	}
	return len(p), nil
}

// closed reports whether the JSON is complete.
func (b *brackets) closed() bool { return b.begun && b.depth == 0 && !b.inside }
