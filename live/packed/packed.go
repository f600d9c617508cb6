// Package packed keeps what a controller remembers as compressed JSON, in ConfigMaps that only
// the leader writes. Each is written at the version that was read or written last, so that a
// conflict shows another leader.
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

// Max bounds the packed data of one ConfigMap. The API server stores a mebibyte per object,
// and other fields need the rest.
const Max = 512 << 10

// ReadMax bounds what a ConfigMap unpacks to, so that one written by another client cannot
// exhaust the memory of the process.
const ReadMax = 64 << 20

// fieldOwner is under which name fields are written.
const fieldOwner = client.FieldOwner("spotter")

// Pack returns v as compressed JSON, with the same bytes for the same value.
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

// Unpack reads what Pack wrote, up to a number of bytes.
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

// CheckFormat returns an error unless format is one of those up to known: what a later version
// wrote is refused and not half read.
func CheckFormat(format, known int) error {
	if format < 1 || format > known {
		return fmt.Errorf("format %d is unknown: a later version wrote it", format)
	}
	return nil
}

// IsConflict reports whether the error of a write shows that another client wrote the object.
func IsConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// An API writes the ConfigMaps, and reads them from the API server. Key is where in them the
// data is.
type API struct {
	Client client.Client
	Reader client.Reader
	Key    string
}

// An Object is one ConfigMap. One goroutine at a time uses it.
type Object struct {
	// Meta is what the ConfigMap is created with.
	Meta metav1.ObjectMeta

	// current is the object as it was last read or written, nil if it does not exist, and tried
	// what was last sent without an answer: a lost response must not look like another leader.
	current *corev1.ConfigMap
	tried   []byte

	// matter is what must not be kept back of what was last saved, and at when that was.
	matter string
	at     time.Time
}

// Read takes in the ConfigMap as it was read, and returns its data.
func (a *API) Read(o *Object, x *corev1.ConfigMap) []byte {
	o.current = x
	return x.BinaryData[a.Key]
}

// Due reports whether o must be saved: matter differs from what was last saved, or every has
// passed since.
func (o *Object) Due(matter string, now time.Time, every time.Duration) bool {
	return matter != o.matter || now.Sub(o.at) >= every
}

// Saved notes what matters of what was saved now.
func (o *Object) Saved(matter string, now time.Time) { o.matter, o.at = matter, now }

// Exists reports whether the ConfigMap is known to exist.
func (o *Object) Exists() bool { return o.current != nil }

// Write writes data if it changed. An object that already holds the data that was sent last was
// written by this controller, though the response was lost.
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

// send creates the ConfigMap, or updates it at the version that is known.
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

// Delete deletes the ConfigMap unless another client wrote it since.
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
