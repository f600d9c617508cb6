package eval

import (
	"slices"
	"strings"
)

// fixedMix is how the fixed mixes begin.
const fixedMix = "static:share="

// Frontier returns what can be had in g by choosing nothing but how much to put on
// spot: the places in Config.Policies of the fixed mixes, in their order, and of
// the one that saves most in the median run among those that keep the manifests.
// What a policy knows beyond that shows as its distance from the best of them. It
// is false with fewer than two fixed mixes, or where none of them ran and kept the
// manifests.
func (r *Report) Frontier(g *Group) (mixes []int, best int, ok bool) {
	for p, name := range r.Config.Policies {
		if strings.HasPrefix(name, fixedMix) {
			mixes = append(mixes, p)
		}
	}
	best = r.firstOf(g, func(p int) bool { return slices.Contains(mixes, p) })
	return mixes, best, len(mixes) > 1 && best >= 0
}
