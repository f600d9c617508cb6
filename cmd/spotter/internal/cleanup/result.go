package cleanup

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// A result is the result of a cleanup.
type result struct {
	// DryRun reports that the marks were only listed and not removed.
	DryRun  bool            `json:"dry_run"`
	Objects []cleanedObject `json:"objects"`

	// BuyNothing are the NodePools that buy nothing until a user sets their limits.
	BuyNothing []string `json:"node_pools_that_buy_nothing"`

	// complete reports that every kind of object was read and, except in a dry run, every mark
	// removed.
	complete bool
}

// A cleanedObject is an object whose marks of Spotter were removed, or in a dry run would be.
type cleanedObject struct {
	Kind  string   `json:"kind"`
	Name  string   `json:"name"` // namespace/name for namespaced objects
	Marks []string `json:"marks"`
}

func (r *result) write(out io.Writer) error {
	w := bufio.NewWriter(out)
	verb := "had"
	if r.DryRun {
		verb = "has"
	}
	for _, o := range r.Objects {
		fmt.Fprintf(w, "%s %s %s: %s\n", o.Kind, o.Name, verb, strings.Join(o.Marks, ", "))
	}
	for _, name := range r.BuyNothing {
		fmt.Fprintf(w, "NodePool %s buys nothing, since its markets were being narrowed: set its spec.limits\n", name)
	}
	if len(r.Objects) == 0 && r.complete { // if it is not complete, an error lists what is missing
		fmt.Fprintln(w, "no object carries a mark of Spotter")
	}
	return w.Flush()
}
