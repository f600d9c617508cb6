package scratch

// Lists is a set of lists of items. Items are numbered from 0, and each is in at most one list.
// Moving an item takes constant time. The zero value is empty.
type Lists struct {
	first []int32 // by list: the first item plus 1
	items []link
}

// A link is the position of an item: in is its list plus 1; next and prev are the adjacent items of
// the list plus 1. A field is 0 if there is no such list or item.
type link struct{ in, next, prev int32 }

// Clear empties all lists.
func (x *Lists) Clear() { x.first, x.items = x.first[:0], x.items[:0] }

// Of returns the list of an item, or -1 if it is in no list.
func (x *Lists) Of(item int) int {
	if item >= len(x.items) {
		return -1
	}
	return int(x.items[item].in) - 1
}

// Put moves an item to a list. If list is negative, the item is removed from its list.
func (x *Lists) Put(item, list int) {
	for len(x.items) <= item {
		x.items = append(x.items, link{})
	}
	at := &x.items[item]
	if at.in > 0 {
		if at.next > 0 {
			x.items[at.next-1].prev = at.prev
		}
		if at.prev > 0 {
			x.items[at.prev-1].next = at.next
		} else {
			x.first[at.in-1] = at.next
		}
	}
	if *at = (link{}); list < 0 {
		return
	}
	for len(x.first) <= list {
		x.first = append(x.first, 0)
	}
	if *at = (link{in: int32(list) + 1, next: x.first[list]}); at.next > 0 {
		x.items[at.next-1].prev = int32(item) + 1
	}
	x.first[list] = int32(item) + 1
}

// First returns the first item of a list, or -1 if the list is empty. The item that was added last
// is the first. Next returns the following items.
func (x *Lists) First(list int) int {
	if list >= len(x.first) {
		return -1
	}
	return int(x.first[list]) - 1
}

// Next returns the item after the given one in its list, or -1 if it is the last.
func (x *Lists) Next(item int) int { return int(x.items[item].next) - 1 }
