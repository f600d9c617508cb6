// Package s3 reads and writes the objects of a store that speaks S3, each named s3://BUCKET/KEY. A
// folder is a name whose KEY, followed by a slash, is a prefix of the keys of other objects.
//
// Region, endpoint and credentials are those of the usual configuration of the AWS SDK:
// AWS_REGION, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_PROFILE and so on.
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

// Scheme is the prefix of the name of an object.
const Scheme = "s3://"

// otherRegion is used as the region of a server that is not AWS's and has none. It is part of every
// signature.
const otherRegion = "us-east-1"

// ErrNoRegion means that neither the client nor the configuration of the SDK names a region,
// which AWS needs.
var ErrNoRegion = errors.New("no region is named: set AWS_REGION, or AWS_ENDPOINT_URL for a server that is not AWS's")

// A Client sends requests to a store. Its zero value is ready for use. It may be used by
// several goroutines.
type Client struct {
	// Region and Endpoint, the URL of a server that is not AWS's, replace those of the
	// configuration of the SDK; empty leaves them. Such a server gets requests with the bucket in
	// the path, as MinIO and Ceph require.
	Region, Endpoint string

	// Encryption is how objects are encrypted where they are stored: AES256, aws:kms, or
	// empty for what the bucket does by itself. KMSKey is the key of aws:kms, empty for the
	// account's own.
	Encryption, KMSKey string

	// Timeout bounds one request with its attempts. Zero sets no bound.
	Timeout time.Duration

	mu     sync.Mutex
	client *sdk.Client
}

// An Info describes an object in a listing.
type Info struct {
	Name string // complete, as [Client.Open] takes it
	Size int64  // in bytes
}

// Connect reads the configuration of the SDK, which the first request does otherwise. It
// sends no request. Without a region its error wraps [ErrNoRegion].
func (c *Client) Connect(ctx context.Context) error {
	_, err := c.connect(ctx)
	return err
}

// connect returns the SDK's client of all requests.
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
		// Not every server knows the checksums that AWS has by default.
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

// bounded returns the context of one request.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.Timeout)
}

// parse takes s3://BUCKET/KEY apart.
func parse(name string) (bucket, key string, err error) {
	bucket, key, _ = strings.Cut(strings.TrimPrefix(name, Scheme), "/")
	if bucket == "" {
		return "", "", fmt.Errorf("%s names no bucket: write s3://BUCKET/KEY", name)
	}
	return bucket, key, nil
}

// object returns the SDK's client, and the bucket and key of an object.
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

// explained adds to the error of a request what was being done to name. That of a name
// which is not there wraps [fs.ErrNotExist].
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

// An Object is open for reading.
type Object struct {
	ctx         context.Context // of Open: ReadAt has none
	client      *sdk.Client
	name        string
	bucket, key *string
	etag        *string
	size        int64

	// Metadata is what the object was written with, by names in lower case.
	Metadata map[string]string
}

// Open opens an object. Its reads are requests for a range until ctx ends, and fail when it
// was replaced after Open. The error of a name that is not there wraps [fs.ErrNotExist].
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

// Size is the length in bytes.
func (o *Object) Size() int64 { return o.size }

// Close does nothing: every read is a request of its own.
func (o *Object) Close() error { return nil }

// ReadAt requests the range, and again the rest of it if a response is cut short.
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
	if aws.ToString(out.ETag) != aws.ToString(o.etag) { // of a server that knows no If-Match
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

// Put writes an object of all that body holds. An attempt that fails reads body again.
func (c *Client) Put(ctx context.Context, name string, body io.ReadSeeker) error {
	return c.put(ctx, name, &sdk.PutObjectInput{Body: body})
}

// PutNew is [Client.Put] of an object that must not be there yet, with metadata. The error
// of one that is wraps [fs.ErrExist]; an attempt of which the answer was lost may have written it.
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

// List returns the objects in a folder, at any depth, by ascending names. A folder that is
// not there holds none.
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
	return out, err // S3 lists in the order of names
}

// Folders returns the folders whose names begin with prefix and hold no further slash, by
// ascending names.
func (c *Client) Folders(ctx context.Context, prefix string) (out []string, err error) {
	err = c.pages(ctx, prefix, "/", func(bucket string, page *sdk.ListObjectsV2Output) {
		for _, p := range page.CommonPrefixes {
			out = append(out, Scheme+bucket+"/"+strings.TrimSuffix(aws.ToString(p.Prefix), "/"))
		}
	})
	return out, err
}

// pages calls each with every page of the listing of names that begin with prefix.
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

// Delete removes an object. One that is not there is no error.
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
