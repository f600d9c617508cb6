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

// Labels and annotations of the objects that store the memory. The kind of the content is in the
// label and the pool in the annotation, because the name of a pool may be longer than the value of
// a label.
const (
	memoryLabel      = "spotter.dev/memory"
	memoryPool       = "spotter.dev/pool"
	memoryKey        = "memory"
	memoryHead       = "head"
	memoryBook       = "pool"
	memoryExperience = "experience"
	memoryPrefix     = "spotter-memory"
)

// MemoryName is the name of the ConfigMap that is written at every step.
const MemoryName = memoryPrefix + "-" + memoryHead

// fieldOwner is the field manager of all writes.
const fieldOwner = client.FieldOwner("spotter")

// A Store stores the memory in its own ConfigMaps: one for the cluster, one for each pool and one
// for the observations in markets. Each is updated at the version that was last read or written. A
// version that another client has written reveals another leader, and the result is
// [ErrSuperseded].
//
// Objects of deleted pools are kept for [goneMax]: the pool may be created again, and its savings
// remain valid.
type Store struct {
	api       packed.API
	namespace string
	ledger    Ledger // nil if the memory of budgets is not stored

	head  head
	books map[string]*poolBook // by pool

	// dropped contains the pools whose objects were deleted since the process started.
	dropped map[string]bool

	// kept contains the objects by name. Only one goroutine at a time writes each.
	kept  map[string]*packed.Object
	every time.Duration
}

// newStore returns a store. It reads nothing before Load.
func newStore(cfg *Config, parts *Parts) *Store {
	return &Store{api: packed.API{Client: cmp.Or(parts.Urgent, parts.Client), Reader: parts.Reader, Key: memoryKey},
		namespace: cfg.Namespace, ledger: parts.Ledger, every: cfg.ExperienceEvery}
}

// Load reads the state that the previous leader saved, from the API server and not from a cache. It
// returns the memory of the policy and the encoded observations in markets.
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

// book returns the state of a pool, which may be changed before the next save.
func (t *Store) book(pool string) *poolBook {
	b := t.books[pool]
	if b == nil {
		b = &poolBook{Format: memoryFormat}
		t.books[pool] = b
	}
	return b
}

// object returns an object of the memory. It creates the entry, but not the ConfigMap, if it does
// not exist.
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

// saveKey creates the key of the drain annotations if it does not exist, and saves it at once: a
// notice may cause an annotation before the first step.
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

// Save writes the changes: the head first, and then the state of all pools concurrently. Changes of
// figures alone, such as savings, are written less often, to spare the API server.
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

// goneMax is how long the state of a deleted pool is kept.
const goneMax = 90 * 24 * time.Hour

// forget records which pools no longer exist at now, and drops the state of pools that have been
// gone for more than [goneMax].
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

// drop deletes the stored state of a pool, unless another client has written it.
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

// saveBooks writes the state of all pools. It waits for all writes and returns the first error in
// the order of the pools' names.
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

// saveBook writes the state of a pool if it contains a change that must be stored before an action,
// or if its figures are due. A pool that is not active is never changed, and its policy may plan
// the same again at every step. So only the figures since the last save are lost when the process
// ends.
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

// SaveExperience writes the observations in markets.
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

// conflict returns [ErrSuperseded] for an error that reports a conflicting write: only a leader
// writes these objects.
func conflict(err error) error {
	if packed.IsConflict(err) {
		return errors.Join(ErrSuperseded, err)
	}
	return err
}

// memoryName returns the name of an object. It contains the hash of the pool's name, since that may
// be as long as the name of a ConfigMap.
func memoryName(kind, pool string) string {
	if pool == "" {
		return memoryPrefix + "-" + kind
	}
	sum := sha256.Sum256([]byte(pool))
	return memoryPrefix + "-" + kind + "-" + hex.EncodeToString(sum[:8])
}
