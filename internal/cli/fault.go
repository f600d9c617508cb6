package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// An UnreachableError is the error of a server that did not respond.
type UnreachableError struct {
	// Server is the name of the server with its address, such as "the API server at
	// https://10.0.0.1".
	Server string

	// Err is the cause, as reported by the transport.
	Err error
}

func (u *UnreachableError) Error() string {
	return fmt.Sprintf("%s does not answer: %s", u.Server, reason(u.Err))
}

func (u *UnreachableError) Unwrap() error { return u.Err }

// reason returns the cause of the error of a request, without a description of the request.
func reason(err error) string {
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("no address is known for the name %s", dns.Name)
	case isTimeout(err):
		return "it took too long"
	case errors.Is(err, io.EOF):
		return "it closed the connection"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// A fault describes an error of a library or of the operating system in the user's terms, and what
// the user can do about it.
type fault struct {
	// old is the part of the message that words replaces.
	old, words, next string

	// whole makes words the complete message, without the context of the error.
	whole bool
}

// recognise returns the description of an error that the user can fix. It alone decides which
// errors of libraries result in [ExitInvalid].
func recognise(err error) (fault, bool) {
	for _, known := range []func(error) (fault, bool){unreachable, unknownKind, refusedByServer, busyAddress, wrongPath} {
		if f, ok := known(err); ok {
			return f, true
		}
	}
	return fault{}, false
}

const kubectlAdvice = "check the server and the --context: `kubectl get nodes` must work with them"

// unreachable recognizes errors of servers that do not respond.
func unreachable(err error) (fault, bool) {
	var server *UnreachableError
	if errors.As(err, &server) {
		return fault{words: server.Error(), next: kubectlAdvice, whole: true}, true
	}
	var request *url.Error
	if !errors.As(err, &request) || !isNetwork(request.Err) {
		return fault{}, false
	}
	server = &UnreachableError{Server: request.URL, Err: request.Err}
	if u, err := url.Parse(request.URL); err == nil && u.Host != "" {
		server.Server = u.Scheme + "://" + u.Host
	}
	return fault{old: request.Error(), words: server.Error(),
		next: "check the address, and that this machine reaches it"}, true
}

// isNetwork reports whether err is about a connection rather than an invalid request.
func isNetwork(err error) bool {
	var of net.Error
	return errors.As(err, &of) || errors.Is(err, io.EOF)
}

// unknownKind recognizes API groups and kinds that a cluster does not have.
func unknownKind(err error) (fault, bool) {
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	switch {
	case errors.As(err, &kind):
		return lacks(kind.Error(), "kind "+kind.GroupKind.Kind, kind.GroupKind.Group), true
	case errors.As(err, &resource):
		return lacks(resource.Error(), resource.PartialResource.Resource, resource.PartialResource.Group), true
	}
	return fault{}, false
}

// lacks returns the fault of a cluster without an element of an API group.
func lacks(old, what, group string) fault {
	f := fault{old: old, words: fmt.Sprintf("the cluster has no %s of the API group %q", what, group)}
	switch {
	case strings.HasSuffix(group, "spotter.dev"):
		f.next = "install them with `spotter crds | kubectl apply --server-side -f -`, or with the chart"
	case strings.HasPrefix(group, "karpenter."):
		f.next = "install Karpenter, which brings the definitions"
	default:
		f.next = "install what serves this group, or choose another --context"
	}
	return f
}

// refusedByServer recognizes errors of an API server that the user can resolve.
func refusedByServer(err error) (fault, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fault{}, false
	}
	switch text := status.Status().Message; {
	case apierrors.IsUnauthorized(err):
		return fault{words: "the API server refuses the credentials: they are wrong or have expired",
			next: "log in again, as for `kubectl get nodes`", whole: true}, true
	case apierrors.IsForbidden(err):
		return fault{next: "let this user do that, or choose another --context or --kubeconfig"}, true
	case apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Name != "":
		return fault{next: "check the name, the --namespace and the --context"}, true
	case apierrors.IsNotFound(err):
		return fault{old: text, words: "the server has no such API",
			next: "check that the address in the kubeconfig is that of an API server, and that what serves the API is installed"}, true
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err):
		return fault{next: "the API server is overloaded or not ready: try again when `kubectl get nodes` works"}, true
	}
	return fault{}, false
}

// busyAddress recognizes an address that the program cannot listen on.
func busyAddress(err error) (fault, bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "listen" {
		return fault{}, false
	}
	where := op.Net
	if op.Addr != nil {
		where = op.Addr.String()
	}
	return fault{old: op.Error(), words: fmt.Sprintf("cannot listen on %s: %s", where, reason(op)),
		next: "choose another address, or end what uses this one"}, true
}

// wrongPath recognizes paths that do not exist, cannot be accessed, or are of the wrong type.
func wrongPath(err error) (fault, bool) {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return fault{}, false
	}
	f := fault{old: path.Error(), words: fmt.Sprintf("%s: %v", path.Path, path.Err)}
	switch {
	case errors.Is(path.Err, syscall.ENOTDIR):
		f.next = "give the path of a folder"
		if info, err := os.Stat(path.Path); err == nil && !info.IsDir() {
			f.words = path.Path + " is a file, and not a folder"
		}
	case errors.Is(path.Err, syscall.EISDIR):
		f.words, f.next = path.Path+" is a folder, and not a file", "give a file there"
	case errors.Is(path.Err, fs.ErrNotExist), errors.Is(path.Err, syscall.ENAMETOOLONG), errors.Is(path.Err, syscall.ELOOP):
		f.next = "check the path"
	case errors.Is(path.Err, fs.ErrPermission), errors.Is(path.Err, syscall.EROFS):
		f.next = "give a path that this user may read and write"
	default: // a full disk, a damaged one
		return fault{}, false
	}
	return f, true
}
