package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// A counted is what counters and histograms have a series for that may be deleted, as pools are. Gauges are set again
// at every step, and need none.
type counted struct {
	labels func(name string) prometheus.Labels
	vecs   []interface {
		DeletePartialMatch(prometheus.Labels) int
	}

	mu   sync.Mutex
	seen map[string]bool
}

// saw notes that there is a series of name, and returns it.
func (c *counted) saw(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[name] = true
	return name
}

// keep takes out the series of all names but some. Those without a name stay: they are of nodes of no pool.
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
