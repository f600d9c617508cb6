package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// A counted records the names, such as those of pools, for which counters and histograms have
// series, so that the series of a deleted object can be removed. Gauges are reset at every step and
// do not need it.
type counted struct {
	labels func(name string) prometheus.Labels
	vecs   []interface {
		DeletePartialMatch(prometheus.Labels) int
	}

	mu   sync.Mutex
	seen map[string]bool
}

// saw records that there is a series for name, and returns name.
func (c *counted) saw(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[name] = true
	return name
}

// keep removes the series of all names for which exists returns false. Series with an empty name
// are kept: they belong to nodes without a pool.
func (c *counted) keep(exists func(name string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.seen {
		if name == "" || exists(name) {
			continue
		}
		for _, v := range c.vecs {
			v.DeletePartialMatch(c.labels(name))
		}
		delete(c.seen, name)
	}
}
