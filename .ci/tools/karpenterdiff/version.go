package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spotter-dev/spotter/sim/karpenter"
)

// version is that of the Karpenter that is linked. What its API has otherwise than that of
// other versions is behind build tags, as karpenter113 for 1.13.
var version = linkedVersion()

func linkedVersion() karpenter.Version {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "sigs.k8s.io/karpenter" {
			m = cmp.Or(m.Replace, m) // where an older one takes the place of what Spotter requires
			var minor karpenter.Version
			if _, err := fmt.Sscanf(m.Version, "v1.%d.", &minor); err != nil {
				panic(fmt.Sprintf("karpenterdiff: %s has version %q", m.Path, m.Version))
			}
			return minor
		}
	}
	panic("karpenterdiff: no Karpenter is linked")
}
