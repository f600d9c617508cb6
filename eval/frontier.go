package eval

import "strings"

// fixedMix is how the fixed mixes begin.
const fixedMix = "static:share="

// Frontier returns what can be had in g by choosing nothing but how much to put on
// spot: the places in Config.Policies of the fixed mixes, in their order, and of
// the one that saves most in the median run among those that keep the manifests.
// What a policy knows beyond that shows as its distance from the best of them. It
// is false with fewer than two fixed mixes, or where none of them ran and kept the
// manifests.
func (r *Report) Frontier(g *Group) (mixes []int, best int, ok bool) {
	best = -1
	for p, name := range r.Config.Policies {
		if !strings.HasPrefix(name, fixedMix) {
			continue
		}
		mixes = append(mixes, p)
		s := g.Policies[p].Summary("net_savings_pct")
		if s.N > 0 && !g.Policies[p].Marked() && (best < 0 || s.Median > g.Policies[best].Summary("net_savings_pct").Median) {
			best = p
		}
	}
	return mixes, best, len(mixes) > 1 && best >= 0
}
