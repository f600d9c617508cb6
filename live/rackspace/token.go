package rackspace

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// tokenEarly is how long before its expiry an access token is renewed, so that it does not expire
// in transit.
const tokenEarly = time.Minute

// tokenLife is the assumed lifetime of an access token that does not state its own.
const tokenLife = 5 * time.Minute

// A tokenSource obtains access tokens with a refresh token. Neither is ever logged or part of an
// error.
type tokenSource struct {
	c       *cloud
	refresh string

	asking singleflight.Group
	now    atomic.Pointer[accessToken] // nil if there is no token
}

// An accessToken is a token that is valid until a time.
type accessToken struct {
	text  string
	until time.Time
}

// token returns an access token that is valid for at least tokenEarly. Concurrent calls share one
// request.
func (s *tokenSource) token(ctx context.Context) (string, error) {
	if t := s.now.Load(); t != nil && s.c.cfg.Clock.Now().Before(t.until.Add(-tokenEarly)) {
		return t.text, nil
	}
	for again := true; ; again = false {
		text, err, shared := s.asking.Do("", func() (any, error) { return s.ask(ctx) })
		switch {
		case err == nil:
			return text.(string), nil
		case !again || !shared || ctx.Err() != nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
			return "", err
		} // the context of another caller ended: try again
	}
}

// ask requests an access token from the login service.
func (s *tokenSource) ask(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {s.c.cfg.ClientID}, "refresh_token": {s.refresh}}
	body, err := s.c.attempts(ctx, request{
		what: "requesting an access token", method: http.MethodPost, url: s.c.cfg.LoginEndpoint + "/oauth/token",
		contentType: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	})
	if err != nil {
		if has(err, http.StatusBadRequest) || has(err, http.StatusForbidden) || has(err, http.StatusUnauthorized) {
			return "", fmt.Errorf("%w: %w", errLogin, err)
		}
		return "", err
	}
	var result struct {
		IDToken string `json:"id_token"`
		Expires int64  `json:"expires_in"` // seconds
	}
	if err := json.Unmarshal(body, &result); err != nil || result.IDToken == "" {
		return "", fmt.Errorf("requesting an access token: the response has no id_token")
	}
	now := s.c.cfg.Clock.Now()
	t := &accessToken{result.IDToken, now.Add(tokenLife)}
	if result.Expires > 0 {
		t.until = now.Add(time.Duration(result.Expires) * time.Second)
	}
	if end, ok := expiry(result.IDToken); ok {
		t.until = end
	}
	s.now.Store(t)
	return t.text, nil
}

// reject discards an access token that was rejected.
func (s *tokenSource) reject(token string) {
	if t := s.now.Load(); t != nil && t.text == token {
		s.now.CompareAndSwap(t, nil)
	}
}

// expiry returns the expiry in a JSON Web Token. It reports whether the token has a valid expiry.
func expiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Exp int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}, false
	}
	return time.Unix(claims.Exp, 0), true
}
