package live

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spotter-dev/spotter/policy"
)

// memoryMax bounds one compressed object of memory. The API server stores a mebibyte per object,
// and other fields need the rest.
const memoryMax = 512 << 10

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

// pack writes v as compressed JSON, with the same bytes for the same value.
func pack(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unpackMax bounds the unpacked size, so that an object written by another client cannot exhaust
// the memory of the process.
const unpackMax = 64 << 20

// unpack reads what pack wrote.
func unpack(data []byte, v any) error {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(z, unpackMax))
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
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
		data, err := pack(b)
		if err != nil {
			return nil, fmt.Errorf("memory of pool %s: %w", b.Memory.Name, err)
		}
		if len(data) <= memoryMax {
			return data, nil
		}
	}
	return nil, fmt.Errorf("memory of pool %s exceeds the %d bytes that its object may hold", b.Memory.Name, memoryMax)
}

// fold counts all namespaces as one.
func (b *Savings) fold() {
	var all Account
	for i := range b.Namespaces {
		all.add(b.Namespaces[i].Account)
	}
	b.Namespaces = []NamespaceAccount{{Name: otherNamespaces, Account: all}}
}
