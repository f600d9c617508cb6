package gpubudget

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// The marks on the objects of ledgers. The name of a budget may be longer than a label's value, so
// it is in an annotation.
const (
	ledgerLabel  = "spotter.dev/ledger"
	ledgerBudget = "spotter.dev/budget"
	ledgerKey    = "ledger"
)

// ledgerMax bounds one compressed ledger: an API server stores a mebibyte per object, and other
// fields need the rest. A year of hours is far below.
const ledgerMax = 512 << 10

// plainMax bounds what a ledger is unpacked to, so that no object fills the memory.
const plainMax = 16 << 20

// ledgerFormat is the version of what is written.
const ledgerFormat = 1

// A page is a ledger as it is written.
type page struct {
	Format int                 `json:"format"`
	Memory policy.BudgetMemory `json:"memory"`
}

// A ledger is what is known of the object that keeps the memory of a budget.
type ledger struct {
	object *corev1.ConfigMap // as last read or written; nil if it does not exist
	tried  []byte            // what was sent without an answer

	// at is when it was written last, and matter what of that must not be kept back.
	at     time.Time
	matter string
}

// writers bounds how many objects of budgets are written side by side.
const writers = 8

// A ledgerStore keeps the memory of each budget in an object of its own. mu is not held
// while one is written.
type ledgerStore struct {
	cfg    *Config
	client client.Client
	reader client.Reader

	// writing is held while ledgers, by budget, are written.
	writing  *semaphore.Weighted
	byBudget map[string]*ledger

	mu     sync.Mutex
	memory []policy.BudgetMemory // as last given to Save, which is never written
	lost   error                 // the conflict with another controller
}

// Load reads all ledgers from the API server, ascending by the names of budgets.
func (k *Enforcer) Load(ctx context.Context) ([]policy.BudgetMemory, error) {
	return k.ledgers.load(ctx)
}

func (st *ledgerStore) load(ctx context.Context) ([]policy.BudgetMemory, error) {
	done, err := st.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var list corev1.ConfigMapList
	if err := st.reader.List(ctx, &list, client.InNamespace(st.cfg.Namespace), client.HasLabels{ledgerLabel}); err != nil {
		return nil, fmt.Errorf("reading ledgers in namespace %s: %w", st.cfg.Namespace, err)
	}
	clear(st.byBudget)
	var all []policy.BudgetMemory
	for i := range list.Items {
		x := &list.Items[i]
		m, err := unpack(x.BinaryData[ledgerKey])
		if err == nil && (m.Name != x.Annotations[ledgerBudget] || ledgerName(m.Name) != x.Name) {
			err = fmt.Errorf("it belongs to budget %q, but annotation %s is %q", m.Name, ledgerBudget,
				x.Annotations[ledgerBudget])
		}
		if err != nil {
			return nil, fmt.Errorf("ledger in ConfigMap %s/%s: %w", x.Namespace, x.Name, err)
		}
		st.byBudget[m.Name] = &ledger{object: x}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b policy.BudgetMemory) int { return cmp.Compare(a.Name, b.Name) })
	st.mu.Lock()
	defer st.mu.Unlock()
	st.memory, st.lost = all, nil
	return slices.Clone(all), nil
}

// Save takes what is remembered of all budgets, and writes nothing: [Enforcer.Report]
// writes what has changed between the steps, and whatever is enforced for a budget has its
// ledger written before. It returns the conflict, if there was one since, that says that
// another controller writes the ledgers.
func (k *Enforcer) Save(_ context.Context, all []policy.BudgetMemory) error {
	return k.ledgers.save(all)
}

func (st *ledgerStore) save(all []policy.BudgetMemory) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	lost := st.lost
	st.memory, st.lost = slices.Clone(all), nil
	return lost
}

// Flush writes all ledgers that have changed. A controller that ends calls it.
func (k *Enforcer) Flush(ctx context.Context) error { return k.ledgers.saveAll(ctx, true) }

// saveAll writes the ledgers that must be written or are due, in parallel, and deletes those of
// budgets that no longer exist. It returns all errors.
func (st *ledgerStore) saveAll(ctx context.Context, now bool) error {
	done, err := st.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	all := st.remembered()
	var gone []string
	for name := range st.byBudget {
		if findMemory(all, name) == nil {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	ledgers := make([]*ledger, len(all))
	for i := range all {
		ledgers[i] = st.of(all[i].Name)
	}
	err = sideBySide(len(all)+len(gone), func(i int) error {
		if i < len(all) {
			return st.saveOne(ctx, ledgers[i], &all[i], now)
		}
		return st.drop(ctx, gone[i-len(all)], st.byBudget[gone[i-len(all)]])
	})
	for _, name := range gone {
		if st.byBudget[name].object == nil {
			delete(st.byBudget, name)
		}
	}
	return err
}

// saveBefore writes the ledger of a budget before something is done for it.
func (st *ledgerStore) saveBefore(ctx context.Context, budget string) error {
	m := findMemory(st.remembered(), budget)
	if m == nil {
		return nil
	}
	done, err := st.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	return st.saveOne(ctx, st.of(budget), m, false)
}

// lock waits until no other goroutine writes ledgers. It is held until done is called.
func (st *ledgerStore) lock(ctx context.Context) (done func(), err error) {
	if err := st.writing.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting to write ledgers: %w", err)
	}
	return func() { st.writing.Release(1) }, nil
}

// of returns what is known of the object of a budget.
func (st *ledgerStore) of(budget string) *ledger {
	if st.byBudget[budget] == nil {
		st.byBudget[budget] = &ledger{}
	}
	return st.byBudget[budget]
}

// noteLost remembers a conflict for [Enforcer.Save], and returns err.
func (st *ledgerStore) noteLost(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.lost = err
	}
	return err
}

