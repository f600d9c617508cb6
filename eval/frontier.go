package eval

import (
	"slices"
	"strings"
)

// fixedMix is the prefix of policies with a fixed Spot share.
const fixedMix = "static:share="

// Frontier returns the results in g of choosing nothing but a fixed Spot share. mixes are the
// indexes in Config.Policies of the fixed mixes, in order, and best is the index of the one with
// the highest median savings of those that comply with the manifests. The distance of a policy from
// best is the value of its other decisions. ok is false if there are fewer than two fixed mixes, or
// if none of them has a result and complies with the manifests.
func (r *Report) Frontier(g *Group) (mixes []int, best int, ok bool) {
	for p, name := range r.Config.Policies {
		if strings.HasPrefix(name, fixedMix) {
			mixes = append(mixes, p)
		}
	}
	best = r.firstOf(g, func(p int) bool { return slices.Contains(mixes, p) })
	return mixes, best, len(mixes) > 1 && best >= 0
}
