package scratch

// Lists hold items, numbered from 0 on, each in one list or none. To put an item elsewhere
// takes the same time however many there are. The zero value holds nothing.
type Lists struct {
	first []int32 // by list, 1 + an item
	items []link
}

// A link is where an item is: in the list 1 + of, or in none; next and prev are 1 + items
// of the list, 0 for none.
type link struct{ in, next, prev int32 }

// Clear empties all lists.
func (x *Lists) Clear() { x.first, x.items = x.first[:0], x.items[:0] }

// Of returns the list of an item, below zero for none.
func (x *Lists) Of(item int) int {
	if item >= len(x.items) {
		return -1
	}
	return int(x.items[item].in) - 1
}

// Put puts an item into a list, or below zero into none.
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

// First returns an item of a list, below zero where it has none, and Next the one after
// that: the one that was put there last comes first.
func (x *Lists) First(list int) int {
	if list >= len(x.first) {
		return -1
	}
	return int(x.first[list]) - 1
}

// Next returns the item of the list after this one, below zero for none.
func (x *Lists) Next(item int) int { return int(x.items[item].next) - 1 }
