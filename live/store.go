package live

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

// The marks on the objects of the memory. The kind of an object's content is in the label, and its
// pool in the annotation: the name of a pool may be longer than a label's value.
const (
	memoryLabel      = "spotter.dev/memory"
	memoryPool       = "spotter.dev/pool"
	memoryKey        = "memory"
	memoryHead       = "head"
	memoryBook       = "pool"
	memoryExperience = "experience"
	memoryPrefix     = "spotter-memory"
)

// MemoryName names the ConfigMap that is written at every step.
const MemoryName = memoryPrefix + "-" + memoryHead

// fieldOwner is under which name fields are written.
const fieldOwner = client.FieldOwner("spotter")

// A Store keeps the memory in ConfigMaps of its own: one for the cluster, one for each pool and one
// for the observations of markets. Each is updated at the version that was read or written last. A
// version written by another client shows another leader, and the result is [ErrSuperseded].
//
// Objects of pools that are gone stay for [goneMax]: the pool may come back, and what it
// saved was saved.
type Store struct {
	api       packed.API
	namespace string
	ledger    Ledger // nil if budgets have no memory

	head  head
	books map[string]*poolBook // by pool

	// dropped are the pools whose objects were deleted since the process started.
	dropped map[string]bool

	// kept are the objects by name. Each is written by one goroutine at a time.
	kept  map[string]*packed.Object
	every time.Duration
}

// newStore returns a store that has read nothing yet.
func newStore(cfg *Config, parts *Parts) *Store {
	return &Store{api: packed.API{Client: cmp.Or(parts.Urgent, parts.Client), Reader: parts.Reader, Key: memoryKey},
		namespace: cfg.Namespace, ledger: parts.Ledger, every: cfg.ExperienceEvery}
}

// Load reads what the leader before this one saved, from the API server and not
// from a cache, and returns the memory of the policy and what was met in the
// markets.
func (t *Store) Load(ctx context.Context) (policy.Memory, []byte, error) {
	t.head, t.books, t.dropped = head{Format: memoryFormat}, map[string]*poolBook{}, map[string]bool{}
	t.kept = map[string]*packed.Object{}
	var list corev1.ConfigMapList
	if err := t.api.Reader.List(ctx, &list, client.InNamespace(t.namespace), client.HasLabels{memoryLabel}); err != nil {
		return policy.Memory{}, nil, fmt.Errorf("reading the memory in namespace %s: %w", t.namespace, err)
	}
	var experience []byte
	for i := range list.Items {
		x := &list.Items[i]
		pool := x.Annotations[memoryPool]
		data := t.api.Read(t.object(x.Labels[memoryLabel], pool), x)
		var err error
		switch x.Labels[memoryLabel] {
		case memoryHead:
			if err = packed.Unpack(data, packed.ReadMax, &t.head); err == nil {
				err = packed.CheckFormat(t.head.Format, memoryFormat)
			}
		case memoryBook:
			err = t.readBook(x, data)
		case memoryExperience:
			experience = data
		}
		if err != nil {
			return policy.Memory{}, nil, fmt.Errorf("memory in ConfigMap %s/%s: %w", x.Namespace, x.Name, err)
		}
	}
	m := policy.Memory{Decisions: t.head.Decisions}
	for _, b := range t.books {
		if b.Memory.Name != "" {
			m.Pools = append(m.Pools, b.Memory)
		}
	}
	slices.SortFunc(m.Pools, func(a, b policy.PoolMemory) int { return cmp.Compare(a.Name, b.Name) })
	if t.ledger != nil {
		var err error
		if m.Budgets, err = t.ledger.Load(ctx); err != nil {
			return policy.Memory{}, nil, fmt.Errorf("reading the ledgers of budgets: %w", err)
		}
	}
	return m, experience, nil
}

func (t *Store) readBook(x *corev1.ConfigMap, data []byte) error {
	b := &poolBook{}
	if err := packed.Unpack(data, packed.ReadMax, b); err != nil {
		return err
	}
	if err := packed.CheckFormat(b.Format, memoryFormat); err != nil {
		return err
	}
	name := x.Annotations[memoryPool]
	if name == "" || memoryName(memoryBook, name) != x.Name {
		return fmt.Errorf("annotation %s is %q, which does not match its name", memoryPool, name)
	}
	t.books[name] = b
	return nil
}

// book returns what is remembered of a pool, to be changed before the next save.
func (t *Store) book(pool string) *poolBook {
	b := t.books[pool]
	if b == nil {
		b = &poolBook{Format: memoryFormat}
		t.books[pool] = b
	}
	return b
}

// object returns an object of the memory, to be written.
func (t *Store) object(kind, pool string) *packed.Object {
	name := memoryName(kind, pool)
	o := t.kept[name]
	if o == nil {
		o = &packed.Object{Meta: metav1.ObjectMeta{Namespace: t.namespace, Name: name,
			Labels: map[string]string{memoryLabel: kind}}}
		if pool != "" {
			o.Meta.Annotations = map[string]string{memoryPool: pool}
		}
		t.kept[name] = o
	}
	return o
}

