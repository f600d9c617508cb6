package trace

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/live/aws"
)

// copyTo makes the recording upload its files to the destination of --upload. If the destination is
// empty, it also uploads the files recorded before.
func (r *recordCall) copyTo(ctx context.Context, store *objects.Store) error {
	if !objects.Remote(r.upload) {
		return cli.Invalid(fmt.Errorf("--upload: %s is not an s3:// name", r.upload), "write it as s3://BUCKET/PREFIX")
	}
	found, err := store.List(ctx, r.upload)
	if err != nil {
		return recordFault(r, fmt.Errorf("%w: %w", aws.ErrUpload, err))
	}
	before, err := fs.Glob(os.DirFS(r.Dir), "provider=*/region=*/date=*/*.parquet")
	if err != nil {
		return err
	}
	if len(found) > 0 && len(before) == 0 {
		// A new recording does not contain what was recorded before.
		return cli.Invalid(fmt.Errorf("--upload: %s holds %s, while %s holds no recording", r.upload, found[0].Name, r.Dir),
			"give --out the folder that this is the copy of, or --upload an empty prefix")
	}
	r.Put = func(ctx context.Context, name string) error { return put(ctx, store, r.Dir, r.upload, name) }
	if len(found) > 0 {
		return nil
	}
	for _, name := range before {
		if err := r.Put(ctx, name); err != nil {
			return recordFault(r, fmt.Errorf("%w: %w", aws.ErrUpload, err))
		}
	}
	return nil
}
