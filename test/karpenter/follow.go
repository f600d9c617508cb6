package karpenter

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow calls see with every object of a kind whenever it changes, and end with the name
// of one that is gone, until the test ends. Either is called by one goroutine only.
func Follow[T client.Object](t testing.TB, c client.WithWatch, list client.ObjectList, see func(T), end func(string)) {
	t.Helper()
	begin := func() (watch.Interface, error) {
		return c.Watch(t.Context(), list.DeepCopyObject().(client.ObjectList))
	}
	seen, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			for e := range seen.ResultChan() {
				o, ok := e.Object.(T)
				switch {
				case ok && e.Type == watch.Deleted:
					end(o.GetName())
				case ok:
					see(o)
				}
			}
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(time.Second) // the server ends a watch after a while
			if next, err := begin(); err == nil {
				seen = next
			}
		}
	}()
}
