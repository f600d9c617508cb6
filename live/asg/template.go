package asg

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// templateFor is how long a launch template is assumed to stay the same.
const templateFor = 10 * time.Minute

// A templateRead is a launch template and the time at which it was read.
type templateRead struct {
	template
	at policy.Time
}

// A templateCache caches launch templates for templateFor.
type templateCache struct {
	cfg   *Config
	cloud *cloud

	mu   sync.Mutex
	read map[string]templateRead // by ID and version
}

// complete adds to g the fields of its launch template that no mixed-instances policy overrides.
func (c *templateCache) complete(ctx context.Context, g *group) error {
	if g.buys.template == "" || g.buys.policy && len(g.types) > 0 {
		return nil
	}
	key := g.buys.template + " " + g.buys.version
	c.mu.Lock()
	t, ok := c.read[key]
	c.mu.Unlock()
	if !ok || c.cfg.now().Sub(t.at) > templateFor {
		read, err := c.cloud.template(ctx, g.buys.template, g.buys.version)
		if err != nil {
			return err
		}
		t = templateRead{read, c.cfg.now()}
		c.mu.Lock()
		maps.DeleteFunc(c.read, func(_ string, old templateRead) bool { return t.at.Sub(old.at) > templateFor })
		c.read[key] = t
		c.mu.Unlock()
	}
	if t.kind != "" && !g.buys.policy {
		g.types = []string{t.kind}
	}
	if !g.buys.policy && t.spot {
		g.buys.onDemandPercent = 0
	}
	return nil
}
