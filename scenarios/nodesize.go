package scenarios

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// size sets the allocatable resources of the types that NodePools buy, according to their node
// classes. A type with different allocatable resources in two pools is listed with the lesser ones,
// with which policies plan. Each node has those of its pool: see [BoundScenario.AllocatableOf].
func (x *selection) size(sc *Scenario) {
	x.sizes = make([]map[*policy.InstanceType]policy.Resources, len(sc.pools))
	lesser, first, differ := map[*policy.InstanceType]policy.InstanceType{}, map[*policy.InstanceType]int{}, map[[2]int]map[*policy.InstanceType]bool{}
	for i := range sc.pools {
		x.sizes[i] = map[*policy.InstanceType]policy.Resources{}
		kept := x.pools[i][:0]
		for _, k := range x.pools[i] {
			base := x.offers[k].t
			t := *base
			if own := sc.pools[i].own; own != nil && own.class != nil {
				own.class.nodes.Apply(&t)
			}
			if a := &t.Allocatable; a.CPU <= 0 || a.Memory <= 0 || a.Pods <= 0 {
				x.tooSmall = append(x.tooSmall, x.offers[k].series.Name())
				continue
			}
			kept = append(kept, k)
			x.sizes[i][base] = t.Allocatable
			was, seen := lesser[base]
			switch {
			case !seen:
				lesser[base], first[base] = t, i
				continue
			case x.sizes[first[base]][base] != t.Allocatable:
				pair := [2]int{first[base], i}
				if differ[pair] == nil {
					differ[pair] = map[*policy.InstanceType]bool{}
				}
				differ[pair][base] = true
			}
			was.Allocatable, was.Capacity = least(was.Allocatable, t.Allocatable), least(was.Capacity, t.Capacity)
			lesser[base] = was
		}
		x.pools[i] = kept
	}
	for base, t := range lesser {
		base.Allocatable, base.Capacity = t.Allocatable, t.Capacity
	}
	for a := range sc.pools {
		for b := range sc.pools {
			if types := differ[[2]int{a, b}]; types != nil {
				x.notes = append(x.notes,
					fmt.Sprintf("pools %s and %s leave different parts of %d instance types to pods: each node has its own, and policies plan purchases with the lesser",
						sc.pools[a].name, sc.pools[b].name, len(types)))
			}
		}
	}
}

// least returns the minimum of each resource.
func least(a, b policy.Resources) policy.Resources {
	return policy.Resources{CPU: min(a.CPU, b.CPU), Memory: min(a.Memory, b.Memory), Storage: min(a.Storage, b.Storage),
		GPU: min(a.GPU, b.GPU), Pods: min(a.Pods, b.Pods)}
}

// AllocatableOf returns the allocatable resources of a node of type t in a pool.
func (w *BoundScenario) AllocatableOf(pool policy.PoolID, t policy.TypeID) policy.Resources {
	if w.sizes != nil {
		if own, has := w.sizes[pool][t]; has {
			return own
		}
	}
	return w.Types[t].Allocatable
}

// keepSizes records the allocatable resources of each pool where they differ from those of the
// type.
func (w *BoundScenario) keepSizes(x *selection) {
	for i, sizes := range x.sizes {
		for base, own := range sizes {
			if own == base.Allocatable {
				continue
			}
			if w.sizes == nil {
				w.sizes = make([]map[policy.TypeID]policy.Resources, len(x.sizes))
			}
			if w.sizes[i] == nil {
				w.sizes[i] = map[policy.TypeID]policy.Resources{}
			}
			for t := range w.Types {
				if w.Types[t].Name == base.Name && w.Types[t].Provider == base.Provider {
					w.sizes[i][policy.TypeID(t)] = own
				}
			}
		}
	}
}
