package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/internal/objects"
)

// EachFile opens files, and those below folders in the order of their names, on disk or in an
// object store, and returns how many. wanted may pass files over by their names; nil takes
// all. An error of read gets the name of the file put before it.
func EachFile(ctx context.Context, paths []string, wanted func(name string) bool,
	read func(name string, f objects.File) error) (n int, err error) {
	var store objects.Store
	for _, path := range paths {
		all, err := store.List(ctx, path)
		if err != nil {
			return n, err
		}
		if all == nil { // one object, or nothing at all, which opening it says
			all = []objects.Info{{Name: path}}
		}
		for _, x := range all {
			if wanted != nil && !wanted(x.Name) {
				continue
			}
			n++
			if err := oneFile(ctx, &store, x.Name, read); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func oneFile(ctx context.Context, store *objects.Store, name string,
	read func(name string, f objects.File) error) (err error) {
	f, err := store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := read(name, f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
