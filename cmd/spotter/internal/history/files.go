package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/internal/objects"
)

// EachFile calls read for each of the files, and for those below folders in the order of their
// names, on disk or in an object store. It returns the number of files. If wanted is not nil, files
// for which it returns false are skipped. Errors of read are prefixed with the name of the file.
func EachFile(ctx context.Context, paths []string, wanted func(name string) bool,
	read func(name string, f objects.File) error) (n int, err error) {
	var store objects.Store
	for _, path := range paths {
		all, err := store.List(ctx, path)
		if err != nil {
			return n, err
		}
		if all == nil { // a single object, or none, which is reported when it is opened
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
