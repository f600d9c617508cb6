package rackspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
)

// bodyMax is the maximum size of a response, in bytes. The list of all server classes is about a
// tenth of it.
const bodyMax = 16 << 20

// pagesMax is the maximum number of pages of a list.
const pagesMax = 1000

// A cloud is a client of the API with the credentials of one account.
type cloud struct {
	cfg    *Config
	http   *http.Client
	tokens *tokenSource // nil if no credentials are needed
}

// newCloud returns a client with a refresh token. With an empty token it can read only public data.
func newCloud(cfg *Config, refresh string) *cloud {
	c := &cloud{cfg: cfg, http: &http.Client{Transport: cfg.Transport, Timeout: cfg.Timeout}}
	if refresh != "" {
		c.tokens = &tokenSource{c: c, refresh: refresh}
	}
	return c
}

// A request is an HTTP request. what describes it for error messages.
type request struct {
	what, method, url string
	contentType       string
	body              []byte
	token             string
}

// call sends a request with an access token and decodes the response into out. If the token is
// rejected, it is renewed once.
func (c *cloud) call(ctx context.Context, what, method, path string, in, out any) error {
	r := request{what: what, method: method, url: c.cfg.Endpoint + path, contentType: "application/json"}
	if method == http.MethodPatch {
		r.contentType = "application/merge-patch+json"
	}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		r.body = body
	}
	body, token, err := c.send(ctx, r)
	if has(err, http.StatusUnauthorized) && token != "" {
		first := err
		c.tokens.reject(token)
		body, _, err = c.send(ctx, r)
		if err != nil && !answered(first) {
			err = &unsure{err}
		}
	}
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	return decode(what, body, out)
}

// send sends a request with an access token, and returns the response and the token.
func (c *cloud) send(ctx context.Context, r request) (body []byte, token string, err error) {
	if token, err = c.tokens.token(ctx); err != nil {
		return nil, "", fmt.Errorf("%s: %w", r.what, err)
	}
	r.token = token
	body, err = c.attempts(ctx, r)
	return body, token, err
}

// decode decodes a complete response. It ignores unknown fields. A field of a different type or a
// truncated response is an error.
func decode(what string, body []byte, out any) error {
	if err := json.Unmarshal(body, out); err != nil {
		var field *json.UnmarshalTypeError
		if errors.As(err, &field) {
			return fmt.Errorf("%s: field %s is a %s: %w", what, field.Field, field.Value, err)
		}
		return fmt.Errorf("%s: reading the answer: %w", what, err)
	}
	return nil
}

// attempts sends a request until it succeeds, with an increasing wait between the attempts. It
// returns an error that is not transient at once.
func (c *cloud) attempts(ctx context.Context, r request) ([]byte, error) {
	wait, open := c.cfg.BackoffMin, false
	for try := 1; ; try++ {
		body, err := c.attempt(ctx, r)
		if err == nil {
			return body, nil
		}
		if errors.As(err, new(*backend.FencedError)) {
			if open {
				err = &unsure{err}
			}
			return nil, err
		}
		var f *fault
		if errors.As(err, &f); f == nil || f.Status >= 500 {
			open = true
		}
		if f != nil && !f.passes() || ctx.Err() != nil || try == c.cfg.Attempts || f != nil && f.Wait > c.cfg.BackoffMax {
			if open && f != nil && f.Status < 500 {
				err = &unsure{err}
			}
			return nil, err
		}
		pause := wait
		if f != nil && f.Wait > 0 {
			pause = f.Wait
		}
		select {
		case <-ctx.Done():
			return nil, &unsure{err}
		case <-c.cfg.Clock.After(pause):
		}
		wait = min(2*wait, c.cfg.BackoffMax)
	}
}

