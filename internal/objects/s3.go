package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/spotter-dev/spotter/live/aws/wire"
)

// otherRegion stands for the region of a server that is not AWS's and has none. It is
// part of every signature.
const otherRegion = "us-east-1"

// connect returns the client of all requests.
func (s *Store) connect(ctx context.Context) (*s3.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	base, err := wire.Load(ctx, "")
	if err != nil {
		return nil, err
	}
	client := s3.NewFromConfig(base, func(o *s3.Options) {
		if s.Endpoint != "" {
			o.BaseEndpoint = &s.Endpoint
		}
		if o.BaseEndpoint == nil {
			return
		}
		if o.Region == "" {
			o.Region = otherRegion
		}
		// Not every server knows the checksums that AWS has by default.
		o.UsePathStyle = true
		o.RequestChecksumCalculation, o.ResponseChecksumValidation = aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
	})
	if client.Options().Region == "" {
		return nil, errors.New("no region is named: set AWS_REGION, or AWS_ENDPOINT_URL for a server that is not AWS's")
	}
	s.client = client
	return client, nil
}

// parse takes s3://BUCKET/KEY apart.
func parse(name string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(name, scheme), "/")
	if bucket == "" {
		return "", "", fmt.Errorf("%s names no bucket: write s3://BUCKET/KEY", name)
	}
	return bucket, key, nil
}

// object returns the client and where the object is, of which it needs a key.
func (s *Store) object(ctx context.Context, name string) (client *s3.Client, bucket, key *string, err error) {
	b, k, err := parse(name)
	if err == nil && k == "" {
		err = fmt.Errorf("%s names no object: write s3://BUCKET/KEY", name)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	client, err = s.connect(ctx)
	return client, &b, &k, err
}

// explained says of the error of a request what was being done to name. That of a name
// which is not there wraps [fs.ErrNotExist].
func explained(doing, name string, err error) error {
	var answer *awshttp.ResponseError
	var fault smithy.APIError
	switch {
	case errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusNotFound:
		if errors.As(err, &fault) && fault.ErrorCode() == "NoSuchBucket" {
			return fmt.Errorf("%s %s: there is no such bucket: %w", doing, name, fs.ErrNotExist)
		}
		return &fs.PathError{Op: doing, Path: name, Err: fs.ErrNotExist}
	case errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusPreconditionFailed:
		return fmt.Errorf("%s %s: it was replaced meanwhile", doing, name)
	}
	return fmt.Errorf("%s %s: %w", doing, name, err)
}

// A remote is an object that is open.
type remote struct {
	ctx         context.Context // of Open: ReadAt has none
	client      *s3.Client
	name        string
	bucket, key *string
	etag        *string
	size        int64
}

func (s *Store) openObject(ctx context.Context, name string) (File, error) {
	client, bucket, key, err := s.object(ctx, name)
	if err != nil {
		return nil, err
	}
	head, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return nil, explained("open", name, err)
	}
	return &remote{ctx, client, name, bucket, key, head.ETag, aws.ToInt64(head.ContentLength)}, nil
}

func (r *remote) Size() int64 { return r.size }

// Close does nothing: every read is a request of its own.
func (r *remote) Close() error { return nil }

// ReadAt asks for the range, and again for the rest of it where an answer is cut short.
func (r *remote) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, fmt.Errorf("read %s: offset %d is negative", r.name, at)
	}
	want, short := p, error(nil)
	if left := r.size - at; left < int64(len(p)) {
		want, short = p[:max(left, 0)], io.EOF
	}
	for attempts := 0; n < len(want); attempts++ {
		got, err := r.read(want[n:], at+int64(n))
		n += got
		if err != nil && (got == 0 && attempts >= 2 || r.ctx.Err() != nil || !errors.Is(err, io.ErrUnexpectedEOF)) {
			return n, err
		}
	}
	return n, short
}

func (r *remote) read(p []byte, at int64) (n int, err error) {
	out, err := r.client.GetObject(r.ctx, &s3.GetObjectInput{
		Bucket: r.bucket, Key: r.key, IfMatch: r.etag, Range: aws.String(fmt.Sprintf("bytes=%d-%d", at, at+int64(len(p))-1)),
	})
	if err != nil {
		return 0, explained("read", r.name, err)
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	if aws.ToString(out.ETag) != aws.ToString(r.etag) { // of a server that knows no If-Match
		return 0, fmt.Errorf("read %s: it was replaced meanwhile", r.name)
	}
	if n, err = io.ReadFull(out.Body, p); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return n, fmt.Errorf("read %s: %w", r.name, err)
	}
	return n, nil
}

// createObject writes to a file first: an object is put in one request, whose length has
// to be known and which is repeated after a fault.
func (s *Store) createObject(ctx context.Context, name string, write func(io.Writer) error) (err error) {
	client, bucket, key, err := s.object(ctx, name)
	if err != nil {
		return err
	}
	t, err := os.CreateTemp("", "spotter-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close(), os.Remove(t.Name())) }()
	if err := write(t); err != nil {
		return err
	}
	if _, err := t.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: t}); err != nil {
		return explained("write", name, err)
	}
	return nil
}

func (s *Store) listObjects(ctx context.Context, folder string) ([]Info, error) {
	bucket, prefix, err := parse(folder)
	if err != nil {
		return nil, err
	}
	client, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix = strings.TrimSuffix(prefix, "/") + "/"
	}
	var out []Info
	for pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, explained("list", folder, err)
		}
		for _, o := range page.Contents {
			if key := aws.ToString(o.Key); !strings.HasSuffix(key, "/") { // which stands for a folder
				out = append(out, Info{scheme + bucket + "/" + key, aws.ToInt64(o.Size)})
			}
		}
	}
	return out, nil // S3 lists in the order of names
}

func (s *Store) deleteObject(ctx context.Context, name string) error {
	client, bucket, key, err := s.object(ctx, name)
	if err != nil {
		return err
	}
	if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key}); err != nil {
		if err := explained("delete", name, err); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
