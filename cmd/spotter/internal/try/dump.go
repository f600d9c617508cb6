package try

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
)

// A dump is the objects of a cluster from files, in the form of `kubectl get -o yaml`. It
// implements client.Reader by listing them.
type dump struct {
	client.Reader
	objects []unstructured.Unstructured
	scheme  *runtime.Scheme

	// listed are the kinds that were listed.
	listed map[schema.GroupVersionKind]bool
}

// dumpOf returns the objects in a text. It returns nil if the text has no nodes and is therefore
// not a dump.
func dumpOf(text []byte) (*dump, error) {
	d := &dump{listed: map[schema.GroupVersionKind]bool{}}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var u unstructured.Unstructured
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if !u.IsList() {
			d.objects = append(d.objects, u)
			continue
		}
		err := u.EachListItem(func(o runtime.Object) error {
			d.objects = append(d.objects, *o.(*unstructured.Unstructured)) //nolint:forcetypeassert // of a list that is unstructured
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range d.objects {
		if o := &d.objects[i]; o.GetKind() == "Node" && o.GetAPIVersion() == "v1" {
			var err error
			d.scheme, err = capture.Scheme()
			return d, err
		}
	}
	return nil, nil
}

// skipped returns the number of objects of each kind that was not listed, as text.
func (d *dump) skipped() string {
	counts := map[string]int{}
	for i := range d.objects {
		if kind := d.objects[i].GroupVersionKind(); !d.listed[kind] && kind.Kind != "" {
			counts[kind.Kind]++
		}
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	return strings.Join(parts, ", ")
}

// List sets the items of list to the objects of its kind.
func (d *dump) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, d.scheme)
	if err != nil {
		return err
	}
	one := kind.GroupVersion().WithKind(strings.TrimSuffix(kind.Kind, "List"))
	d.listed[one] = true
	raw, untyped := list.(*unstructured.UnstructuredList)
	var found []runtime.Object
	for i := range d.objects {
		u := &d.objects[i]
		if u.GroupVersionKind() != one {
			continue
		}
		if untyped {
			raw.Items = append(raw.Items, *u)
			continue
		}
		o, err := d.scheme.New(one)
		if err != nil {
			return err
		}
		if err := capture.Decode(u, o); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		found = append(found, o)
	}
	if untyped {
		if len(raw.Items) == 0 {
			return &meta.NoKindMatchError{GroupKind: one.GroupKind(), SearchedVersions: []string{one.Version}}
		}
		return nil
	}
	return meta.SetList(list, found)
}