func (c *cloud) attempt(ctx context.Context, r request) ([]byte, error) {
	if r.token != "" && r.method != http.MethodGet && c.cfg.Fence != nil {
		if err := c.cfg.Fence(ctx); err != nil {
			return nil, &backend.FencedError{Err: err}
		}
	}
	q, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.what, err)
	}
	if r.body != nil {
		q.Header.Set("Content-Type", r.contentType)
	}
	q.Header.Set("Accept", "application/json")
	if r.token != "" {
		q.Header.Set("Authorization", "Bearer "+r.token)
	}
	answer, err := c.http.Do(q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.what, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodyMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: reading the answer: %w", r.what, err)
	case len(body) > bodyMax:
		return nil, fmt.Errorf("%s: the answer has more than %d bytes", r.what, bodyMax)
	case answer.StatusCode >= 300:
		return nil, faultOf(r.what, answer.StatusCode, body, retryAfter(answer.Header, c.cfg.Clock.Now()))
	}
	return body, nil
}

// retryAfter returns the wait that the response requests, in seconds or as a date, or 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// list reads all pages of a list.
func list[T any](ctx context.Context, c *cloud, what, path string, query url.Values) ([]T, error) {
	var all []T
	for range pagesMax {
		p := path
		if len(query) > 0 {
			p += "?" + query.Encode()
		}
		var one page[T]
		if err := c.call(ctx, what, http.MethodGet, p, nil, &one); err != nil {
			return nil, err
		}
		all = append(all, one.Items...)
		if one.Metadata.Continue == "" {
			return all, nil
		}
		if query = maps.Clone(query); query == nil {
			query = url.Values{}
		}
		query.Set("continue", one.Metadata.Continue)
	}
	return nil, fmt.Errorf("%s: the list has more than %d pages", what, pagesMax)
}

// namespace returns the namespace of the organisation with the name, ID or namespace org.
func (c *cloud) namespace(ctx context.Context, org string) (string, error) {
	var all organisations
	if err := c.call(ctx, "listing organizations", http.MethodGet, "/apis/auth.ngpc.rxt.io/v1/organizations", nil,
		&all); err != nil {
		return "", err
	}
	for _, o := range all.Organizations {
		if o.ID != "" && (o.Name == org || o.ID == org || namespaceOf(o.ID) == org) {
			return namespaceOf(o.ID), nil
		}
	}
	return "", fmt.Errorf("organization %q is not among those that the credentials may access, of %d", org,
		len(all.Organizations))
}

func (c *cloud) cloudspace(ctx context.Context, namespace, name string) (*cloudSpace, error) {
	var out cloudSpace
	path := "/apis/ngpc.rxt.io/v1/namespaces/" + url.PathEscape(namespace) + "/cloudspaces/" + url.PathEscape(name)
	return &out, c.call(ctx, "reading cloudspace "+name, http.MethodGet, path, nil, &out)
}

func (c *cloud) serverClasses(ctx context.Context) ([]serverClass, error) {
	return list[serverClass](ctx, c, "listing server classes", "/apis/ngpc.rxt.io/v1/serverclasses", nil)
}

func poolPath(namespace string, k kind, name string) string {
	path := "/apis/ngpc.rxt.io/v1/namespaces/" + url.PathEscape(namespace) + "/" + string(k)
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// pools returns the node pools of a cloudspace.
func (c *cloud) pools(ctx context.Context, namespace, cloudspace string, k kind) ([]nodePool, error) {
	what := fmt.Sprintf("listing the %s of cloudspace %s", k, cloudspace)
	all, err := list[nodePool](ctx, c, what, poolPath(namespace, k, ""),
		url.Values{"labelSelector": {cloudspaceLabel + "=" + cloudspace}})
	if err != nil {
		return nil, err
	}
	mine := all[:0]
	for _, p := range all {
		if p.Spec.CloudSpace == cloudspace {
			p.Kind = k.object() // the items of a list may lack it
			mine = append(mine, p)
		}
	}
	return mine, nil
}

func (c *cloud) pool(ctx context.Context, namespace string, k kind, name string) (*nodePool, error) {
	var out nodePool
	return &out, c.call(ctx, fmt.Sprintf("reading %s %s", k.object(), name), http.MethodGet,
		poolPath(namespace, k, name), nil, &out)
}
