package placement

import "github.com/spotter-dev/spotter/policy"

// A setKind says how the values of a label are bounded.
type setKind uint8

const (
	// unbounded: nothing is asked, the label may be absent.
	unbounded setKind = iota

	// oneOf: the value is one of the set; with an empty set there is no label.
	oneOf

	// noneOf: any value but some, or no label; the set holds what is allowed of the
	// known ones.
	noneOf

	// present: the label is there, its value is bounded by the set at most.
	present
)

// A keysets holds the requirements on every topology key but the host name: a kind and the set of
// its domains. It does what Requirements of pkg/scheduling/requirements.go of Karpenter 1.14.1 do,
// for keys of which all values are known.
type keysets struct {
	kind []setKind // by key
	bits []uint64  // by key at layout.from, domain by domain
}

// A layout says where the sets of the keys are stored.
type layout struct {
	from   []int32 // by key, one more than keys
	values int     // in all: what the layout was made for
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

// allows reports whether domain d of key is not excluded.
func (s *keysets) allows(l *layout, key, d int32) bool {
	return s.kind[key] == unbounded || s.of(l, key).has(d)
}

// single returns the domain of key where but one is left, else -1.
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

// narrow keeps what x allows too.
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

// require narrows s by a requirement, where its key is one of those.
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

// meets reports whether some node that s allows meets x. A label that s does not bound may be
// absent: that meets x only if x requires no value.
func (s *keysets) meets(l *layout, x *keysets) bool {
	for key, kind := range x.kind {
		own, set := s.kind[key], x.of(l, int32(key))
		switch {
		case kind == unbounded || own >= noneOf && kind >= noneOf:
		case kind == noneOf || kind == oneOf && set.empty(): // no label will do, too
			if own == oneOf && !s.of(l, int32(key)).empty() && !s.of(l, int32(key)).meets(set) {
				return false
			}
		case own == unbounded || !s.of(l, int32(key)).meets(set):
			return false
		}
	}
	return true
}
