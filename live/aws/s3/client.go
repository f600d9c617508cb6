// Package s3 reads and writes the objects of a store with the S3 API. The name of an object is
// s3://BUCKET/KEY. A folder is a name whose KEY, followed by a slash, is a prefix of the keys of
// other objects.
//
// Region, endpoint and credentials come from the usual configuration of the AWS SDK: AWS_REGION,
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_PROFILE and so on.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/spotter-dev/spotter/live/aws/wire"
)

// Scheme is the prefix of the names of objects and folders.
const Scheme = "s3://"

// otherRegion is the region used for a server outside AWS if no region is configured. Every
// signature includes a region.
const otherRegion = "us-east-1"

// ErrNoRegion means that neither the client nor the configuration of the SDK sets a region, which
// AWS requires.
var ErrNoRegion = errors.New("no region is named: set AWS_REGION, or AWS_ENDPOINT_URL for a server that is not AWS's")

// A Client sends requests to a store. The zero value is ready for use. A Client is safe for
// concurrent use.
type Client struct {
	// Region and Endpoint replace the values in the configuration of the SDK; empty keeps them.
	// Endpoint is the URL of a server outside AWS. Requests to it contain the bucket in the path,
	// as MinIO and Ceph require.
	Region, Endpoint string

	// Encryption is the server-side encryption of written objects: AES256, aws:kms, or empty for
	// the default of the bucket. KMSKey is the key for aws:kms; empty means the default key of the
	// account.
	Encryption, KMSKey string

	// Timeout is the maximum duration of one request with all its attempts. Zero means no limit.
	Timeout time.Duration

	mu     sync.Mutex
	client *sdk.Client
}

// An Info describes an object in a listing.
type Info struct {
	Name string // full name, as for [Client.Open]
	Size int64  // in bytes
}

// Connect reads the configuration of the SDK, which the first request does otherwise. It sends no
// request to the store. If no region is set, its error wraps [ErrNoRegion].
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connect(ctx)
	return err
}

// connect returns the SDK client that all requests share.
func (c *Client) connect(ctx context.Context) (*sdk.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	base, err := wire.Load(ctx, c.Region)
	if err != nil {
		return nil, err
	}
	client := sdk.NewFromConfig(base, func(o *sdk.Options) {
		if c.Endpoint != "" {
			o.BaseEndpoint = &c.Endpoint
		}
		if o.BaseEndpoint == nil {
			return
		}
		if o.Region == "" {
			o.Region = otherRegion
		}
		// Not every server supports the default checksums of AWS.
		o.UsePathStyle = true
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	if client.Options().Region == "" {
		return nil, ErrNoRegion
	}
	c.client = client
	return client, nil
}

// bounded returns a context with the timeout of one request.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.Timeout)
}

// parse splits s3://BUCKET/KEY. The key may be empty.
func parse(name string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(name, Scheme), "/")
	if bucket == "" {
		return "", "", fmt.Errorf("%s names no bucket: write s3://BUCKET/KEY", name)
	}
	return bucket, key, nil
}

// object returns the SDK client, and the bucket and key of an object.
func (c *Client) object(ctx context.Context, name string) (client *sdk.Client, bucket, key *string, err error) {
	b, k, err := parse(name)
	if err == nil && k == "" {
		err = fmt.Errorf("%s names no object: write s3://BUCKET/KEY", name)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	client, err = c.connect(ctx)
	return client, &b, &k, err
}

// explained adds the operation and the name to the error of a request. If the name does not exist,
// the result wraps [fs.ErrNotExist]; if it exists but must not, [fs.ErrExist].
func explained(doing, name string, err error) error {
	var fault smithy.APIError
	switch status := wire.StatusOf(err); {
	case status == http.StatusNotFound:
		if errors.As(err, &fault) && fault.ErrorCode() == "NoSuchBucket" {
			return fmt.Errorf("%s %s: there is no such bucket: %w", doing, name, fs.ErrNotExist)
		}
		return &fs.PathError{Op: doing, Path: name, Err: fs.ErrNotExist}
	case status == http.StatusPreconditionFailed && doing == "read":
		return fmt.Errorf("%s %s: it was replaced meanwhile", doing, name)
	case status == http.StatusPreconditionFailed:
		return &fs.PathError{Op: doing, Path: name, Err: fs.ErrExist}
	}
	return fmt.Errorf("%s %s: %w", doing, name, err)
}

// An Object is an object that is open for reading.
type Object struct {
	ctx         context.Context // context of Open, for ReadAt
	client      *sdk.Client
	name        string
	bucket, key *string
	etag        *string
	size        int64

	// Metadata is the metadata with which the object was written, by name in lower case.
	Metadata map[string]string
}

// Open opens an object. Each read requests a range of bytes, until ctx ends. A read fails if the
// object was replaced after Open. If the object does not exist, the error wraps [fs.ErrNotExist].
func (c *Client) Open(ctx context.Context, name string) (*Object, error) {
	client, bucket, key, err := c.object(ctx, name)
	if err != nil {
		return nil, err
	}
	asked, stop := c.bounded(ctx)
	defer stop()
	head, err := client.HeadObject(asked, &sdk.HeadObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return nil, explained("open", name, err)
	}
	return &Object{ctx, client, name, bucket, key, head.ETag, aws.ToInt64(head.ContentLength), head.Metadata}, nil
}

// Size returns the length in bytes.
func (o *Object) Size() int64 { return o.size }

// Close does nothing: every read is a request of its own.
func (o *Object) Close() error { return nil }

// ReadAt implements io.ReaderAt. It requests the range, and the rest of it again if a response is
// cut short.
func (o *Object) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, fmt.Errorf("read %s: offset %d is negative", o.name, at)
	}
	want, short := p, error(nil)
	if left := o.size - at; left < int64(len(p)) {
		want, short = p[:max(left, 0)], io.EOF
	}
	for attempts := 0; n < len(want); attempts++ {
		got, err := o.read(want[n:], at+int64(n))
		n += got
		if err != nil && (got == 0 && attempts >= 2 || o.ctx.Err() != nil || !errors.Is(err, io.ErrUnexpectedEOF)) {
			return n, err
		}
	}
	return n, short
}

