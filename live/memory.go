package live

import (
	"fmt"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// memoryFormat is the version of what is written. What a later program wrote is
// refused and not half read.
const memoryFormat = 1

// A poolBook is all that is remembered of one pool.
type poolBook struct {
	Format  int               `json:"format"`
	Memory  policy.PoolMemory `json:"memory"`
	Ramp    ramp              `json:"ramp"`
	Active  bool              `json:"active,omitempty"` // the pool was active at the last step
	Shadow  shadow            `json:"shadow"`
	Savings Savings           `json:"savings"`

	// Gone is when the pool was first found to be deleted; zero while it exists.
	Gone policy.Time `json:"gone,omitempty"`

	// Summed is what of the savings the weekly notifications have had.
	Summed Account `json:"summed,omitzero"`
}

// A head is what is remembered of the whole cluster. It is written at every step
// and first, so that of two leaders one is refused before anything of it is kept.
type head struct {
	Format    int    `json:"format"`
	Decisions uint64 `json:"decisions"`

	// Stopped says that the kill switch was on when it was last seen.
	Stopped bool `json:"stopped,omitempty"`

	// Key is what the marks of drains are sealed with: only marks that a controller with
	// this memory wrote are believed.
	Key []byte `json:"key,omitempty"`

	// Summed is when what was saved was last summed up for a weekly notification.
	Summed policy.Time `json:"summed,omitempty"`

	// Writer is who wrote it, so that no two leaders write the same bytes.
	Writer string `json:"writer"`

	// Metered is when the last snapshot was taken, Charged the prices then.
	Metered policy.Time             `json:"metered,omitempty"`
	Charged map[string]policy.Money `json:"charged,omitempty"`
}

// packBook writes the book of a pool in the space that there is. What is too large
// loses what can be done without, the least important first; what is then still
// too large is an error, since acting without a memory could do one thing twice.
func packBook(b *poolBook) ([]byte, error) {
	for _, drop := range []func(*poolBook){
		func(*poolBook) {},
		func(b *poolBook) { b.Shadow.Moves = nil },
		func(b *poolBook) { b.Savings.fold() },
		func(b *poolBook) { b.Memory.Idle = nil },
	} {
		drop(b)
		data, err := packed.Pack(b)
		if err != nil {
			return nil, fmt.Errorf("memory of pool %s: %w", b.Memory.Name, err)
		}
		if len(data) <= packed.Max {
			return data, nil
		}
	}
	return nil, fmt.Errorf("memory of pool %s exceeds the %d bytes that its object may hold", b.Memory.Name, packed.Max)
}

// fold counts all namespaces as one.
func (b *Savings) fold() {
	var all Account
	for i := range b.Namespaces {
		all.add(b.Namespaces[i].Account)
	}
	b.Namespaces = []NamespaceAccount{{Name: otherNamespaces, Account: all}}
}
