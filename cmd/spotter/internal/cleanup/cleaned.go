package cleanup

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// A cleaned is the result of a cleanup.
type cleaned struct {
	// DryRun reports that the marks were only listed and not removed.
	DryRun  bool       `json:"dry_run"`
	Objects []unmarked `json:"objects"`

	// Stopped are the NodePools that buy nothing until a user sets their limits.
	Stopped []string `json:"node_pools_that_buy_nothing"`

	// whole reports whether every kind of object was read.
	whole bool
}

// An unmarked is an object that had marks of Spotter.
type unmarked struct {
	Kind  string   `json:"kind"`
	Name  string   `json:"name"` // namespace/name for namespaced objects
	Marks []string `json:"marks"`
}

func (c *cleaned) write(out io.Writer) error {
	w := bufio.NewWriter(out)
	verb := "had"
	if c.DryRun {
		verb = "has"
	}
	for _, o := range c.Objects {
		fmt.Fprintf(w, "%s %s %s: %s\n", o.Kind, o.Name, verb, strings.Join(o.Marks, ", "))
	}
	for _, name := range c.Stopped {
		fmt.Fprintf(w, "NodePool %s buys nothing, since it was being changed: set its spec.limits as you want them\n", name)
	}
	if len(c.Objects) == 0 && c.whole {
		fmt.Fprintln(w, "no object carries a mark of Spotter")
	}
	return w.Flush()
}