// sideBySide calls f with 0…n-1, some at a time, and returns the errors together.
func sideBySide(n int, f func(int) error) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(context.Background(), writers, n, func(i int) { errs[i] = f(i) })
	return errors.Join(errs...)
}

// saveOne writes the ledger of one budget, if it must be or is due.
func (st *ledgerStore) saveOne(ctx context.Context, l *ledger, m *policy.BudgetMemory, now bool) error {
	matter, err := matterOf(m)
	if err != nil {
		return err
	}
	if !now && l.matter == matter && st.cfg.Clock.Since(l.at) < st.cfg.SaveEvery {
		return nil
	}
	data, err := pack(m)
	if err != nil {
		return err
	}
	if l.object == nil || !bytes.Equal(l.object.BinaryData[ledgerKey], data) {
		if err := st.send(ctx, l, m.Name, data); err != nil {
			return st.noteLost(fmt.Errorf("saving the ledger of %s: %w", m.Name, err))
		}
	}
	l.at, l.matter = st.cfg.Clock.Now(), matter
	return nil
}

// matterOf returns what of a memory decides what is done, and must be saved before
// it is.
func matterOf(m *policy.BudgetMemory) (string, error) {
	x := *m
	x.Buckets, x.Counted, x.Used, x.Cost, x.DevicePrice = nil, 0, 0, 0, 0
	data, err := json.Marshal(x)
	return string(data), err
}

// send writes data into the object of a budget. An object that already holds the data that was sent
// last was written by this controller, though the response was lost.
func (st *ledgerStore) send(ctx context.Context, l *ledger, budget string, data []byte) error {
	err := st.put(ctx, l, budget, data)
	if l.tried != nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
		var there corev1.ConfigMap
		if readErr := st.reader.Get(ctx, client.ObjectKey{Namespace: st.cfg.Namespace, Name: ledgerName(budget)},
			&there); readErr != nil {
			return fmt.Errorf("reading it after a conflict: %w", readErr)
		}
		if bytes.Equal(there.BinaryData[ledgerKey], l.tried) {
			l.object = &there
			err = st.put(ctx, l, budget, data)
		}
	}
	switch {
	case err == nil:
		l.tried = nil
	case apierrors.IsNotFound(err):
		l.object = nil // it was deleted; the next call creates it again
	case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
		l.tried = data
	}
	return err
}

// put makes the object of a budget, or updates it at the version that is known: a
// conflict says that another controller wrote it.
func (st *ledgerStore) put(ctx context.Context, l *ledger, budget string, data []byte) error {
	next := l.object.DeepCopy()
	write := func() error { return st.client.Update(ctx, next, fieldOwner) }
	if next == nil {
		next = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: st.cfg.Namespace, Name: ledgerName(budget),
			Labels: map[string]string{ledgerLabel: "budget"}, Annotations: map[string]string{ledgerBudget: budget},
		}}
		write = func() error { return st.client.Create(ctx, next, fieldOwner) }
	}
	next.BinaryData = map[string][]byte{ledgerKey: data}
	err := write()
	if err == nil {
		l.object = next
	}
	return err
}

// drop deletes the ledger of a budget that no longer exists. That of a budget which is temporarily
// invalid stays.
func (st *ledgerStore) drop(ctx context.Context, budget string, l *ledger) error {
	if l.object == nil {
		return nil
	}
	namespace, name, _ := strings.Cut(budget, "/")
	err := st.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.GPUBudget{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("checking whether budget %s was deleted: %w", budget, err)
	}
	err = st.client.Delete(ctx, l.object, client.Preconditions{UID: &l.object.UID,
		ResourceVersion: &l.object.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return st.noteLost(fmt.Errorf("deleting the ledger of %s: %w", budget, err))
	}
	l.object = nil
	return nil
}

// ledgerName returns the name of the object of a budget.
func ledgerName(budget string) string {
	sum := sha256.Sum256([]byte(budget))
	return "spotter-ledger-" + hex.EncodeToString(sum[:10])
}

func pack(m *policy.BudgetMemory) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(page{ledgerFormat, *m}); err != nil {
		return nil, fmt.Errorf("compressing the ledger of %s: %w", m.Name, err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing the ledger of %s: %w", m.Name, err)
	}
	if b.Len() > ledgerMax {
		return nil, fmt.Errorf("the ledger of %s is %d bytes, above %d", m.Name, b.Len(), ledgerMax)
	}
	return b.Bytes(), nil
}

func unpack(data []byte) (policy.BudgetMemory, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("decompressing: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, plainMax))
	if err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("decompressing: %w", err)
	}
	var p page
	if err := json.Unmarshal(plain, &p); err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("reading: %w", err)
	}
	if p.Format != ledgerFormat {
		return policy.BudgetMemory{}, fmt.Errorf("format %d is unknown: a later version wrote it", p.Format)
	}
	return p.Memory, nil
}

// remembered returns what was last given to Save, which is only read.
func (st *ledgerStore) remembered() []policy.BudgetMemory {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.memory
}
