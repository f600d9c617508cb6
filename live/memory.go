package live

import (
	"fmt"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// memoryFormat is the version of the stored format. Data of a later version is rejected as a whole.
const memoryFormat = 1

// A poolBook is the stored state of one pool.
type poolBook struct {
	Format  int               `json:"format"`
	Memory  policy.PoolMemory `json:"memory"`
	Ramp    ramp              `json:"ramp"`
	Active  bool              `json:"active,omitempty"` // the pool was active at the last step
	Shadow  shadow            `json:"shadow"`
	Savings Savings           `json:"savings"`

	// Gone is when the pool was first found to be deleted; zero while it exists.
	Gone policy.Time `json:"gone,omitempty"`

	// Summed is the part of the savings that weekly notifications have already reported.
	Summed Account `json:"summed,omitzero"`
}

// A head is the stored state of the whole cluster. It is written first in every step, so that of
// two leaders only one succeeds and stores anything.
type head struct {
	Format    int    `json:"format"`
	Decisions uint64 `json:"decisions"`

	// Stopped reports whether the kill switch was on when it was last read.
	Stopped bool `json:"stopped,omitempty"`

	// Key is the key that signs the annotations of drains: only annotations that a controller with
	// this key wrote are trusted.
	Key []byte `json:"key,omitempty"`

	// Summed is when savings were last reported in a weekly notification.
	Summed policy.Time `json:"summed,omitempty"`

	// Writer identifies the replica that wrote the head, so that no two leaders write the same
	// bytes.
	Writer string `json:"writer"`

	// Metered is the time of the last snapshot, and Charged are the prices at that time.
	Metered policy.Time             `json:"metered,omitempty"`
	Charged map[string]policy.Money `json:"charged,omitempty"`
}

// packBook encodes the state of a pool. If it exceeds the size limit, packBook removes dispensable
// data, the least important first. If it is still too large, that is an error, because a controller
// without its stored state might repeat an action.
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

// fold combines the accounts of all namespaces into one.
func (b *Savings) fold() {
	var all Account
	for i := range b.Namespaces {
		all.add(b.Namespaces[i].Account)
	}
	b.Namespaces = []NamespaceAccount{{Name: otherNamespaces, Account: all}}
}
