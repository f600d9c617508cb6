package watch

import (
	"slices"
	"strings"
	"time"
)

// Rest holds that at an instant of rest no mark of Spotter's is left without cause, that is on a
// node where no drain has progressed for the time of quiet and whose mark neither a notice nor the
// node's deletion explains.
func (w *Watcher) Rest(at time.Time) {
	for _, name := range sorted(w.nodes) {
		n := w.nodes[name]
		if len(n.Ours) == 0 || n.Notice || n.Going {
			continue
		}
		last := n.since
		if p := w.progress[name]; p.After(last) {
			last = p
		}
		if idle := at.Sub(last); idle > w.cfg.Quiet {
			w.find(at, "mark", "node %s carries %s, and nothing has come on for %v", name, strings.Join(n.Ours, ", "),
				idle.Round(time.Second))
		}
	}
}

// Unmarked holds that Spotter has no mark except on nodes that are being deleted, since it may not
// do anything any more.
func (w *Watcher) Unmarked(at time.Time) {
	for _, name := range sorted(w.nodes) {
		if n := w.nodes[name]; len(n.Ours) > 0 && !n.Going {
			w.find(at, "mark", "node %s carries %s though nothing may be done", name, strings.Join(n.Ours, ", "))
		}
	}
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
