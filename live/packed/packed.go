// Package packed stores the state of the controller as compressed JSON in ConfigMaps that only the
// leader writes. Each write requires the version that was last read or written, so that a conflict
// reveals another leader.
package packed

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Max is the maximum size of the packed data of one ConfigMap, in bytes. The API server stores up
// to a mebibyte per object, and other fields need the rest.
const Max = 512 << 10

// ReadMax is the maximum size of the unpacked data of a ConfigMap, in bytes, so that a ConfigMap
// written by another client cannot exhaust the memory of the process.
const ReadMax = 64 << 20

// fieldOwner is the field manager of all writes.
const fieldOwner = client.FieldOwner("spotter")

// Pack returns v as compressed JSON. Equal values result in equal bytes.
func Pack(v any) ([]byte, error) {
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

// Unpack decodes the result of Pack into v. It reads at most most bytes of the unpacked data.
func Unpack(data []byte, most int64, v any) error {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(z, most))
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}

// CheckFormat returns an error unless format is between 1 and known: data of a later version is
// rejected as a whole.
func CheckFormat(format, known int) error {
	if format < 1 || format > known {
		return fmt.Errorf("format %d is unknown: a later version wrote it", format)
	}
	return nil
}

// IsConflict reports whether err, the error of a write, means that another client wrote the object.
func IsConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// An API writes ConfigMaps with Client, and reads them from the API server with Reader. Key is the
// key of the data in a ConfigMap.
type API struct {
	Client client.Client
	Reader client.Reader
	Key    string
}

// An Object is one ConfigMap. It is not safe for concurrent use.
type Object struct {
	// Meta is the metadata with which the ConfigMap is created.
	Meta metav1.ObjectMeta

	// current is the object that was last read or written, nil if it does not exist. tried is the
	// data of the last write whose result is unknown, so that a lost response is not mistaken for
	// another leader.
	current *corev1.ConfigMap
	tried   []byte

	// matter is the part of the last saved data whose changes must be saved at once, and at the
	// time of that save.
	matter string
	at     time.Time
}

// Read sets the state of o to the ConfigMap x, and returns its data.
func (a *API) Read(o *Object, x *corev1.ConfigMap) []byte {
	o.current = x
	return x.BinaryData[a.Key]
}

// Due reports whether o must be saved, because matter differs from the last save or every has
// passed since then.
func (o *Object) Due(matter string, now time.Time, every time.Duration) bool {
	return matter != o.matter || now.Sub(o.at) >= every
}

// Saved records that o was saved at now with the given matter.
func (o *Object) Saved(matter string, now time.Time) { o.matter, o.at = matter, now }

// Exists reports whether the ConfigMap is known to exist.
func (o *Object) Exists() bool { return o.current != nil }

// Write writes data if it changed. After a conflict, it checks whether the object contains the data
// of the last write whose result is unknown: that write then succeeded, and Write tries again.
func (a *API) Write(ctx context.Context, o *Object, data []byte) error {
	if o.current != nil && bytes.Equal(o.current.BinaryData[a.Key], data) {
		return nil
	}
	err := a.send(ctx, o, data)
	if o.tried != nil && IsConflict(err) {
		var there corev1.ConfigMap
		key := client.ObjectKey{Namespace: o.Meta.Namespace, Name: o.Meta.Name}
		if readErr := a.Reader.Get(ctx, key, &there); readErr != nil {
			return fmt.Errorf("reading it after a conflict: %w", readErr)
		}
		if bytes.Equal(there.BinaryData[a.Key], o.tried) {
			o.current = &there
			err = a.send(ctx, o, data)
		}
	}
	switch {
	case err == nil:
		o.tried = nil
	case apierrors.IsNotFound(err):
		o.current = nil // it was deleted; the next write creates it again
	case !IsConflict(err):
		o.tried = data
	}
	return err
}

// send creates the ConfigMap, or updates it at the last known version.
func (a *API) send(ctx context.Context, o *Object, data []byte) error {
	next, write := o.current.DeepCopy(), func(x *corev1.ConfigMap) error { return a.Client.Update(ctx, x, fieldOwner) }
	if next == nil {
		next = &corev1.ConfigMap{ObjectMeta: *o.Meta.DeepCopy()}
		write = func(x *corev1.ConfigMap) error { return a.Client.Create(ctx, x, fieldOwner) }
	}
	next.BinaryData = map[string][]byte{a.Key: data}
	err := write(next)
	if err == nil {
		o.current = next
	}
	return err
}

// Delete deletes the ConfigMap unless another client has written it since the last read or write.
func (a *API) Delete(ctx context.Context, o *Object) error {
	if o.current == nil {
		return nil
	}
	x := o.current
	err := a.Client.Delete(ctx, x, client.Preconditions{UID: &x.UID, ResourceVersion: &x.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	o.current = nil
	return nil
}
