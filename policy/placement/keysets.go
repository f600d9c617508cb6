package placement

import "github.com/spotter-dev/spotter/policy"

// A setKind specifies how the values of a label are restricted.
type setKind uint8

const (
	// unbounded: any value is allowed, and the label may be absent.
	unbounded setKind = iota

	// oneOf: the value must be in the set. If the set is empty, the label must be absent.
	oneOf

	// noneOf: some values are excluded, and the label may be absent. The set contains the known
	// values that are allowed.
	noneOf

	// present: the label must exist. The set contains the known values that are allowed.
	present
)

// A keysets contains the requirements on every topology key except the host name: a kind and the
// set of allowed domains. It implements Requirements of pkg/scheduling/requirements.go of Karpenter
// 1.14.1 for keys whose values are all known.
type keysets struct {
	kind []setKind // by key
	bits []uint64  // sets by key, starting at layout.from, one bit per domain
}

// A layout contains the positions of the sets of the keys.
type layout struct {
	from   []int32 // start by key, and at the end the total length
	values int     // number of values when the layout was built
}

// layOut rebuilds the layout if keys or domains were added, and reports whether it did.
func (gt *groupTable) layOut() bool {
	values := len(gt.table.keys)
	for k := 1; k < len(gt.table.keys); k++ {
		values += len(gt.table.keys[k].values)
	}
	if l := &gt.layout; l.values == values && len(l.from) == len(gt.table.keys)+1 {
		return false
	}
	from, at := gt.layout.from[:0], int32(0)
	for k := range gt.table.keys {
		from = append(from, at)
		if k != keyHost {
			at += int32(len(gt.table.keys[k].values)+63) / 64
		}
	}
	gt.layout = layout{from: append(from, at), values: values}
	return true
}

func (l *layout) words() int { return int(l.from[len(l.from)-1]) }

func (l *layout) make() keysets {
	return keysets{make([]setKind, len(l.from)-1), make([]uint64, l.words())}
}

// of returns the set of key.
func (s *keysets) of(l *layout, key int32) bitset { return s.bits[l.from[key]:l.from[key+1]] }

// allows reports whether domain d of key is allowed.
func (s *keysets) allows(l *layout, key, d int32) bool {
	return s.kind[key] == unbounded || s.of(l, key).has(d)
}

// single returns the domain of key if only one is allowed, and -1 otherwise.
func (s *keysets) single(l *layout, key int32) int32 {
	if s.kind[key] != oneOf {
		return -1
	}
	set := s.of(l, key)
	d := set.next(0)
	if d >= 0 && set.next(d+1) >= 0 {
		return -1
	}
	return d
}

func (s *keysets) copyFrom(x *keysets) {
	copy(s.kind, x.kind)
	copy(s.bits, x.bits)
}

// narrow restricts s to what x allows too.
func (s *keysets) narrow(l *layout, x *keysets) {
	for key, kind := range x.kind {
		if kind != unbounded {
			s.narrowKey(l, int32(key), kind, x.of(l, int32(key)))
		}
	}
}

func (s *keysets) narrowKey(l *layout, key int32, kind setKind, set bitset) {
	own := s.of(l, key)
	if s.kind[key] == unbounded {
		s.kind[key] = kind
		copy(own, set)
		return
	}
	if kind < s.kind[key] {
		s.kind[key] = kind
	}
	own.and(set)
}

// require restricts s by a requirement if its key is a topology key.
func (gt *groupTable) require(s *keysets, r *policy.Requirement) {
	for key := 1; key < len(gt.table.keys); key++ {
		if gt.table.keys[key].name != r.Key {
			continue
		}
		values := gt.table.keys[key].values
		set := newBitset(len(values))
		for d, value := range values {
			if r.MetBy(value, true) {
				set.set(int32(d))
			}
		}
		kind := present
		switch r.Op {
		case policy.OpIn, policy.OpDoesNotExist:
			kind = oneOf
		case policy.OpNotIn:
			kind = noneOf
		}
		s.narrowKey(&gt.layout, int32(key), kind, set)
	}
}

// meets reports whether a node that s allows can satisfy x. A label that s does not restrict may be
// absent, which satisfies x only if x requires no value.
func (s *keysets) meets(l *layout, x *keysets) bool {
	for key, kind := range x.kind {
		own, set := s.kind[key], x.of(l, int32(key))
		switch {
		case kind == unbounded || own >= noneOf && kind >= noneOf:
		case kind == noneOf || kind == oneOf && set.empty(): // the label may be absent
			if own == oneOf && !s.of(l, int32(key)).empty() && !s.of(l, int32(key)).meets(set) {
				return false
			}
		case own == unbounded || !s.of(l, int32(key)).meets(set):
			return false
		}
	}
	return true
}
