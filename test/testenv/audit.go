package testenv

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// auditPolicy logs every request when it is answered, a watch also when it starts, and writes with
// their content, except requests between the components of Kubernetes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["system:kube-controller-manager", "system:kube-scheduler", "system:kwok", "system:apiserver"]
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
`

func (e *Env) auditLog() string { return filepath.Join(e.Dir, "audit.log") }

// An AuditEvent is one request that the API server has answered.
type AuditEvent struct {
	// Time is when the request came in.
	Time time.Time

	// User is who sent it and UserAgent what.
	User, UserAgent string

	// Verb is that of role-based access control: get, list, watch, create, update,
	// patch, delete or deletecollection.
	Verb string

	// Group, Resource, Subresource, Namespace and Name say what it was about.
	Group, Resource, Subresource, Namespace, Name string

	// URI is the path with its parameters, and DryRun whether they say dryRun=All.
	URI    string
	DryRun bool

	// Code is the HTTP status of the answer, and Allowed says that access control allowed the
	// request.
	Code    int
	Allowed bool

	// Request and Response are JSON, of writes only.
	Request, Response json.RawMessage
}

// Writes reports whether the request would change something.
func (a *AuditEvent) Writes() bool {
	switch a.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !a.DryRun
	}
	return false
}

// String returns the event in one line.
func (a AuditEvent) String() string {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Group != "" {
		resource += "." + a.Group
	}
	return fmt.Sprintf("%s: %s %s %s/%s: %d", a.User, a.Verb, resource, a.Namespace, a.Name, a.Code)
}

// A Mark is a place in the audit log.
type Mark int64

// Mark returns the place behind all requests that were answered so far.
func (e *Env) Mark() Mark {
	info, err := os.Stat(e.auditLog())
	if err != nil {
		return 0
	}
	return Mark(info.Size())
}

// Audit returns the requests that were answered since a mark and that keep wants; nil wants all. A
// request is in the log before its answer has been read in full.
func (e *Env) Audit(t testing.TB, since Mark, keep func(AuditEvent) bool) []AuditEvent {
	t.Helper()
	f, err := os.Open(e.auditLog())
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	defer f.Close()
	if _, err := f.Seek(int64(since), io.SeekStart); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	var all []AuditEvent
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all // what has no end yet is still being written
		}
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		x, err := parseAudit(line)
		if err != nil {
			t.Fatalf("testenv: %s: %v", e.auditLog(), err)
		}
		if keep == nil || keep(x) {
			all = append(all, x)
		}
	}
}

// parseAudit reads one line of the log.
func parseAudit(line []byte) (AuditEvent, error) {
	var raw struct {
		RequestReceivedTimestamp time.Time
		RequestURI, Verb         string
		UserAgent                string
		User                     struct{ Username string }
		ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
		ResponseStatus           struct{ Code int }
		RequestObject            json.RawMessage
		ResponseObject           json.RawMessage
		Annotations              map[string]string
	}
	if err := json.Unmarshal(bytes.TrimSpace(line), &raw); err != nil {
		return AuditEvent{}, err
	}
	o := &raw.ObjectRef
	return AuditEvent{
		Time: raw.RequestReceivedTimestamp, User: raw.User.Username, UserAgent: raw.UserAgent, Verb: raw.Verb,
		Group: o.APIGroup, Resource: o.Resource, Subresource: o.Subresource, Namespace: o.Namespace, Name: o.Name,
		URI: raw.RequestURI, DryRun: strings.Contains(raw.RequestURI, "dryRun=All") ||
			bytes.Contains(raw.RequestObject, []byte(`"dryRun":["All"]`)),
		Code: raw.ResponseStatus.Code, Allowed: raw.Annotations["authorization.k8s.io/decision"] == "allow", Request: raw.RequestObject, Response: raw.ResponseObject,
	}, nil
}
