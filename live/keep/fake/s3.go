// Package fake stands in for S3 as far as a record needs it: put, head, get and list
// of one bucket, over HTTP, with checksums checked and conditions held. It refuses,
// fails and hangs on demand.
package fake

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// An Object is what stands under a key.
type Object struct {
	Body       []byte
	Metadata   map[string]string
	Encryption string
	KMSKey     string
}

// A Bucket is a server that holds one bucket of the given name. Its zero value is
// not usable; see [New].
type Bucket struct {
	name string

	mu       sync.Mutex
	objects  map[string]Object
	requests []string
	down     int
	fail     []int
	pageMax  int
	hook     func(method, key string)
}

// New returns an empty bucket, whose listings have pages of pageMax names.
func New(name string, pageMax int) *Bucket {
	return &Bucket{name: name, objects: map[string]Object{}, pageMax: pageMax}
}

// Down makes every request answer with a status, until it is called with 0.
func (b *Bucket) Down(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = status
}

// Fail makes the next requests answer with these, one each.
func (b *Bucket) Fail(statuses ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = append(b.fail, statuses...)
}

// Before has f called ahead of each request, which waits for it.
func (b *Bucket) Before(f func(method, key string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hook = f
}

// Objects returns what the bucket holds.
func (b *Bucket) Objects() map[string]Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.objects)
}

// Put places an object, as somebody else would.
func (b *Bucket) Put(key string, o Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects[key] = o
}

// Requests returns the requests so far, each "METHOD key".
func (b *Bucket) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// ServeHTTP answers one request.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, ok := strings.CutPrefix(strings.TrimPrefix(r.URL.Path, "/"), b.name)
	key = strings.TrimPrefix(key, "/")
	b.mu.Lock()
	if key == "" {
		b.requests = append(b.requests, r.Method+" ?"+r.URL.Query().Get("prefix"))
	} else {
		b.requests = append(b.requests, r.Method+" "+key)
	}
	hook, status := b.hook, b.down
	if status == 0 && len(b.fail) > 0 {
		status, b.fail = b.fail[0], b.fail[1:]
	}
	b.mu.Unlock()
	if hook != nil {
		hook(r.Method, key)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	switch {
	case status != 0:
		refuse(w, r, status, map[int]string{503: "SlowDown", 403: "AccessDenied", 500: "InternalError"}[status])
	case !ok:
		refuse(w, r, http.StatusNotFound, "NoSuchBucket")
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 "):
		refuse(w, r, http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodGet && key == "":
		b.list(w, r)
	case r.Method == http.MethodPut:
		b.put(w, r, key, body)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		b.get(w, r, key)
	default:
		refuse(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as asked</Message></Error>", code)
	}
}

func (b *Bucket) put(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		refuse(w, r, http.StatusNotImplemented, "NotImplemented")
		return
	}
	if want := r.Header.Get("X-Amz-Checksum-Crc32"); want != "" {
		sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body))
		if base64.StdEncoding.EncodeToString(sum) != want {
			refuse(w, r, http.StatusBadRequest, "BadDigest")
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.objects[key]; there && r.Header.Get("If-None-Match") == "*" {
		refuse(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	o := Object{
		Body: bytes.Clone(body), Metadata: map[string]string{},
		Encryption: r.Header.Get("X-Amz-Server-Side-Encryption"),
		KMSKey:     r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"),
	}
	for name, values := range r.Header {
		if meta, ok := strings.CutPrefix(strings.ToLower(name), "x-amz-meta-"); ok {
			o.Metadata[meta] = values[0]
		}
	}
	b.objects[key] = o
}

func (b *Bucket) get(w http.ResponseWriter, r *http.Request, key string) {
	b.mu.Lock()
	o, ok := b.objects[key]
	b.mu.Unlock()
	if !ok {
		refuse(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	for name, value := range o.Metadata {
		w.Header().Set("X-Amz-Meta-"+name, value)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(o.Body)))
	if r.Method == http.MethodGet {
		w.Write(o.Body) //nolint:errcheck // the client went away
	}
}

// A listing is the answer of ListObjectsV2.
type listing struct {
	XMLName        xml.Name `xml:"ListBucketResult"`
	IsTruncated    bool
	Next           string   `xml:"NextContinuationToken,omitempty"`
	CommonPrefixes []prefix `xml:"CommonPrefixes"`
	Contents       []content
}

type prefix struct{ Prefix string }

type content struct {
	Key  string
	Size int
}

func (b *Bucket) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string // keys, and prefixes up to the delimiter
	for key := range b.objects {
		rest, ok := strings.CutPrefix(key, q.Get("prefix"))
		if !ok {
			continue
		}
		if i := strings.Index(rest, q.Get("delimiter")); q.Get("delimiter") != "" && i >= 0 {
			key = q.Get("prefix") + rest[:i+1]
		}
		names = append(names, key)
	}
	slices.Sort(names)
	var l listing
	for _, name := range slices.Compact(names) {
		if name <= q.Get("continuation-token") {
			continue
		}
		if len(l.CommonPrefixes)+len(l.Contents) == b.pageMax {
			l.IsTruncated = true
			break
		}
		l.Next = name
		if o, ok := b.objects[name]; ok {
			l.Contents = append(l.Contents, content{name, len(o.Body)})
		} else {
			l.CommonPrefixes = append(l.CommonPrefixes, prefix{name})
		}
	}
	if !l.IsTruncated {
		l.Next = ""
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(l) //nolint:errcheck // the client went away
}
