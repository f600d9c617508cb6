package watch

import (
	"slices"
	"strings"
	"time"
)

// Rest holds that no mark of ours stands without cause at an instant of rest: one on
// whose node nothing has come on for the time of quiet, and that neither a notice nor its
// deletion explains.
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
			w.find(at, "mark", "node %s carries %s, and nothing has come on for %v", name, strings.Join(n.Ours, ", "), idle.Round(time.Second))
		}
	}
}

// Unmarked holds that no mark of ours stands but on what is being deleted, since nothing
// may be done any more.
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
