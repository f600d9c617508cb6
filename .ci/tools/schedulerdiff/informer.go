package main

import (
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"k8s.io/apimachinery/pkg/runtime"
)

// An informer holds the objects that it is given, and calls its handlers before it
// returns: no goroutine decides what the scheduler knows.
type informer struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandler
}

// replaceInformer makes f answer for objects like example from memory.
func replaceInformer(f informers.SharedInformerFactory, example runtime.Object) *informer {
	i := &informer{SharedIndexInformer: cache.NewSharedIndexInformer(&cache.ListWatch{}, example, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	f.InformerFor(example, func(kubernetes.Interface, resync) cache.SharedIndexInformer { return i })
	return i
}

type registration struct{}

func (registration) HasSynced() bool { return true }

func (i *informer) HasSynced() bool { return true }

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	for _, x := range i.GetIndexer().List() {
		h.OnAdd(x, true)
	}
	return registration{}, nil
}

func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler,
	_ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

func (i *informer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler,
	_ resync) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

// set puts x in place of old; a nil x removes it, a nil old adds it.
func (i *informer) set(old, x any) error {
	var err error
	switch {
	case x == nil:
		err = i.GetIndexer().Delete(old)
	case old == nil:
		err = i.GetIndexer().Add(x)
	default:
		err = i.GetIndexer().Update(x)
	}
	for _, h := range i.handlers {
		switch {
		case x == nil:
			h.OnDelete(old)
		case old == nil:
			h.OnAdd(x, false)
		default:
			h.OnUpdate(old, x)
		}
	}
	return err
}
