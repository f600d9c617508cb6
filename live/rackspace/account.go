package rackspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// secretKeys are the keys under which a secret may contain the refresh token. The first is
// Spotter's; other tools for Rackspace Spot use the others.
var secretKeys = []string{"refresh-token", "refreshToken", "RACKSPACE_SPOT_REFRESH_TOKEN"}

// An accountKey identifies an account.
type accountKey struct {
	org, cloudspace string
	secret          types.NamespacedName
}

// An account is a cloudspace and its credentials. Pools with the same accountKey share one account.
type account struct {
	key accountKey

	opening   chan struct{} // full while a goroutine reads or writes the following fields
	cloud     *cloud
	refresh   string
	read      policy.Time // when the secret was last read
	namespace string
	region    string
	refused   string      // the refresh token that was rejected last
	refusedAt policy.Time // when it was rejected
}

// An accountTable contains the accounts of all pools. It prepares an account for one caller at a
// time, without holding its lock.
type accountTable struct {
	cfg    *Config
	reader client.Reader

	mu    sync.Mutex
	byKey map[accountKey]*account
}

// A session is an account that is ready for requests.
type session struct {
	cloud      *cloud
	namespace  string // namespace of the organisation's objects
	cloudspace string
	region     string
}

// keyOf returns the key of the account of a pool.
func (c *Config) keyOf(p *v1alpha1.CapacityPool) accountKey {
	r := p.Spec.Backend.Rackspace
	k := accountKey{org: r.Org, cloudspace: r.Cloudspace}
	k.secret = types.NamespacedName{Namespace: r.CredentialsSecretRef.Namespace, Name: r.CredentialsSecretRef.Name}
	if k.secret.Namespace == "" {
		k.secret.Namespace = c.Namespace
	}
	return k
}

// open prepares an account: it reads the secret again after Poll, so that a rotated token is used,
// and requests the region of the cloudspace once.
func (t *accountTable) open(ctx context.Context, k accountKey) (session, error) {
	t.mu.Lock()
	a := t.byKey[k]
	if a == nil {
		a = &account{key: k, opening: make(chan struct{}, 1)}
		t.byKey[k] = a
	}
	t.mu.Unlock()

	select {
	case a.opening <- struct{}{}:
		defer func() { <-a.opening }()
	case <-ctx.Done():
		return session{}, fmt.Errorf("waiting for the account of cloudspace %s: %w", k.cloudspace, ctx.Err())
	}
	if err := t.readSecret(ctx, a); err != nil {
		return session{}, err
	}
	if a.namespace == "" || a.region == "" {
		if err := a.locate(ctx); err != nil {
			return session{}, t.note(a, err)
		}
	}
	return session{cloud: a.cloud, namespace: a.namespace, cloudspace: k.cloudspace, region: a.region}, nil
}

// keepOnly drops all accounts that are not in read, with their credentials.
func (t *accountTable) keepOnly(read map[accountKey]error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.byKey, func(k accountKey, _ *account) bool {
		_, used := read[k]
		return !used
	})
}

// readSecret updates the refresh token. A rejected token is not used again until the secret changes
// or WinMax has passed.
func (t *accountTable) readSecret(ctx context.Context, a *account) error {
	now := t.cfg.now()
	if a.cloud == nil || a.refused != "" || now.Sub(a.read) >= t.cfg.Poll {
		var s corev1.Secret
		if err := t.reader.Get(ctx, a.key.secret, &s); err != nil {
			if a.cloud != nil && a.refused == "" {
				t.cfg.Log.Warn("the credentials secret cannot be read; its last known content is used", "secret", a.key.secret,
					"error", err)
				return nil
			}
			return fmt.Errorf("%w: reading secret %s: %w", errCredentials, a.key.secret, err)
		}
		token := ""
		for _, k := range secretKeys {
			if token = strings.TrimSpace(string(s.Data[k])); token != "" {
				break
			}
		}
		if token == "" {
			return fmt.Errorf("%w: secret %s has no key %s", errCredentials, a.key.secret, secretKeys[0])
		}
		a.read = now
		if token != a.refresh {
			a.refresh, a.cloud, a.refused = token, newCloud(t.cfg, token), ""
		}
	}
	if a.refused == a.refresh && now.Sub(a.refusedAt) < t.cfg.WinMax {
		return fmt.Errorf("%w: Rackspace refused the refresh token of secret %s at %v", errCredentials, a.key.secret,
			a.refusedAt)
	}
	return nil
}

// locate requests the namespace of the organisation and the region of the cloudspace.
func (a *account) locate(ctx context.Context) error {
	namespace, err := a.cloud.namespace(ctx, a.key.org)
	if err != nil {
		return err
	}
	c, err := a.cloud.cloudspace(ctx, namespace, a.key.cloudspace)
	if err != nil {
		return err
	}
	if c.Spec.Region == "" {
		return fmt.Errorf("cloudspace %s has no region", a.key.cloudspace)
	}
	a.namespace, a.region = namespace, c.Spec.Region
	return nil
}

// note records the refresh token as rejected if err is a failed login, and returns err.
func (t *accountTable) note(a *account, err error) error {
	if errors.Is(err, errLogin) {
		a.refused, a.refusedAt = a.refresh, t.cfg.now()
	}
	return err
}

// failed does the same as note for an error that occurs after open.
func (t *accountTable) failed(k accountKey, err error) error {
	if !errors.Is(err, errLogin) {
		return err
	}
	t.mu.Lock()
	a := t.byKey[k]
	t.mu.Unlock()
	if a == nil { // no pool uses the account any more
		return err
	}
	a.opening <- struct{}{}
	defer func() { <-a.opening }()
	return t.note(a, err)
}
