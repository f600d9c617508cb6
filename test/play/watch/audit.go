package watch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// parse reads one line of an audit log.
func parse(line []byte) (*Request, error) {
	var raw struct {
		RequestReceivedTimestamp, StageTimestamp time.Time
		RequestURI, Verb, Stage                  string
		User                                     struct{ Username string }
		ObjectRef                                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
		ResponseStatus                           struct{ Code int }
		RequestObject                            json.RawMessage
		ResponseObject                           struct {
			Metadata struct{ Annotations map[string]string }
			Spec     struct {
				Mode                 string
				Disruption           struct{ Budget any }
				HolderIdentity       string
				RenewTime            time.Time
				LeaseDurationSeconds int
			}
			Status json.RawMessage // a text where the answer is no object
		}
	}
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	o := &raw.ObjectRef
	r := &Request{
		Received: raw.RequestReceivedTimestamp, Answered: raw.StageTimestamp, User: raw.User.Username, Verb: raw.Verb,
		Group: o.APIGroup, Resource: o.Resource, Subresource: o.Subresource, Namespace: o.Namespace, Name: o.Name, Code: raw.ResponseStatus.Code,
		DryRun: strings.Contains(raw.RequestURI, "dryRun=All") || strings.Contains(string(raw.RequestObject),
			`"dryRun":["All"]`),
		Mode: raw.ResponseObject.Spec.Mode, Annotations: raw.ResponseObject.Metadata.Annotations,
	}
	spec := &raw.ResponseObject.Spec
	if spec.Disruption.Budget != nil {
		r.Budget = fmt.Sprint(spec.Disruption.Budget)
	}
	if spec.HolderIdentity != "" {
		r.Until = spec.RenewTime.Add(time.Duration(spec.LeaseDurationSeconds) * time.Second)
	}
	if r.Resource == "capacitypools" {
		var status struct{ Controller string }
		_ = json.Unmarshal(raw.ResponseObject.Status, &status) // of a deletion it is a text
		r.Controller = status.Controller
	}
	return r, nil
}

// A tail reads an audit log up to its current end.
type tail struct {
	file *os.File
	r    *bufio.Reader
	part []byte
}

func openTail(name string) (*tail, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &tail{file: f, r: bufio.NewReaderSize(f, 1<<20)}, nil
}

// next returns the next answered write, nil if the log has no further one yet.
func (t *tail) next() (*Request, error) {
	for {
		line, err := t.r.ReadBytes('\n')
		t.part = append(t.part, line...)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		whole := t.part
		t.part = nil
		if r, err := parse(whole); err != nil || r.Verb == "create" || r.Verb == "update" || r.Verb == "patch" ||
			r.Verb == "delete" {
			return r, err
		}
	}
}
