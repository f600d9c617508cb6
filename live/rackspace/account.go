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

// secretKeys are the keys under which a secret may hold the refresh token; the first is Spotter's,
// the others are those of other tools for Rackspace Spot.
var secretKeys = []string{"refresh-token", "refreshToken", "RACKSPACE_SPOT_REFRESH_TOKEN"}

// An accountKey is what distinguishes one account from another.
type accountKey struct {
	org, cloudspace string
	secret          types.NamespacedName
}

// An account is a cloudspace and the credentials to it. Pools that name the same
// share one.
type account struct {
	key accountKey

	opening   chan struct{} // full while a goroutine reads or writes what follows
	cloud     *cloud
	refresh   string
	read      policy.Time // when the secret was last read
	namespace string
	region    string
	refused   string      // a refresh token that was not accepted
	refusedAt policy.Time // when
}

// An accountTable holds the accounts that pools name. It readies one account for one caller
// at a time, and its lock is not held meanwhile.
type accountTable struct {
	cfg    *Config
	reader client.Reader

	mu    sync.Mutex
	byKey map[accountKey]*account
}

// A session is an account that is ready for calls.
type session struct {
	cloud      *cloud
	namespace  string // of the organisation's objects
	cloudspace string
	region     string
}

// keyOf returns the account that a pool names.
func (c *Config) keyOf(p *v1alpha1.CapacityPool) accountKey {
	r := p.Spec.Backend.Rackspace
	k := accountKey{org: r.Org, cloudspace: r.Cloudspace}
	k.secret = types.NamespacedName{Namespace: r.CredentialsSecretRef.Namespace, Name: r.CredentialsSecretRef.Name}
	if k.secret.Namespace == "" {
		k.secret.Namespace = c.Namespace
	}
	return k
}

// open prepares an account: it reads the secret again from time to time, so that a rotated one is
// used, and requests the region of the cloudspace once.
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

// keepOnly drops all accounts but those that were read, with their credentials.
func (t *accountTable) keepOnly(read map[accountKey]error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.byKey, func(k accountKey, _ *account) bool {
		_, used := read[k]
		return !used
	})
}

// readSecret brings the refresh token up to date. One that was refused is not
// tried again before the secret changes, or before as much time as a bid may take.
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

// locate finds the organisation's namespace and the cloudspace's region.
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

// note remembers that the login refused the refresh token, if it did.
func (t *accountTable) note(a *account, err error) error {
	if errors.Is(err, errLogin) {
		a.refused, a.refusedAt = a.refresh, t.cfg.now()
	}
	return err
}

// failed is note for an answer that came after open.
func (t *accountTable) failed(k accountKey, err error) error {
	if !errors.Is(err, errLogin) {
		return err
	}
	t.mu.Lock()
	a := t.byKey[k]
	t.mu.Unlock()
	if a == nil { // it is of no pool any more
		return err
	}
	a.opening <- struct{}{}
	defer func() { <-a.opening }()
	return t.note(a, err)
}