func (o *Object) read(p []byte, at int64) (n int, err error) {
	out, err := o.client.GetObject(o.ctx, &sdk.GetObjectInput{
		Bucket: o.bucket, Key: o.key, IfMatch: o.etag, Range: aws.String(fmt.Sprintf("bytes=%d-%d", at, at+int64(len(p))-1)),
	})
	if err != nil {
		return 0, explained("read", o.name, err)
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	if aws.ToString(out.ETag) != aws.ToString(o.etag) { // the server does not support If-Match
		return 0, fmt.Errorf("read %s: it was replaced meanwhile", o.name)
	}
	if n, err = io.ReadFull(out.Body, p); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return n, fmt.Errorf("read %s: %w", o.name, err)
	}
	return n, nil
}

// Put writes an object with the content of body. Every further attempt reads body again.
func (c *Client) Put(ctx context.Context, name string, body io.ReadSeeker) error {
	return c.put(ctx, name, &sdk.PutObjectInput{Body: body})
}

// PutNew is like [Client.Put], but fails if the object already exists, with an error that wraps
// [fs.ErrExist]. It also writes metadata. If the response to an attempt is lost, that attempt may
// have written the object, so that the next one fails.
func (c *Client) PutNew(ctx context.Context, name string, body io.ReadSeeker, metadata map[string]string) error {
	return c.put(ctx, name, &sdk.PutObjectInput{Body: body, Metadata: metadata, IfNoneMatch: aws.String("*")})
}

func (c *Client) put(ctx context.Context, name string, in *sdk.PutObjectInput) (err error) {
	var client *sdk.Client
	if client, in.Bucket, in.Key, err = c.object(ctx, name); err != nil {
		return err
	}
	if in.ServerSideEncryption = types.ServerSideEncryption(c.Encryption); c.KMSKey != "" {
		in.SSEKMSKeyId = &c.KMSKey
	}
	ctx, stop := c.bounded(ctx)
	defer stop()
	if _, err := client.PutObject(ctx, in); err != nil {
		return explained("write", name, err)
	}
	return nil
}

// List returns the objects in a folder, at any depth, sorted by name. A folder that does not exist
// is empty.
func (c *Client) List(ctx context.Context, folder string) (out []Info, err error) {
	if _, key, _ := parse(folder); key != "" {
		folder = strings.TrimSuffix(folder, "/") + "/"
	}
	err = c.pages(ctx, folder, "", func(bucket string, page *sdk.ListObjectsV2Output) {
		for _, o := range page.Contents {
			if key := aws.ToString(o.Key); !strings.HasSuffix(key, "/") { // a key with a final slash is a folder
				out = append(out, Info{Scheme + bucket + "/" + key, aws.ToInt64(o.Size)})
			}
		}
	})
	return out, err // S3 lists objects in the order of their names
}

// Folders returns the folders whose names start with prefix and contain no further slash, sorted by
// name.
func (c *Client) Folders(ctx context.Context, prefix string) (out []string, err error) {
	err = c.pages(ctx, prefix, "/", func(bucket string, page *sdk.ListObjectsV2Output) {
		for _, p := range page.CommonPrefixes {
			out = append(out, Scheme+bucket+"/"+strings.TrimSuffix(aws.ToString(p.Prefix), "/"))
		}
	})
	return out, err
}

// pages calls each for every page of the listing of names that start with prefix.
func (c *Client) pages(
	ctx context.Context, prefix, delimiter string, each func(bucket string, page *sdk.ListObjectsV2Output),
) error {
	bucket, key, err := parse(prefix)
	if err != nil {
		return err
	}
	client, err := c.connect(ctx)
	if err != nil {
		return err
	}
	in := &sdk.ListObjectsV2Input{Bucket: &bucket, Prefix: &key}
	if delimiter != "" {
		in.Delimiter = &delimiter
	}
	for pages := sdk.NewListObjectsV2Paginator(client, in); pages.HasMorePages(); {
		asked, stop := c.bounded(ctx)
		page, err := pages.NextPage(asked)
		stop()
		if err != nil {
			return explained("list", prefix, err)
		}
		each(bucket, page)
	}
	return nil
}

// Delete deletes an object. A missing object is not an error.
func (c *Client) Delete(ctx context.Context, name string) error {
	client, bucket, key, err := c.object(ctx, name)
	if err != nil {
		return err
	}
	ctx, stop := c.bounded(ctx)
	defer stop()
	if _, err := client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: bucket, Key: key}); err != nil {
		if err := explained("delete", name, err); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
