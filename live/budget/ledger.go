package budget

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// How the objects of ledgers are marked. The name of a budget is longer than a
// label's value may be, so it stands in an annotation.
const (
	ledgerLabel  = "spotter.dev/ledger"
	ledgerBudget = "spotter.dev/budget"
	ledgerKey    = "ledger"
)

// ledgerMax bounds one ledger, compressed: an API server keeps a mebibyte, and the
// rest of it is not ours to fill. A year of hours is far below.
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

// saved is when a ledger was written last, and what of it must not be kept back.
type saved struct {
	at     time.Time
	matter string
}

// Load reads all ledgers from the API server, ascending by the names of budgets.
func (k *Keeper) Load(ctx context.Context) ([]policy.BudgetMemory, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list corev1.ConfigMapList
	if err := k.reader.List(ctx, &list, client.InNamespace(k.cfg.Namespace), client.HasLabels{ledgerLabel}); err != nil {
		return nil, fmt.Errorf("reading ledgers in namespace %s: %w", k.cfg.Namespace, err)
	}
	clear(k.ledgers)
	clear(k.tried)
	clear(k.saved)
	k.memory = nil
	for i := range list.Items {
		x := &list.Items[i]
		m, err := unpack(x.BinaryData[ledgerKey])
		if err == nil && (m.Name != x.Annotations[ledgerBudget] || ledgerName(m.Name) != x.Name) {
			err = fmt.Errorf("it is of budget %q and annotation %s says %q", m.Name, ledgerBudget, x.Annotations[ledgerBudget])
		}
		if err != nil {
			return nil, fmt.Errorf("ledger in ConfigMap %s/%s: %w", x.Namespace, x.Name, err)
		}
		k.ledgers[m.Name] = x
		k.memory = append(k.memory, m)
	}
	slices.SortFunc(k.memory, func(a, b policy.BudgetMemory) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Clone(k.memory), nil
}

// Save writes the ledgers that have changed, each at the version that was read or
// written last: a conflict says that another controller wrote it. One of which only
// the use has changed may wait, see [Config].
func (k *Keeper) Save(ctx context.Context, all []policy.BudgetMemory) error {
	return k.save(ctx, all, false)
}

// Flush writes what [Keeper.Save] kept back. A controller that ends calls it.
func (k *Keeper) Flush(ctx context.Context) error {
	k.mu.Lock()
	all := k.memory
	k.mu.Unlock()
	return k.save(ctx, all, true)
}

func (k *Keeper) save(ctx context.Context, all []policy.BudgetMemory, now bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.memory = slices.Clone(all)
	for i := range all {
		if err := k.saveOne(ctx, &all[i], now); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.ledgers)) {
		if slices.ContainsFunc(all, func(m policy.BudgetMemory) bool { return m.Name == name }) {
			continue
		}
		if err := k.drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// saveOne writes the ledger of one budget, if it must be or is due.
func (k *Keeper) saveOne(ctx context.Context, m *policy.BudgetMemory, now bool) error {
	matter, err := matterOf(m)
	if err != nil {
		return err
	}
	before, known := k.saved[m.Name]
	if !now && known && before.matter == matter && k.cfg.Clock.Since(before.at) < k.cfg.SaveEvery {
		return nil
	}
	data, err := pack(m)
	if err != nil {
		return err
	}
	if old := k.ledgers[m.Name]; old == nil || !bytes.Equal(old.BinaryData[ledgerKey], data) {
		if err := k.write(ctx, m.Name, data); err != nil {
			return fmt.Errorf("saving the ledger of %s: %w", m.Name, err)
		}
	}
	k.saved[m.Name] = saved{k.cfg.Clock.Now(), matter}
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

// write brings the object of a budget to hold data. An object that holds what was
// sent last was written by us, though the answer was lost.
func (k *Keeper) write(ctx context.Context, budget string, data []byte) error {
	err := k.send(ctx, budget, data)
	if tried := k.tried[budget]; tried != nil && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
		var there corev1.ConfigMap
		if readErr := k.reader.Get(ctx, client.ObjectKey{Namespace: k.cfg.Namespace, Name: ledgerName(budget)}, &there); readErr != nil {
			return fmt.Errorf("reading it after a conflict: %w", readErr)
		}
		if bytes.Equal(there.BinaryData[ledgerKey], tried) {
			k.ledgers[budget] = &there
			err = k.send(ctx, budget, data)
		}
	}
	switch {
	case err == nil:
		delete(k.tried, budget)
	case apierrors.IsNotFound(err):
		delete(k.ledgers, budget) // somebody deleted it; the next step makes it anew
	case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
		k.tried[budget] = data
	}
	return err
}

// send makes the object of a budget, or updates it at the version that is known.
func (k *Keeper) send(ctx context.Context, budget string, data []byte) error {
	next := &corev1.ConfigMap{}
	old := k.ledgers[budget]
	if old != nil {
		old.DeepCopyInto(next)
	} else {
		next.ObjectMeta = metav1.ObjectMeta{
			Namespace: k.cfg.Namespace, Name: ledgerName(budget),
			Labels: map[string]string{ledgerLabel: "budget"}, Annotations: map[string]string{ledgerBudget: budget},
		}
	}
	next.BinaryData = map[string][]byte{ledgerKey: data}
	var err error
	if old != nil {
		err = k.client.Update(ctx, next, fieldOwner)
	} else {
		err = k.client.Create(ctx, next, fieldOwner)
	}
	if err == nil {
		k.ledgers[budget] = next
	}
	return err
}

// drop deletes the ledger of a budget that is no more. That of a budget which is
// only not valid at the moment stays.
func (k *Keeper) drop(ctx context.Context, budget string) error {
	namespace, name := split(budget)
	err := k.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.GPUBudget{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking whether budget %s is gone: %w", budget, err)
	}
	x := k.ledgers[budget]
	err = k.client.Delete(ctx, x, client.Preconditions{UID: &x.UID, ResourceVersion: &x.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the ledger of %s: %w", budget, err)
	}
	delete(k.ledgers, budget)
	delete(k.saved, budget)
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
		return nil, fmt.Errorf("packing the ledger of %s: %w", m.Name, err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("packing the ledger of %s: %w", m.Name, err)
	}
	if b.Len() > ledgerMax {
		return nil, fmt.Errorf("the ledger of %s is %d bytes, above %d", m.Name, b.Len(), ledgerMax)
	}
	return b.Bytes(), nil
}

func unpack(data []byte) (policy.BudgetMemory, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("unpacking: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, plainMax))
	if err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("unpacking: %w", err)
	}
	var p page
	if err := json.Unmarshal(plain, &p); err != nil {
		return policy.BudgetMemory{}, fmt.Errorf("reading: %w", err)
	}
	if p.Format != ledgerFormat {
		return policy.BudgetMemory{}, fmt.Errorf("format %d is not known: a later version wrote it", p.Format)
	}
	return p.Memory, nil
}
