package gpubudget

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// The label and annotation of ledger objects, and the key of their data. The name of a budget is in
// an annotation because it may be longer than the value of a label.
const (
	ledgerLabel  = "spotter.dev/ledger"
	ledgerBudget = "spotter.dev/budget"
	ledgerKey    = "ledger"
)

// ledgerFormat is the version of the format of ledgers.
const ledgerFormat = 1

// A page is the stored form of a ledger.
type page struct {
	Format int                 `json:"format"`
	Memory policy.BudgetMemory `json:"memory"`
}

// writers is the maximum number of objects that are written at the same time.
const writers = 8

// A ledgerStore stores the memory of each budget in its own object. mu is not held while an object
// is written.
type ledgerStore struct {
	cfg *Config
	api packed.API

	// writing is held while ledgers are written. byBudget contains their objects by budget.
	writing  *semaphore.Weighted
	byBudget map[string]*packed.Object

	mu     sync.Mutex
	memory []policy.BudgetMemory // argument of the last call of Save, never modified
	lost   error                 // the conflict with another controller
}

// Load reads all ledgers from the API server, ascending by name of the budget.
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
	if err := st.api.Reader.List(ctx, &list, client.InNamespace(st.cfg.Namespace), client.HasLabels{ledgerLabel}); err != nil {
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
		st.api.Read(st.of(m.Name), x)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b policy.BudgetMemory) int { return cmp.Compare(a.Name, b.Name) })
	st.mu.Lock()
	defer st.mu.Unlock()
	st.memory, st.lost = all, nil
	return slices.Clone(all), nil
}

// Save accepts the memory of all budgets, but writes nothing: [Enforcer.Report] writes the changes
// between the steps, and the ledger of a budget is written before any enforcement. Save returns the
// error of the last conflict since the previous call, which indicates that another controller
// writes the ledgers.
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

// Flush writes all ledgers that have changed. Call it before the controller ends.
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
	ledgers := make([]*packed.Object, len(all))
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
		if !st.byBudget[name].Exists() {
			delete(st.byBudget, name)
		}
	}
	return err
}

// saveBefore writes the ledger of a budget before the budget is enforced.
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

// lock waits until no other goroutine writes ledgers. The lock is held until done is called.
func (st *ledgerStore) lock(ctx context.Context) (done func(), err error) {
	if err := st.writing.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting to write ledgers: %w", err)
	}
	return func() { st.writing.Release(1) }, nil
}

// of returns the object of a budget's ledger. The caller must hold the lock.
func (st *ledgerStore) of(budget string) *packed.Object {
	if st.byBudget[budget] == nil {
		st.byBudget[budget] = &packed.Object{Meta: metav1.ObjectMeta{
			Namespace: st.cfg.Namespace, Name: ledgerName(budget),
			Labels: map[string]string{ledgerLabel: "budget"}, Annotations: map[string]string{ledgerBudget: budget},
		}}
	}
	return st.byBudget[budget]
}

// noteLost remembers a conflict for [Enforcer.Save], and returns err.
func (st *ledgerStore) noteLost(err error) error {
	if packed.IsConflict(err) {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.lost = err
	}
	return err
}

// sideBySide calls f for 0 to n-1, up to writers at the same time, and returns the joined errors.
func sideBySide(n int, f func(int) error) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(context.Background(), writers, n, func(i int) { errs[i] = f(i) })
	return errors.Join(errs...)
}

// saveOne writes the ledger of one budget, if now is true or it is due.
func (st *ledgerStore) saveOne(ctx context.Context, o *packed.Object, m *policy.BudgetMemory, now bool) error {
	matter, err := matterOf(m)
	if err != nil {
		return err
	}
	if !now && !o.Due(matter, st.cfg.Clock.Now(), st.cfg.SaveEvery) {
		return nil
	}
	data, err := pack(m)
	if err != nil {
		return err
	}
	if err := st.api.Write(ctx, o, data); err != nil {
		return st.noteLost(fmt.Errorf("saving the ledger of %s: %w", m.Name, err))
	}
	o.Saved(matter, st.cfg.Clock.Now())
	return nil
}

// matterOf returns the part of a memory that determines enforcement, and so must be saved before
// it.
func matterOf(m *policy.BudgetMemory) (string, error) {
	x := *m
	x.Buckets, x.Counted, x.Used, x.Cost, x.DevicePrice = nil, 0, 0, 0, 0
	data, err := json.Marshal(x)
	return string(data), err
}

// drop deletes the ledger of a budget that no longer exists. It keeps the ledger of a budget that
// is temporarily invalid.
func (st *ledgerStore) drop(ctx context.Context, budget string, o *packed.Object) error {
	if !o.Exists() {
		return nil
	}
	namespace, name, _ := strings.Cut(budget, "/")
	err := st.api.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.GPUBudget{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("checking whether budget %s was deleted: %w", budget, err)
	}
	if err := st.api.Delete(ctx, o); err != nil {
		return st.noteLost(fmt.Errorf("deleting the ledger of %s: %w", budget, err))
	}
	return nil
}

// ledgerName returns the name of the ledger object of a budget.
func ledgerName(budget string) string {
	sum := sha256.Sum256([]byte(budget))
	return "spotter-ledger-" + hex.EncodeToString(sum[:10])
}

func pack(m *policy.BudgetMemory) ([]byte, error) {
	data, err := packed.Pack(page{ledgerFormat, *m})
	if err != nil {
		return nil, fmt.Errorf("compressing the ledger of %s: %w", m.Name, err)
	}
	if len(data) > packed.Max {
		return nil, fmt.Errorf("the ledger of %s is %d bytes, above %d", m.Name, len(data), packed.Max)
	}
	return data, nil
}

func unpack(data []byte) (policy.BudgetMemory, error) {
	var p page
	if err := packed.Unpack(data, packed.ReadMax, &p); err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("reading: %w", err)
	}
	return p.Memory, packed.CheckFormat(p.Format, ledgerFormat)
}

// remembered returns the argument of the last call of Save. It must not be modified.
func (st *ledgerStore) remembered() []policy.BudgetMemory {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.memory
}