// saveKey creates the key of the marks of drains if it does not exist, and saves it at once: a
// notice causes a node to be marked before the first step.
func (t *Store) saveKey(ctx context.Context) error {
	if len(t.head.Key) > 0 {
		return nil
	}
	t.head.Key = drain.NewKey()
	return t.saveHead(ctx)
}

func (t *Store) saveHead(ctx context.Context) error {
	data, err := packed.Pack(&t.head)
	if err != nil {
		return err
	}
	if len(data) > packed.Max {
		return fmt.Errorf("memory of the cluster is %d bytes, above %d", len(data), packed.Max)
	}
	return t.write(ctx, t.object(memoryHead, ""), data)
}

// Save writes what has changed: the head first, and then the books of the pools side by
// side. Of what only counts, such as savings, it keeps the API server free for a while.
func (t *Store) Save(ctx context.Context, m *policy.Memory) error { return t.save(ctx, m, false) }

func (t *Store) save(ctx context.Context, m *policy.Memory, figures bool) error {
	t.head.Decisions = m.Decisions
	if err := t.saveHead(ctx); err != nil {
		return err
	}
	for i := range m.Pools {
		if name := m.Pools[i].Name; !t.dropped[name] {
			t.book(name).Memory = m.Pools[i]
		}
	}
	if err := t.saveBooks(ctx, figures); err != nil {
		return err
	}
	if t.ledger == nil {
		return nil
	}
	if err := t.ledger.Save(ctx, m.Budgets); err != nil {
		return fmt.Errorf("saving the ledgers of budgets: %w", conflict(err))
	}
	return nil
}

// goneMax is for how long what is remembered of a deleted pool is kept.
const goneMax = 90 * 24 * time.Hour

// forget notes which pools are gone at now, and drops what is remembered of those that have been for [goneMax].
func (t *Store) forget(ctx context.Context, pools []policy.Pool, now policy.Time) error {
	exists := make(map[string]bool, len(pools))
	for i := range pools {
		exists[pools[i].Name] = true
		delete(t.dropped, pools[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.books)) {
		b := t.books[name]
		switch {
		case exists[name]:
			b.Gone = 0
		case b.Gone == 0:
			b.Gone = now
		case now.Sub(b.Gone) > goneMax:
			if err := t.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop deletes what is remembered of a pool, unless it was written since.
func (t *Store) drop(ctx context.Context, pool string) error {
	o := t.object(memoryBook, pool)
	if err := t.api.Delete(ctx, o); err != nil {
		return fmt.Errorf("deleting ConfigMap %s/%s of a pool that is gone: %w", t.namespace, o.Meta.Name, conflict(err))
	}
	delete(t.books, pool)
	delete(t.kept, o.Meta.Name)
	t.dropped[pool] = true
	return nil
}

// saveBooks writes the books of all pools, and returns the error of the first by name
// once all have ended.
func (t *Store) saveBooks(ctx context.Context, figures bool) error {
	names := slices.Sorted(maps.Keys(t.books))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		o := t.object(memoryBook, name)
		all.Go(func() { errs[i] = t.saveBook(ctx, name, o, figures) })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// saveBook writes the book of a pool if a change must be known before an action, or if its figures
// are due. A pool that is not active is never changed, and its policy may plan the same again at
// every step, so only the figures since the last save are lost with the process.
func (t *Store) saveBook(ctx context.Context, pool string, o *packed.Object, figures bool) error {
	b := t.books[pool]
	known := poolBook{Active: b.Active}
	if b.Active {
		known.Memory, known.Ramp = b.Memory, b.Ramp
	}
	plain, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("memory of pool %s: %w", pool, err)
	}
	matter, now := string(plain), t.head.Metered.Std()
	if !figures && !o.Due(matter, now, t.every) {
		return nil
	}
	data, err := packBook(b)
	if err != nil {
		return err
	}
	if err := t.write(ctx, o, data); err != nil {
		return err
	}
	o.Saved(matter, now)
	return nil
}

// SaveExperience writes what was met in the markets.
func (t *Store) SaveExperience(ctx context.Context, data []byte) error {
	if len(data) > packed.Max {
		return fmt.Errorf("the experience of markets is %d bytes, above %d", len(data), packed.Max)
	}
	return t.write(ctx, t.object(memoryExperience, ""), data)
}

func (t *Store) write(ctx context.Context, o *packed.Object, data []byte) error {
	if err := t.api.Write(ctx, o, data); err != nil {
		return fmt.Errorf("saving ConfigMap %s/%s: %w", t.namespace, o.Meta.Name, conflict(err))
	}
	return nil
}

// conflict returns [ErrSuperseded] for a response that reports a conflicting write: only a leader
// writes these objects.
func conflict(err error) error {
	if packed.IsConflict(err) {
		return errors.Join(ErrSuperseded, err)
	}
	return err
}

// memoryName returns the name of an object. The name of a pool may be as long as
// that of a ConfigMap, so that the object is named for its hash.
func memoryName(kind, pool string) string {
	if pool == "" {
		return memoryPrefix + "-" + kind
	}
	sum := sha256.Sum256([]byte(pool))
	return memoryPrefix + "-" + kind + "-" + hex.EncodeToString(sum[:8])
}
