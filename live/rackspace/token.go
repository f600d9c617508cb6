package rackspace

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// tokenEarly is how long before its end an access token is renewed, so that none
// ends on the way.
const tokenEarly = time.Minute

// tokenLife is taken for the life of an access token that does not tell its own.
const tokenLife = 5 * time.Minute

// A tokenSource turns a refresh token into access tokens. Neither is ever written
// to the log or into an error.
type tokenSource struct {
	c       *cloud
	refresh string

	mu     sync.Mutex
	access string
	until  time.Time
}

// token returns an access token that is good for a while.
func (s *tokenSource) token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access != "" && s.c.cfg.Clock.Now().Before(s.until.Add(-tokenEarly)) {
		return s.access, nil
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {s.c.cfg.ClientID}, "refresh_token": {s.refresh}}
	body, err := s.c.attempts(ctx, request{
		what: "asking for an access token", method: http.MethodPost, url: s.c.cfg.LoginEndpoint + "/oauth/token",
		contentType: "application/x-www-form-urlencoded", body: []byte(form.Encode()),
	})
	if err != nil {
		if has(err, http.StatusBadRequest) || has(err, http.StatusForbidden) || has(err, http.StatusUnauthorized) {
			return "", fmt.Errorf("%w: %w", errLogin, err)
		}
		return "", err
	}
	var answer struct {
		IDToken string `json:"id_token"`
		Expires int64  `json:"expires_in"` // seconds
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.IDToken == "" {
		return "", fmt.Errorf("asking for an access token: the answer has no id_token")
	}
	now := s.c.cfg.Clock.Now()
	s.access, s.until = answer.IDToken, now.Add(tokenLife)
	if answer.Expires > 0 {
		s.until = now.Add(time.Duration(answer.Expires) * time.Second)
	}
	if end, ok := expiry(answer.IDToken); ok {
		s.until = end
	}
	return s.access, nil
}

// reject forgets an access token that was refused.
func (s *tokenSource) reject(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access == token {
		s.access = ""
	}
}

// expiry returns the end that a JSON Web Token states of itself.
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
